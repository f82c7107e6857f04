"""Registration of the fusion estimator."""

from __future__ import annotations

import numpy as np

from mixent.base.registry import register
from mixent.fusion.answers import Answers
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import PriorEstimate, PriorShiftTest
from mixent.fusion.calibration import Calibration
from mixent.fusion.dependence import Dependence
from mixent.fusion.describe import describe_fusion, on_answers
from mixent.fusion.drift import Drift
from mixent.fusion.estimator import Fuser
from mixent.fusion.frozen import LogLinear, Mean, MeanRatio, Vote, Weighted
from mixent.fusion.sources import Layout, Source

RULES = (LogLinear, Mean, MeanRatio, Vote, Weighted)


def without_derived(fuser: Fuser) -> Fuser:
    """Remove derived attributes before saving, and store the names of items as an array of one type."""
    for name in ("_fitted", "labels_"):
        fuser.__dict__.pop(name, None)
    items = getattr(fuser, "items_", None)
    if items is not None and len({type(item) for item in items.tolist()} - {int, str}) == 0:
        plain = np.array(items.tolist())
        fuser.items_ = plain if plain.tolist() == items.tolist() else items  # in an array, mixed types become strings
    return fuser


def with_derived(fuser: Fuser) -> tuple[()]:
    """Check the posteriors of a loaded file and recompute the labels."""
    posterior, classes = fuser.posterior_, fuser.classes_
    valid = posterior is None or (posterior.ndim == 2 and posterior.shape[1] == len(classes))
    if not valid or not all(isinstance(test, Drift) for test in fuser.drift_.values()):
        raise ValueError("posterior_ must have a column for each class, and drift_ must contain tests of drift")
    fuser.labels_ = None if posterior is None else classes[posterior.argmax(axis=1)]
    items = getattr(fuser, "items_", None)
    fuser.items_ = items if items is None else items.astype(object)
    return ()


register(
    "fuser",
    task="fusion",
    title="Fusion of black-box classifiers",
    describe=describe_fusion,
    on_rows=on_answers,
    state={
        "classes_": np.ndarray,
        "prior_": np.ndarray,
        "posterior_": np.ndarray | None,
        "rule_": LogLinear | Mean | MeanRatio | Vote | Weighted,
        "method_": str,
        "prior_estimate_": PriorEstimate,
        "dependence_": Dependence,
        "drift_": dict,
        "prior_shift_": PriorShiftTest,
        "warnings_": list,
        "_batch": Batch,
        "_first_layout": Layout,
        "_fitted_layout": Layout,
    },
    parts=(*RULES, Answers, Batch, Calibration, Dependence, Drift, Layout, PriorShiftTest, PriorEstimate, Source),
    to_file=without_derived,
    from_file=with_derived,
)(Fuser)
