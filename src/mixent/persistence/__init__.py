"""Save and load fitted models: one file, plain numbers, safe to open."""

from mixent.core.serialize import SavedFileError
from mixent.persistence.files import load, save

__all__ = ["SavedFileError", "load", "save"]
