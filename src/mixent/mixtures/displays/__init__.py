"""Displays of mixtures."""

from mixent.mixtures.displays.components import ComponentsDisplay
from mixent.mixtures.displays.growth import GrowthDisplay
from mixent.mixtures.displays.merging import MergingDisplay
from mixent.mixtures.displays.regions import RegionsDisplay
from mixent.mixtures.displays.selection import SelectionDisplay

__all__ = ["ComponentsDisplay", "GrowthDisplay", "MergingDisplay", "RegionsDisplay", "SelectionDisplay"]
