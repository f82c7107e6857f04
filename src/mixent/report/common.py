"""What all sections of a report share."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from mixent.report.html import Code, Content, Paragraph


def can_draw() -> bool:
    """Is matplotlib there?"""
    return find_spec("matplotlib") is not None


def figure(width: float, height: float) -> Any:
    """An empty figure, inches."""
    from matplotlib.figure import Figure as Canvas  # not pyplot: nothing to close, no window

    return Canvas(figsize=(width, height), layout="constrained")


def count(n: Any, one: str, many: str | None = None) -> str:
    """A number of things."""
    return f"{n} {one}" if n in (1, "1") else f"{n} {many or one + 's'}"


def reproduce(commands: str, random_state: Any = None, *, data: str | None = None, code: str = "") -> list[Content]:
    """Versions, the seed of the folds, a fingerprint of the data, and what to type to get a page again."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    from mixent import __version__  # of the code that runs; what was installed may be older

    versions = [f"Python {platform.python_version()}", f"mixent {__version__}"]
    for package in ("numpy", "scipy", "scikit-learn"):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    seed = f" Random seed of the folds: {random_state}." if isinstance(random_state, int) else ""
    mark = "" if data is None else f" Fingerprint of the table: {data}; any other value, name or order changes it."
    content: list[Content] = [Paragraph("Made with " + ", ".join(versions) + "." + seed + mark)]
    return [*content, *(Code(text) for text in (commands, code) if text)]
