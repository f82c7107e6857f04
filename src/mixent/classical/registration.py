"""Registration of the classical classifiers."""

from __future__ import annotations

import numpy as np

from mixent.base.background import Background
from mixent.base.kernels import RBF, Linear, Nystrom, Polynomial
from mixent.base.recipes import Recipe, Shape
from mixent.base.registry import register
from mixent.classical.describe import describe_fisher, describe_parzen, fisher_on_rows
from mixent.classical.discriminant import ClassGaussians
from mixent.classical.kernel_fisher import Basis, KernelFisherClassifier
from mixent.classical.parzen import ParzenClassifier
from mixent.classical.windows import Columns, Encoded, Windows
from mixent.data import Schema
from mixent.med.encoding import Encoder

MOST_ROWS = 10_000  # `compare` leaves out methods that compare all pairs of more rows
STATE = {"schema_": Schema, "background_": Background, "classes_": np.ndarray, "class_prior_": np.ndarray}


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
    state={**STATE, "windows_": Windows, "bandwidth_": float | np.ndarray},
    parts=(Columns, Encoded, Windows),
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
        "coefficients_": np.ndarray,
        "intercept_": np.ndarray,
        "gaussians_": ClassGaussians,
        "total_weight_": float,
        "training_prior_": np.ndarray,
    },
    parts=(Basis, ClassGaussians, Encoder, Linear, Nystrom, Polynomial, RBF),
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
