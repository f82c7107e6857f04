"""Calibrations of several sources in one JSON file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from mixent.core.writing import write_text
from mixent.fusion.calibration import Calibration


def save_calibrations(calibrations: Mapping[str, Calibration], path: str | os.PathLike[str]) -> None:
    """Write the calibrations of several sources to a JSON file.

    Parameters
    ----------
    calibrations : dict of source -> Calibration
    path : str or path
        File to write.

    See Also
    --------
    load_calibrations : Read the file.
    """
    entries = []
    for name, calibration in calibrations.items():
        fields = [f"  {json.dumps(field)}: {json.dumps(value)}" for field, value in calibration.to_json().items()]
        entries.append(f" {json.dumps(name)}: {{\n" + ",\n".join(fields) + "\n }")  # one line for each field
    write_text(path, "{\n" + ",\n".join(entries) + "\n}\n")


def load_calibrations(path: str | os.PathLike[str]) -> dict[str, Calibration]:
    """Read the calibrations of several sources from a JSON file.

    Parameters
    ----------
    path : str or path
        File written by `save_calibrations` or by hand: a JSON object of source -> fields of its `Calibration`.

    Returns
    -------
    dict of source -> Calibration

    See Also
    --------
    save_calibrations : Write such a file.
    """
    try:
        entries = json.loads(Path(path).read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not a JSON file ({error})") from error
    if not isinstance(entries, dict):
        raise ValueError(f"{path} must contain an object of source -> calibration; got a {type(entries).__name__}")
    out = {}
    for name, entry in entries.items():
        try:
            out[name] = Calibration.from_json(entry)
        except ValueError as error:
            raise ValueError(f"{path}, source {name!r}: {error}") from error
    return out
