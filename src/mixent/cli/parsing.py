"""What may be typed after an option: settings of a model, one of some words, shares of classes, names of columns."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Hashable, Sequence
from typing import Any

import typer

from mixent.cli.console import current_screen

ROUNDED = 1e-3  # by which shares may miss a sum of 1: 0.333, 0.333, 0.333
WORDS = {"none": None, "true": True, "false": False}
BRACKETS = ("[", "(", "{", "'", '"')


def read_settings(texts: Sequence[str]) -> dict[str, Any]:
    """`--set key=value` by key.

    Parameters
    ----------
    texts : as they were typed
    """
    settings: dict[str, Any] = {}
    for text in texts:
        key, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not all(key.split(".")):
            raise typer.BadParameter(f"--set must be KEY=VALUE, such as --set n_components=2; got {text!r}")
        if key in settings:
            raise typer.BadParameter(f"--set {key} was given twice; give it once")
        settings[key] = read_value(key, value)
    return settings


def read_value(key: str, text: str) -> Any:
    """A Python literal, a list (a,b), a list of lists (a,b;c,d), or a plain word; none, true and false in any case."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        if text.startswith(BRACKETS):
            raise typer.BadParameter(
                f"--set {key}: {text} is not a Python literal; quote the words in it, such as ['a', 'b']"
            ) from None
    else:
        return list(value) if isinstance(value, tuple) and not text.startswith("(") else value
    for sign in ";,":
        if sign in text:
            return [read_value(key, part.strip()) for part in text.split(sign) if part.strip()]
    return text


def unknown(kind: str, name: str, known: Sequence[str], of: str = "") -> typer.BadParameter:
    """The error of a name that does not exist: the closest name, and all there are.

    Parameters
    ----------
    kind : such as "model" or "parameter"
    name : what was typed
    known : names that exist
    of : what they belong to
    """
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {close[0]!r}? Choose" if close else "choose"
    owner = f" of {of}" if of else ""
    return typer.BadParameter(f"unknown {kind} {name!r}{owner}; {hint} one of {', '.join(known)}")


def one_of(option: str, value: str, choices: Sequence[str]) -> None:
    """Refuse any other word."""
    if value not in choices:
        raise typer.BadParameter(f"{option} must be one of {', '.join(choices)}; got {value!r}")


def share(option: str, value: float) -> float:
    """More than none, less than all."""
    if not 0 < value < 1:
        raise typer.BadParameter(f"{option} must be a share, more than 0 and less than 1; got {value:g}")
    return value


def refuse(*cases: tuple[bool, str]) -> None:
    """Raise the first message whose condition holds."""
    for wrong, message in cases:
        if wrong:
            raise typer.BadParameter(message)


def column_names(text: str) -> list[str]:
    """Names in a list such as A,B."""
    return [name.strip() for name in text.split(",") if name.strip()]


def names_in(texts: Sequence[str]) -> list[str]:
    """All names in several lists such as A,B."""
    return [name for text in texts for name in column_names(text)]


def shares_of(option: str, text: str) -> dict[str, float]:
    """Classes with their shares: healthy=0.9,ill=0.1."""
    message = f"{option} must be classes with their shares, such as healthy=0.9,ill=0.1; got {text!r}"
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, sign, number = part.rpartition("=")
        try:
            value = float(number)
        except ValueError:
            value = -1.0
        if not sign or not name.strip() or name.strip() in shares or not 0 <= value < float("inf"):
            raise typer.BadParameter(message)
        shares[name.strip()] = value
    return shares


def by_class(option: str, shares: dict[str, float], classes: Sequence[Hashable]) -> list[float]:
    """Shares in the order of the classes; all must be there."""
    names = [str(label) for label in classes]
    strange = [name for name in shares if name not in names]
    absent = [name for name in names if name not in shares]
    if strange or absent:
        problem = f"{strange[0]!r} is none of them" if strange else f"{absent[0]!r} has none"
        raise typer.BadParameter(f"{option} needs a share for each of the classes {', '.join(names)}; {problem}")
    values = [shares[name] for name in names]
    if abs(sum(values) - 1) > ROUNDED:
        current_screen().warn(f"the shares of {option} sum to {sum(values):g} and are divided by it")
    return values


def long_columns(text: str) -> list[str]:
    """Columns of a long table: item,source,value and perhaps probability."""
    names = [name.strip() for name in text.split(",")]
    if len(names) not in (3, 4) or not all(names) or len(set(names)) < len(names):
        raise typer.BadParameter(
            f"--long must be three columns, as item,source,value, or four with the probability; got {text!r}"
        )
    return names
