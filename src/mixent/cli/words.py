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
