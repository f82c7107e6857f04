"""What may have been meant otherwise: codes and measurements that a table alone does not tell apart."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

MANY_CLASSES = 30
MOST_NAMED = 3
MOST_TYPED = 40


def codes_in(table: Any, shares: Sequence[str] = ()) -> list[str]:
    """Numbers that look like codes: which columns, which values, and what to type; `shares` hold probabilities."""
    from mixent.data import few_numbers

    alike: dict[tuple[int, ...], list[str]] = {}
    for name, values in few_numbers(table).items():
        if name not in shares:
            alike.setdefault(tuple(values), []).append(name)
    if not alike:
        return []
    told = [_held(names, values) for values, names in list(alike.items())[:MOST_NAMED]]
    told += ["..."] * (len(alike) > MOST_NAMED)
    names = [name for each in alike.values() for name in each]
    these = "it holds" if len(names) == 1 else "these are"
    return [f"Hint: {'; '.join(told)}: add {_option(names)} if {these} codes"]


def _held(names: list[str], values: tuple[int, ...]) -> str:
    named = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
    return f"{named} {'holds' if len(names) == 1 else 'hold'} only {', '.join(map(str, values))}"


def _option(names: list[str]) -> str:
    plain = [name for name in names if "," not in name]
    apart = [name for name in names if "," in name]
    typed = [",".join(plain[:MOST_TYPED])] * bool(plain) + apart[: MOST_TYPED - len(plain)]
    more = " ..." if len(names) > MOST_TYPED else ""
    return " ".join(f"--categorical {shlex.quote(text)}" for text in typed) + more


def number_for_class(y: Any, target: str) -> list[str]:
    """A target with so many different numbers may be no class."""
    n = y.nunique() if y.dtype.kind in "iuf" else 0
    if n <= MANY_CLASSES:
        return []
    return [
        f"Hint: the target {target!r} holds {n} different numbers and looks like a number, not a class; to predict a "
        "number use --model joint, else cut it into ranges"
    ]
