"""Conditional maximum entropy: the dual, its statistics, and three ways to its optimum."""
