"""What may be typed after an option: one of some words, a word or a number, a share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer


def one_of(option: str, value: str, choices: Sequence[str]) -> None:
    """Refuse any other word."""
    if value not in choices:
        raise typer.BadParameter(f"{option} must be one of {', '.join(choices)}; got {value!r}")


def word_or(option: str, text: str, kind: type, word: str = "auto", wanted: str | None = None) -> Any:
    """The word, or a positive number; `wanted` says so in other words."""
    if text.lower() == word:
        return word
    try:
        value = kind(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        wanted = wanted or ("a whole number >= 1" if kind is int else "a number > 0")
        raise typer.BadParameter(f"{option} must be {word}, or {wanted}; got {text!r}")
    return value


def read_prior(text: str, none: Any = None) -> Any:
    """How strong a prior is: auto, a number, or the word none, which stands for `none`."""
    return none if text.lower() == "none" else word_or("--prior", text, float, wanted="none or a number > 0")


def name_lists(option: str, text: str, words: tuple[str, ...], exactly: int | None = None) -> Any:
    """One of the words, or lists of names: A,B;C,D."""
    if text.lower() in words:
        return text.lower()
    groups = [[name.strip() for name in part.split(",")] for part in text.split(";")]
    wanted = "two names" if exactly else "at least two names"
    for group in groups:
        if not all(group) or len(group) < 2 or (exactly and len(group) != exactly):
            raise typer.BadParameter(
                f'{option} must be {", ".join(words)} or lists of {wanted}, such as "A,B;C,D"; got {text!r}'
            )
    return groups


def share(option: str, value: float) -> float:
    """More than none, less than all."""
    if not 0 < value < 1:
        raise typer.BadParameter(f"{option} must be a share, more than 0 and less than 1; got {value:g}")
    return value


def refuse_idle(*told: tuple[bool, str]) -> None:
    """An option that would have no effect is a misunderstanding: say so."""
    for idle, message in told:
        if idle:
            raise typer.BadParameter(message)


def shares_of(option: str, text: str) -> dict[str, float]:
    """Classes with their shares: healthy=0.9,ill=0.1."""
    wanted = f"{option} must be classes with their shares, such as healthy=0.9,ill=0.1; got {text!r}"
    out: dict[str, float] = {}
    for part in text.split(","):
        name, sign, number = part.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not sign or not name.strip() or name.strip() in out or not 0 <= value < float("inf"):
            raise typer.BadParameter(wanted)
        out[name.strip()] = value
    return out


def by_class(option: str, shares: dict[str, float], classes: Sequence[Any]) -> list[float]:
    """Shares in the order of the classes; all must be there."""
    names = [str(label) for label in classes]
    strange = [name for name in shares if name not in names]
    absent = [name for name in names if name not in shares]
    if strange or absent:
        what = f"{strange[0]!r} is none of them" if strange else f"{absent[0]!r} has none"
        raise typer.BadParameter(f"{option} needs a share for each of the classes {', '.join(names)}; {what}")
    return [shares[name] for name in names]


def long_columns(text: str) -> list[str]:
    """Columns of a long table: item,source,value and perhaps probability."""
    names = [name.strip() for name in text.split(",")]
    if len(names) not in (3, 4) or not all(names) or len(set(names)) < len(names):
        raise typer.BadParameter(
            f"--long must be three columns, as item,source,value, or four with the probability; got {text!r}"
        )
    return names
