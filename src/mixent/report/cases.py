"""Typical and odd rows, each with the reasons of its decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from mixent.base.document import Bar, Content, Heading, Number, Paragraph, Table
from mixent.base.labels import as_labels, encode, key, labelled_rows
from mixent.base.text import class_name
from mixent.evaluate.displays.explanation import probability_text
from mixent.evaluate.displays.projection import encoded
from mixent.evaluate.validate import aligned_proba
from mixent.report.certificates import unwrapped
from mixent.report.data import with_categories
from mixent.report.novelty import row_values

MOST_CLASSES = 6  # that get a typical row
MOST_ROWS = 5000  # among which odd ones are looked for
MOST_PARTS = 8  # columns of a row
MOST_SWAPS = 40  # rows whose values are put in a column's place
WORK = 4000  # rows to predict for a case, about
MOST_COLUMNS = 400
TINY = 1e-6  # a probability below counts as this: of votes and leaves, which say 0 where they have not counted far
LEAST = -700.0  # nats: of an impossible class
SLIGHT = 0.005  # nats: not told


@dataclass(frozen=True)
class Case:
    """A row, why it is shown, its label, and what was said of it."""

    why: str
    row: int
    label: Any  # None: it has none
    said: Any
    probability: float


def cases_section(
    name: str,
    model: Any,
    X: Any,
    y: Any,
    proba: Any = None,
    *,
    rows: str = "not used for fitting",
    categorical: Any = "auto",
) -> list[Content]:
    """Rows worth a look with the reasons of the model fitted on all rows.

    Parameters
    ----------
    name : what the model is called
    model : fitted classifier
    X : table of n rows
    y : (n,) labels, or None
    proba : (n, C), optional
        What was said of each row when it was not used for fitting; NaN where that is not known. Default: what the model
        says.
    rows : str
        Of what kind are the rows behind `proba`, in words.
    categorical : "auto" or list
        Columns that are categories whatever their type.
    """
    found = typical_and_odd(model, X, y, proba, categorical=categorical)
    if not found:
        return []
    content: list[Content] = []
    for case in found:
        content += _told(model, X, case, rows)
    parts = next((part for part in content if isinstance(part, Table)), None)
    intro = f"What {name}, fitted on all rows, says of some rows (numbered from 0), and why. {_how(model)}"
    return [Paragraph(intro), *content] if parts is not None else [Paragraph(intro.split(" (")[0] + "."), *content]


def typical_and_odd(model: Any, X: Any, y: Any, proba: Any = None, *, categorical: Any = "auto") -> list[Case]:
    """A typical row of each class, the surest error, the most doubtful row, and the least like the others."""
    classes = np.asarray(model.classes_)
    n = np.shape(X)[0]
    rows = np.arange(n)[np.linspace(0, n - 1, min(MOST_ROWS, n)).astype(int)]
    given = aligned_proba(model, _safe_indexing(X, rows), classes) if proba is None else np.asarray(proba)[rows]
    labels = np.full(n, None, dtype=object) if y is None else as_labels(y)
    known = labelled_rows(labels)[rows] if y is not None else np.zeros(len(rows), dtype=bool)
    sound = np.isfinite(given).all(axis=1)
    true = np.full(len(rows), -1)
    true[known] = encode(labels[rows[known]], classes)
    guess = np.where(sound, np.nan_to_num(given).argmax(axis=1), -1)
    found: dict[int, str] = {}
    typed = with_categories(X, categorical)
    for c, place in _most_typical(typed, rows, true if known.any() else guess, guess, sound, len(classes)):
        found.setdefault(place, f"A typical row of {class_name(classes[c])}")
    top = np.sort(np.nan_to_num(given), axis=1)
    odd: list[tuple[str, int]] = []
    wrong = known & sound & (guess != true)
    if wrong.any():
        odd.append(("The surest error", int(np.where(wrong, top[:, -1], -1.0).argmax())))
    if len(classes) > 1 and sound.any():
        odd.append(("The most doubtful row", int(np.where(sound, top[:, -1] - top[:, -2], np.inf).argmin())))
    unlike = _least_like(model, X, rows)
    odd += [] if unlike is None else [("The row least like the others (lowest density)", unlike)]
    for why, place in odd:
        found[place] = f"{found[place]}; {why[0].lower()}{why[1:]}" if place in found else why
    return [
        Case(why, int(rows[i]), labels[rows[i]] if known[i] else None, classes[guess[i]], float(given[i].max()))
        for i, why in found.items()
        if sound[i]
    ]


def _most_typical(
    X: Any, rows: np.ndarray, belongs: np.ndarray, guess: np.ndarray, sound: np.ndarray, n_classes: int
) -> list[tuple[int, int]]:
    """(class, place) of the rightly decided row nearest to the centre of each of the largest classes."""
    try:
        Z = encoded(X)[0][rows]
    except ValueError:
        return []
    sizes = [int(np.sum(belongs == c)) for c in range(n_classes)]
    largest = sorted(sorted(range(n_classes), key=lambda c: -sizes[c])[:MOST_CLASSES])
    out = []
    for c in largest:
        mine = belongs == c
        right = mine & (guess == c) & sound
        if right.any():
            far = ((Z - Z[mine].mean(axis=0)) ** 2).sum(axis=1)
            out.append((c, int(np.where(right, far, np.inf).argmin())))
    return out


def _least_like(model: Any, X: Any, rows: np.ndarray) -> int | None:
    if not hasattr(model, "score_samples"):
        return None
    try:
        density = np.asarray(model.score_samples(_safe_indexing(X, rows)), dtype=float)
    except (AttributeError, TypeError, ValueError):  # a pipeline whose model has none
        return None
    return int(density.argmin()) if density.shape == (len(rows),) and not np.isnan(density).all() else None


def _told(model: Any, X: Any, case: Case, rows: str) -> list[Content]:
    one = _safe_indexing(X, [case.row])
    proba = aligned_proba(model, one, model.classes_)[0]
    ours, rival = _rivals(np.asarray(model.classes_), proba, case)
    p = probability_text(case.probability)
    text = f"Row {case.row} was said to be {class_name(case.said)} with probability {p} when it was {rows}"
    text = text if rows else f"Row {case.row} is said to be {class_name(case.said)} with probability {p}"
    if case.label is not None:
        right = key(case.label) == key(case.said)
        text += ", as its label has it" if right else f"; its label is {class_name(case.label)}"
    names = [class_name(model.classes_[c]) for c in (ours, rival)]
    odds = float(_odds(model, one, ours, rival)[0])
    text += f". Log-odds of {names[0]} against {names[1]} in the model explained: {odds:+.2f} nats."
    content: list[Content] = [Heading(f"{case.why}: row {case.row}"), Paragraph(text)]
    parts = parts_of_case(model, X, case.row, ours, rival)
    return [*content, _table(parts, names)] if parts else content


def _rivals(classes: np.ndarray, proba: np.ndarray, case: Case) -> tuple[int, int]:
    """What was said, and against what: the label where it is another, else the strongest other class."""
    names = [key(c) for c in classes]
    ours = names.index(key(case.said))
    if case.label is not None and key(case.label) != key(case.said):
        return ours, names.index(key(case.label))
    others = proba.copy()
    others[ours] = -1.0
    return ours, int(others.argmax())


def parts_of_case(model: Any, X: Any, row: int, ours: int, rival: int) -> list[tuple[str, str, float]]:
    """(column, value, nats) that speak for one class against another, the strongest first.

    By the model's own `explain` where that has columns; by leaving a value out where the model takes gaps; else by
    putting other rows' values in its place.
    """
    if hasattr(model, "layout_") and hasattr(model, "explain"):
        return _own_parts(model, _safe_indexing(X, [row]), ours, rival)
    d = np.shape(X)[1]
    if d > MOST_COLUMNS or d < 2:
        return []
    change = _without(model, X, row, ours, rival) if _takes_gaps(model) else None
    if change is None:
        change = _swapped(model, X, row, ours, rival)
    names = [str(c) for c in X.columns] if hasattr(X, "columns") else _names(model, d)
    values = row_values(_safe_indexing(X, [row]))[0]
    order = np.argsort(-np.abs(change), kind="stable")
    return [(names[j], values[j], float(change[j])) for j in order]


def _names(model: Any, d: int) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    return [str(n) for n in names] if names is not None and len(names) == d else [f"column {j}" for j in range(d)]


def _how(model: Any) -> str:
    if hasattr(model, "layout_") and hasattr(model, "explain"):
        return "The parts of the log-odds are the model's own: with that of the average row they add up to the total."
    if _takes_gaps(model):
        return (
            "A bar is what the log-odds lose if that value alone were missing. Columns overlap, so that bars do not "
            "add up to the total."
        )
    return (
        "The model has no explanation of its own. A bar is what the log-odds lose, on average, if that value alone is "
        "replaced by those of other rows; columns overlap, so that bars do not add up to the total. Probabilities "
        "below one in a million count as that."
    )


def _takes_gaps(model: Any) -> bool:
    """Is it one of ours that reads a missing value as missing?"""
    from sklearn.utils import get_tags

    if not type(unwrapped(model)).__module__.startswith("mixent.") or hasattr(model, "steps"):
        return False
    return bool(get_tags(model).input_tags.allow_nan)


def _own_parts(model: Any, one: Any, ours: int, rival: int) -> list[tuple[str, str, float]]:
    found = model.explain(one, label=model.classes_[ours], rival=model.classes_[rival])
    parts = [(found.baseline_name, "", float(found.baseline[0]))]
    parts += zip(found.names, found.values()[0], found.parts[0].tolist())
    return sorted(parts, key=lambda part: -abs(part[2]))


def _odds(model: Any, X: Any, ours: int, rival: int) -> np.ndarray:
    """(n,) log p(ours) / p(rival)."""
    if type(model).__module__.startswith("mixent.") and hasattr(model, "predict_log_proba"):
        log_p = np.maximum(np.asarray(model.predict_log_proba(X), dtype=float), LEAST)
    else:
        log_p = np.log(np.maximum(aligned_proba(model, X, model.classes_), TINY))
    return log_p[:, ours] - log_p[:, rival]


def _without(model: Any, X: Any, row: int, ours: int, rival: int) -> np.ndarray | None:
    """(d,) what the log-odds lose with each value; None where a gap cannot be put in the table."""
    d = np.shape(X)[1]
    try:
        odds = _odds(model, _with_a_gap(_safe_indexing(X, [row]), d), ours, rival)
    except (TypeError, ValueError):
        return None
    return odds[0] - odds[1:]


def _with_a_gap(one: Any, d: int) -> Any:
    """The row, then a copy for each column that lacks its value."""
    if not hasattr(one, "columns"):
        values = np.asarray(one)
        copies = np.repeat(values.astype(object if values.dtype.kind not in "biuf" else float), d + 1, axis=0)
        copies[np.arange(1, d + 1), np.arange(d)] = np.nan
        return copies
    import narwhals as nw

    frame = nw.from_native(one, eager_only=True)
    columns = {}
    for j, name in enumerate(frame.columns):
        value = frame[name].to_list()[0]
        columns[name] = [None if i == j + 1 else value for i in range(d + 1)]
    return nw.from_dict(columns, backend=frame.implementation).to_native()


def _swapped(model: Any, X: Any, row: int, ours: int, rival: int) -> np.ndarray:
    """(d,) the log-odds less their mean over other rows' values of each column."""
    n, d = np.shape(X)
    m = int(np.clip(WORK // d, 5, min(MOST_SWAPS, n)))
    others = np.linspace(0, n - 1, m).astype(int)
    odds = _odds(model, _with_values_of(X, row, others), ours, rival)
    return odds[0] - odds[1:].reshape(d, m).mean(axis=1)


def _with_values_of(X: Any, row: int, others: np.ndarray) -> Any:
    """The row, then for each column as many copies as there are others, with their values in that column."""
    d, m = np.shape(X)[1], len(others)
    if not hasattr(X, "columns"):
        take = np.full((1 + d * m, d), row)
        for j in range(d):
            take[1 + j * m : 1 + (j + 1) * m, j] = others
        return np.asarray(X)[take, np.arange(d)]
    import narwhals as nw

    frame, places = nw.from_native(X, eager_only=True), others.tolist()
    copies = frame[[row] * m]
    swapped = [copies.with_columns(frame[name][places].alias(name)) for name in frame.columns]
    return nw.concat([frame[[row]], *swapped]).to_native()


def _table(parts: list[tuple[str, str, float]], names: list[str]) -> Table:
    loud = [part for part in parts if abs(part[2]) >= SLIGHT] or parts[:1]
    shown = loud[:MOST_PARTS]
    rest, most = len(parts) - len(shown), max(abs(nats) for _, _, nats in shown)
    rows: list = [[column, value, Number(f"{nats:+.2f}"), Bar(nats, most)] for column, value, nats in shown]
    more = f"; {rest} of less weight left out" if rest else ""
    caption = f"To the right: speaks for {names[0]}; to the left: for {names[1]}{more}"
    return Table(caption, ["column", "value", "nats", ""], rows)
