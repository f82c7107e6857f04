"""Calibrations of several sources in one JSON file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from mixent.fusion.calibration import Calibration


def save_calibrations(calibrations: Mapping[str, Calibration], path: str | os.PathLike[str]) -> None:
    """Write calibrations by the name of their source, as JSON."""
    told = []
    for name, one in calibrations.items():
        fields = [f"  {json.dumps(field)}: {json.dumps(value)}" for field, value in one.to_json().items()]
        told.append(f" {json.dumps(name)}: {{\n" + ",\n".join(fields) + "\n }")  # a field a line: to be read and edited
    Path(path).write_text("{\n" + ",\n".join(told) + "\n}\n")


def load_calibrations(path: str | os.PathLike[str]) -> dict[str, Calibration]:
    """Read what `save_calibrations` wrote, or what was written by hand: source -> fields."""
    try:
        entries = json.loads(Path(path).read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no JSON file ({error})") from error
    if not isinstance(entries, dict):
        raise ValueError(f"{path} must hold an object, source -> calibration; it holds a {type(entries).__name__}")
    out = {}
    for name, entry in entries.items():
        try:
            out[name] = Calibration.from_json(entry)
        except ValueError as error:
            raise ValueError(f"{path}, source {name!r}: {error}") from error
    return out
