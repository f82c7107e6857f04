"""Displays of maximum entropy models."""

from mixent.maxent.displays.constraints import ConstraintsDisplay
from mixent.maxent.displays.path import PathDisplay

__all__ = ["ConstraintsDisplay", "PathDisplay"]
