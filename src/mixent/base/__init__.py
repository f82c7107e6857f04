"""Foundations that all estimators share; nothing is imported here, so that a command starts without numpy."""
