"""Calibrations of several sources in one JSON file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from mixent.fusion.calibration import Calibration


def save_calibrations(calibrations: Mapping[str, Calibration], path: str | os.PathLike[str]) -> None:
    """Write calibrations by the name of their source, as JSON.

    Parameters
    ----------
    calibrations : dict of source -> Calibration
    path : where to write
    """
    entries = []
    for name, one in calibrations.items():
        fields = [f"  {json.dumps(field)}: {json.dumps(value)}" for field, value in one.to_json().items()]
        entries.append(f" {json.dumps(name)}: {{\n" + ",\n".join(fields) + "\n }")  # one line for each field
    Path(path).write_text("{\n" + ",\n".join(entries) + "\n}\n")


def load_calibrations(path: str | os.PathLike[str]) -> dict[str, Calibration]:
    """Calibrations of a file that was written by `save_calibrations`, or by hand.

    Parameters
    ----------
    path : JSON file with an object, source -> fields of its `Calibration`

    Returns
    -------
    dict of source -> Calibration
    """
    try:
        entries = json.loads(Path(path).read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not a JSON file ({error})") from error
    if not isinstance(entries, dict):
        raise ValueError(f"{path} must hold an object, source -> calibration; it holds a {type(entries).__name__}")
    out = {}
    for name, entry in entries.items():
        try:
            out[name] = Calibration.from_json(entry)
        except ValueError as error:
            raise ValueError(f"{path}, source {name!r}: {error}") from error
    return out
