"""Write docs/api/*.rst from the registry and the public modules: `python docs/api_pages.py`; a test compares."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from mixent.base.registry import BUILT_IN, entries

FOLDER = Path(__file__).parent / "api"
GUIDES = {  # page -> where it is explained
    "mixtures": ("mixtures", "discriminative"),
    "hmm": ("sequences",),
    "maxent": ("maxent",),
    "med": ("discrimination", "trees", "novelty"),
    "classical": ("classical",),
    "ensemble": ("ensembles",),
    "fusion": ("fusion", "fusion-manager"),
    "comparison": ("start", "choosing", "capabilities"),
    "evaluate": ("comparing",),
    "studies": ("studies",),
    "displays": ("pictures",),
    "plugins": ("plugins",),
}
MODULES = (
    "options",
    "comparison",
    "evaluate",
    "studies",
    "displays",
    "report",
    "persistence",
    "datasets",
    "data",
    "plugins",
)
PARTED = ("evaluate", "studies")  # long pages, with a heading for each file
SUMMARY = """.. currentmodule:: {module}

.. autosummary::
   :toctree: generated
   :nosignatures:

{names}
"""
INDEX = """API reference
=============

Every public name, from its docstring. All estimators also have what scikit-learn gives each of them (``get_params``,
``set_params``, ``score``, ``set_output``, metadata routing), which is not repeated here. What is not listed is private
and may change. These pages are written by ``python docs/api_pages.py``.

.. toctree::
   :maxdepth: 1

{pages}
"""


def pages() -> dict[str, str]:
    """File name -> text of every page."""
    made = {f"{name}.rst": _family(name) for name in BUILT_IN} | {f"{name}.rst": _module(name) for name in MODULES}
    names = "\n".join(f"   {name}" for name in (*BUILT_IN, *MODULES))
    return {"index.rst": INDEX.format(pages=names), **made}


def _family(name: str) -> str:
    """The estimators of a folder as users import them, then the other public names of the folder."""
    module = import_module(f"mixent.{name}")
    estimators = [entry.cls.__name__ for entry in entries() if entry.family == name and entry.listed]
    top = set(import_module("mixent").__all__)
    others = [other for other in module.__all__ if other not in estimators]
    public = [*estimators, *(other for other in others if other in top)]
    inside = [other for other in others if other not in top]
    parts = [_head(name, module.__doc__ or ""), _summary("mixent", public)]
    return "\n".join([*parts, *([_summary(f"mixent.{name}", inside)] if inside else [])])


def _module(name: str) -> str:
    """The public names of a module, by the file they are written in."""
    module = import_module(f"mixent.{name}")
    top = _at_the_top(name)
    groups: dict[str, list[str]] = {}
    listed = {id(getattr(import_module("mixent.plugins"), other)) for other in import_module("mixent.plugins").__all__}
    for public in module.__all__:
        if public not in top and (name == "plugins" or id(getattr(module, public)) not in listed):
            groups.setdefault(getattr(getattr(module, public), "__module__", module.__name__), []).append(public)
    parts = [_head(name, module.__doc__ or ""), *([_summary("mixent", top)] if top else [])]
    if name not in PARTED:
        return "\n".join([*parts, _summary(module.__name__, [n for names in groups.values() for n in names])])
    for home, names in groups.items():
        title = (import_module(home).__doc__ or "").splitlines()[0].rstrip(".")
        parts.append(f"{title}\n{'-' * len(title)}\n\n" + _summary(module.__name__, names))
    return "\n".join(parts)


def _at_the_top(name: str) -> list[str]:
    """Functions of `mixent` itself that stand in this module."""
    mixent = import_module("mixent")
    homes = {f"mixent.{name}"} | ({"mixent.overview", "mixent.base"} if name == "comparison" else set())
    return [n for n in mixent.__all__ if _home(getattr(mixent, n)) in homes]


def _home(value: object) -> str:
    """The package a public function or class stands in."""
    return ".".join(getattr(value, "__module__", "").split(".")[:2])


def _head(name: str, doc: str) -> str:
    title = f"mixent.{name}"
    guides = ", ".join(f":doc:`/{guide}`" for guide in GUIDES.get(name, ()) if (FOLDER.parent / f"{guide}.md").exists())
    explained = f"\nGuide: {guides}.\n" if guides else ""
    return f"{title}\n{'=' * len(title)}\n\n{doc.splitlines()[0]}\n{explained}"


def _summary(module: str, names: list[str]) -> str:
    return SUMMARY.format(module=module, names="\n".join(f"   {name}" for name in names))


def write() -> None:
    """Write all pages; remove those that are gone."""
    texts = pages()
    for old in FOLDER.glob("*.rst"):
        if old.name not in texts:
            old.unlink()
    for name, text in texts.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
