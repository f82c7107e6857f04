"""Registration of the classical classifiers."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.background import Background
from mixent.base.recipes import Recipe, Shape
from mixent.base.registry import register
from mixent.base.saved_state import Part, Sizes, check_categories, free, index, positive, shares, size
from mixent.classical.describe import describe_fisher, describe_parzen, fisher_on_rows
from mixent.classical.discriminant import ClassGaussians
from mixent.classical.kernel_fisher import Basis, KernelFisherClassifier
from mixent.classical.parzen import ParzenClassifier
from mixent.classical.windows import Columns, Encoded, Windows
from mixent.data import Schema
from mixent.med.encoding import Encoder
from mixent.med.registration import ENCODED, encoded_sizes

MOST_ROWS = 10_000  # `compare` leaves out methods that compare all pairs of more rows
STATE = {
    "schema_": Schema,
    "background_": Background,
    "classes_": np.ndarray,
    "class_prior_": shares("C"),
    "n_rows_": size("n"),
    "loo_proba_": free("n C"),
}


def window_columns(columns: Columns, known: Sizes) -> Sizes:
    """Every category of the table has a share."""
    check_categories(columns.sizes, known)
    check_categories(tuple(map(len, columns.shares)), known)
    return {}


def window_sizes(windows: Windows, known: Sizes) -> Sizes:
    """e encoded columns of p columns, w windows; those of a class follow those of the class before."""
    n_varying, starts = len(windows.columns.varying), windows.starts
    if not (np.diff(starts) >= 0).all() or starts[[0, -1]].tolist() != [0, len(windows.log_count)]:
        raise ValueError("starts does not divide the windows into classes")
    return {
        "e": n_varying + known["R"],
        "p": n_varying + known["m"],
        "w": len(windows.log_count),
        "starts": known["C"] + 1,
    }


def fisher_sizes(model: Any) -> dict[str, Any]:
    """C - 1 discriminants."""
    sizes = encoded_sizes(model)
    return {**sizes, "q": sizes["C"] - 1}


def too_many_pairs(shape: Shape) -> str | None:
    """The reason to leave out a method that compares all pairs of rows, or None."""
    if shape.n_labelled > MOST_ROWS:
        return f"it compares all pairs of rows, and there are more than {MOST_ROWS} rows"
    return None


register(
    "parzen",
    task="classification",
    title="Parzen windows",
    describe=describe_parzen,
    state={**STATE, "windows_": Windows, "bandwidth_": positive(" | C")},
    parts={
        Columns: Part(
            {
                "varying": index("v", below="c"),
                "center": "v",
                "scale": positive("v"),
                "variance": positive("v"),
                "shares": positive(each=True),
            },
            window_columns,
        ),
        Encoded: {"E": "w e", "observed": "w p"},
        Windows: Part({"log_count": "w", "starts": index("starts")}, window_sizes),
    },
    recipes=(
        Recipe(
            "Parzen window",
            "kernel density estimate for each class",
            lambda setting: ParzenClassifier(categorical=setting.categorical, n_jobs=1),
            0.1,
            too_many_pairs,
            kind="classical",
            growth=1.6,
        ),
    ),
)(ParzenClassifier)
register(
    "kernel-fisher",
    task="classification",
    title="Kernel Fisher discriminant",
    describe=describe_fisher,
    on_rows=fisher_on_rows,
    state={
        **STATE,
        "encoder_": Encoder,
        "basis_": Basis,
        "coefficients_": "b q",
        "intercept_": "q",
        "gaussians_": ClassGaussians,
        "total_weight_": positive(""),
        "training_prior_": shares("C"),
    },
    parts={**ENCODED, Basis: {"vectors": "b W"}, ClassGaussians: {"means": "C q", "cov": "q q"}},
    sizes=fisher_sizes,
    recipes=(
        Recipe(
            "kernel Fisher",
            "Fisher discriminants, RBF kernel",
            lambda setting: KernelFisherClassifier(**setting.common),
            0.4,
            too_many_pairs,
            kind="classical",
            growth=1.6,
        ),
    ),
)(KernelFisherClassifier)
