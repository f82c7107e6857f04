"""What all sections of a report share."""

from __future__ import annotations

from typing import Any

from mixent.base.document import Code, Content, Paragraph


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
