"""What the rest of the library knows of the estimators in this folder."""

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
    """Leave out what is derived: labels are read off the posteriors, names of items become an array of one type."""
    for name in ("_fitted", "labels_"):
        fuser.__dict__.pop(name, None)
    items = getattr(fuser, "items_", None)
    if items is not None and len({type(item) for item in items.tolist()} - {int, str}) == 0:
        plain = np.array(items.tolist())
        fuser.items_ = plain if plain.tolist() == items.tolist() else items  # numbers among text would become text
    return fuser


def with_derived(fuser: Fuser) -> tuple[()]:
    """Check the posteriors and derive the labels anew."""
    posterior, classes = fuser.posterior_, fuser.classes_
    fits = posterior is None or (posterior.ndim == 2 and posterior.shape[1] == len(classes))
    if not fits or not all(isinstance(one, Drift) for one in fuser.drift_.values()):
        raise ValueError("posteriors or drifts do not fit the classes")
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
