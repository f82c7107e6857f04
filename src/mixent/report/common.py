"""What all sections of a report share."""

from __future__ import annotations

from typing import Any

from mixent.report.html import Code, Content, Paragraph


def can_draw() -> bool:
    """Is matplotlib there?"""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def figure(width: float, height: float) -> Any:
    """An empty figure, inches."""
    from matplotlib.figure import Figure as Canvas  # not pyplot: nothing to close, no window

    return Canvas(figsize=(width, height), layout="constrained")


def count(n: Any, one: str, many: str | None = None) -> str:
    """A number of things."""
    return f"{n} {one}" if n in (1, "1") else f"{n} {many or one + 's'}"


def reproduce(commands: str, random_state: Any = None) -> list[Content]:
    """Versions, the seed of the folds, and what to type to get a page again."""
    import platform
    from importlib.metadata import PackageNotFoundError, version

    versions = [f"Python {platform.python_version()}"]
    for package in ("mixent", "numpy", "scipy", "scikit-learn"):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    seed = f" Random seed of the folds: {random_state}." if isinstance(random_state, int) else ""
    content: list[Content] = [Paragraph("Made with " + ", ".join(versions) + "." + seed)]
    return [*content, Code(commands)] if commands else content
