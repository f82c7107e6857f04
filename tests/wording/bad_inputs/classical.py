"""Parzen windows and the kernel Fisher discriminant: bad options, odd tables."""

import numpy as np

from mixent import KernelFisherClassifier, ParzenClassifier
from mixent.data import DataWarning

from .cases import X, defined, frame, inf, nan, probabilities, put, refused, useful, word, y

KINDS = {"parzen": ParzenClassifier, "kernel-fisher": KernelFisherClassifier}


def told(table=X, labels=y, weight=None, **options):
    """The same of both, by their names."""
    return {
        f"{name}: ": lambda make=make: make(**options).fit(table, labels, sample_weight=weight).predict_proba(table)
        for name, make in KINDS.items()
    }


def cases(name, *args, **options):
    return {kind + name: run for kind, run in told(*args, **options).items()}


CASES = [
    *defined(probabilities, cases("infinity", put(inf)), (DataWarning, "treated as missing: column 'x1' .1 row")),
    *refused(ValueError, "at least 2 classes", cases("one class", X, np.zeros(40))),
    *refused(ValueError, "sample_weight must be >= 0; row 0", cases("negative weight", weight=-np.ones(40))),
    *refused(ValueError, "n_jobs must be None, -1 or", cases("n_jobs", n_jobs=0)),
    *refused(ValueError, "class_prior must be", cases("class_prior", class_prior=[1, -1])),
    *refused(ValueError, "categorical must be", cases("categorical", categorical=3)),
    *refused(
        ValueError,
        "bandwidth must",
        {f"bandwidth={h!r}": lambda h=h: ParzenClassifier(h).fit(X, y) for h in (0, -1, nan, None, True, "x", [1])},
    ),
    *refused(
        ValueError,
        "shrinkage must be a number > 0",
        {f"shrinkage={s!r}": lambda s=s: KernelFisherClassifier(shrinkage=s).fit(X, y) for s in (0, inf, "x", None)},
    ),
    *defined(useful, cases("a gap", put(nan))),
    *defined(probabilities, cases("categories that tell nothing", frame(c=word))),
    *defined(useful, cases("categories", frame(c=np.where(X[:, 2] > 1, "u", "v")))),
    *defined(useful, cases("large numbers", X * 1e6 + 1e9)),
    *defined(useful, cases("a constant column", np.column_stack([X, np.ones(40)]))),
    *defined(probabilities, cases("nothing varies", np.ones((40, 2)))),
    *defined(probabilities, cases("four rows", X[:4], y[:4])),
    *defined(probabilities, cases("every row twice", np.tile(X[:10], (2, 1)), np.tile(y[:10], 2))),
]
