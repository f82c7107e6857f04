"""How a fit ended, in words: convergence, certificates of optimality, repairs; of a model and of what it is made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mixent.base.document import Bullets, Content, Paragraph
from mixent.base.text import class_name, count

MOST = 12  # of models inside a model
# where max_iter bounds a search for the optimum; of boosting it is the number of trees, which are to be all made
SOLVED = ("sklearn.linear_model.", "sklearn.svm.", "sklearn.neural_network.")


def certificates(name: str, model: Any) -> list[Content]:
    """What is known of how well the fit was solved."""
    told = [f"{text}." for text in certificates_in_words(model)]
    if told:
        return [Paragraph(f"{name}, fitted on all rows:"), Bullets(told)]
    what = type(unwrapped(model)).__name__
    called = name if name == what else f"{name} ({what})"
    text = f"{called} says nothing of how its fit ended, and certifies nothing."
    return [Paragraph(text)]


def certificates_in_words(model: Any) -> list[str]:
    """A sentence each, without its full stop; none where the model tells nothing."""
    told, inside = [], list(_inside(model))
    for label, one in inside[:MOST]:
        for whose, text in _of_one(one):
            names = [name for name in (label, whose) if name]
            told.append(": ".join([*names, text]) if names else f"{text[0].upper()}{text[1:]}")
    more = len(inside) - MOST
    return [*told, f"And {more} more inside it"] if more > 0 else told


def unwrapped(model: Any) -> Any:
    """The last step of a pipeline, or what a wrapper of one column has inside."""
    while True:
        steps = getattr(model, "steps", None)
        if not steps:
            return model
        model = steps[-1][1]


def _inside(model: Any, label: str = "") -> Iterator[tuple[str, Any]]:
    """The model, and the models it is made of."""
    model = unwrapped(model)
    yield label, model
    bases, names = getattr(model, "fitted_", None), getattr(model, "base_names_", None)
    if isinstance(bases, list) and names is not None:
        for name, base in zip(names, bases):
            yield from _inside(base, str(name))


def _of_one(model: Any) -> list[tuple[str, str]]:
    """(class, sentence); the class is blank where the sentence is of all."""
    told = []
    if getattr(model, "run_", None) is not None:
        told += [("", text) for text in (_run(model.run_), *getattr(model.run_, "notes", ()))]
    runs, classes = getattr(model, "runs_", None), getattr(model, "classes_", None)
    if runs is not None and classes is not None and len(runs) == len(classes):
        told += [(class_name(c), _run(run)) for c, run in zip(classes, runs)]
    told += [("", text) for text in _gap(model)]
    return told or [("", text) for text in _iterations(model)]


def _run(run: Any) -> str:
    passes = getattr(run, "n_passes", None)
    after = "" if passes is None else f" ({count(passes, 'pass', 'passes')})"
    return f"{getattr(run, 'message', '') or 'no message'}{after}"


def _gap(model: Any) -> list[str]:
    told = []
    gap = getattr(model, "gap_", None)
    if gap is not None and np.ndim(gap) == 0 and np.isfinite(gap):
        per = "" if hasattr(model, "multipliers_") else " per row"
        told.append(f"certificate: the objective is at most {gap:.1g} nats{per} from its optimum, whatever the start")
    residual = getattr(model, "residual_", None)
    if residual is not None and np.ndim(residual) == 0 and np.isfinite(residual):
        told.append(f"constraints are met within {residual:.2g}")
    return told


def _iterations(model: Any) -> list[str]:
    """Of scikit-learn: how many iterations, of how many it might have made."""
    made, most = getattr(model, "n_iter_", None), getattr(model, "max_iter", None)
    if made is None or not np.size(made):
        return []
    made = int(np.max(made))
    solved = any(kind.__module__.startswith(SOLVED) for kind in type(model).__mro__)
    if not solved or not isinstance(most, int | float) or most <= 0:
        return [f"it made {count(made, 'iteration')}; it gives no certificate"]
    if made >= most:
        return [f"it made all {most} iterations it was allowed, so that it may not have converged; raise max_iter"]
    return [f"it stopped by its own rule after {made} of at most {most} iterations; it gives no certificate"]
