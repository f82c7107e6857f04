"""Registration of the fusion estimator."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.few_rows import MOST, predictions
from mixent.base.registry import register, sizes_of
from mixent.base.saved_state import Part, Sizes, Values, check_values, free, index, maybe, real
from mixent.fusion.agreement import Agreement
from mixent.fusion.answers import Answers
from mixent.fusion.batch import Batch
from mixent.fusion.batch_priors import PriorEstimate, PriorShiftTest
from mixent.fusion.calibration import Calibration
from mixent.fusion.dependence import Dependence
from mixent.fusion.describe import describe_fusion, on_answers
from mixent.fusion.drift import Drift
from mixent.fusion.estimator import Fuser
from mixent.fusion.faults import Fault
from mixent.fusion.frozen import LogLinear, Mean, MeanRatio, Tempered, Vote, Weighted
from mixent.fusion.sources import Layout, Source

# --- files: C classes, J sources with S symbols in all, P patterns of answers ----------------------------------------


def fused_sizes(fuser: Fuser) -> dict[str, Any]:
    """Sizes of the fitted layout."""
    layout = fuser._fitted_layout
    return {**sizes_of(fuser), "S": sum(layout.sizes), "J": layout.n_sources}


def sources(layout: Layout, known: Sizes) -> Sizes:
    """J sources with names of their own."""
    if len(layout.names) != len(layout.sources) or len(set(layout.names)) != len(layout.names):
        raise ValueError("a source has no name of its own")
    return {"J": len(layout.names)}


def patterns(batch: Batch, known: Sizes) -> Sizes:
    """P patterns; an answer is a symbol of its source, or a distribution over them."""
    P, sizes = batch.answers.n_items, batch.layout.sizes
    if len(batch.answers.responses) != len(sizes):
        raise ValueError("the answers of a source are missing")
    for values, n_symbols in zip(batch.answers.responses, sizes):
        if values.ndim == 2:
            check_values({"responses": real("P S", 0.0)}, {"responses": values}, {"P": P, "S": n_symbols})
        else:
            symbols = index("P", below=n_symbols, low=-1)
            check_values({"responses": symbols}, {"responses": values}, {"P": P})
    return {"P": P}


RULE = {"prior": real("C", 0.0), "share": real("J", 0.0), "confusion": real("S C", 0.0)}


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
    if not valid:
        raise ValueError("posterior_ must have a column for each class")
    named = {name for fault in fuser.faults_ for name in getattr(fault, "sources", [None])}
    tests = [*fuser.drift_.values(), *fuser.agreement_.values()]
    if not all(isinstance(test, Drift | Agreement) for test in tests) or not named <= set(fuser._fitted_layout.names):
        raise ValueError("drift_ and agreement_ must contain tests, and faults_ faults of the sources")
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
        "prior_": real("C", 0.0),
        "posterior_": maybe(real("n C", 0.0)),
        "rule_": LogLinear | Mean | MeanRatio | Tempered | Vote | Weighted,
        "method_": str,
        "prior_estimate_": PriorEstimate,
        "dependence_": Dependence,
        "drift_": dict,
        "agreement_": dict,
        "faults_": tuple,
        "prior_shift_": PriorShiftTest,
        "warnings_": list,
        "_batch": Batch,
        "_first_layout": Layout,
        "_fitted_layout": Layout,
    },
    parts={
        LogLinear: {"weights": "S C", "offset": "C", "prior": RULE["prior"]},
        Mean: {**RULE, "root": index("J", below="J"), "trim": Values("", low=0.0, below=0.5)},
        MeanRatio: RULE,
        Tempered: {"weights": "S C", "prior": RULE["prior"], "power": real("", 0.0)},
        Vote: RULE,
        Weighted: {"trust": "J", **RULE},
        Answers: {},
        Batch: Part(
            {
                "weight": real("P", 0.0),
                "labels": index("P", below="C", low=-1),
                "pattern_of": index("n", below="P"),
            },
            patterns,
        ),
        Calibration: {},
        Dependence: {
            "z": free("J J"),
            "correlation": free("J J"),
            "n_effective": free(""),
            "overall_z": free(""),
            "std": free("J"),
        },
        Agreement: {"excess": free(""), "z": free(""), "p_value": free("")},
        Fault: {"p_value": real("", 0.0)},
        Drift: {"observed": free("s"), "expected": free("s"), "statistic": free(""), "p_value": free("")},
        Layout: Part(
            {
                "unanswered": index("u", below="J"),
                "left_out": index("l", below="J"),
                "relearned": index("r", below="J"),
            },
            sources,
        ),
        PriorShiftTest: {"statistic": free(""), "p_value": free(""), "robust_p_value": free("")},
        PriorEstimate: {
            **dict.fromkeys(("prior", "low", "high", "batch_std", "calibration_std"), free("C")),
            "covariance": free("C C"),
        },
        Source: {},
    },
    sizes=fused_sizes,
    predictions=lambda fuser: predictions(
        fuser, fuser._batch.answers.part(np.arange(min(fuser._batch.n_patterns, MOST)))
    ),
    to_file=without_derived,
    from_file=with_derived,
)(Fuser)
