"""Wording of evaluate, displays."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis

from mixent import SharedMixtureClassifier
from mixent.displays import (
    ConvergenceDisplay,
    ExplanationDisplay,
    ReliabilityDisplay,
)

from ...evaluate.test_displays import Gaussians, X, Y, drawn, explanation, step


def test_kind_must_be_top_or_class_with_the_probabilities():
    model = Gaussians().fit(X, Y)
    both = {"Gaussians": model.predict_proba(X), "uniform": np.full((150, 3), 1 / 3)}
    for proba, kind in ((both["uniform"], "each"), (both, "class")):
        with pytest.raises(ValueError, match='kind must be "top", or "class" with the probabilities of one method'):
            ReliabilityDisplay.from_predictions(Y, proba, kind=kind)


def test_the_trace_is_empty():
    drawn(ConvergenceDisplay.from_trace((step(1, -3.0, "start"),)))
    with pytest.raises(ValueError, match="the trace is empty"):
        ConvergenceDisplay.from_trace(())


def test_a_vs_b_log_odds_nats_probability_e():
    title = drawn(explanation([25.0], probability=1 - 1e-11)).get_title()
    assert title == "a vs b\nlog-odds 25 nats, probability 1 − 1e-11"
    title = drawn(explanation([8.5], probability=0.9998)).get_title()
    assert title == "a vs b\nlog-odds 8.5 nats, probability 0.9998"


def test_explanation_of_frames_and_of_rows_that_are_not_there():
    import pandas as pd

    frame = pd.DataFrame(X, columns=list("abcd"))
    model = SharedMixtureClassifier(3, "VVI", random_state=0).fit(frame, Y)
    assert ExplanationDisplay.from_estimator(model, frame, 3).label == "setosa"
    with pytest.raises(ValueError, match="X has 150 rows, numbered from 0; got row 150"):
        ExplanationDisplay.from_estimator(model, frame, 150)
    with pytest.raises(ValueError, match="X has 1 row, numbered from 0; got row -1"):
        ExplanationDisplay.from_estimator(model, frame[:1], -1)
    with pytest.raises(TypeError, match="has no explain; see the capability table"):
        ExplanationDisplay.from_estimator(QuadraticDiscriminantAnalysis().fit(X, Y), X)
