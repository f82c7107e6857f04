"""Registration of the estimators in this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from mixent.base.few_rows import LEAST, few_rows, predictions
from mixent.base.registry import register, sizes_of, sizes_of_columns
from mixent.base.saved_state import Several, free, index, log_shares, positive, real, shares
from mixent.data import Schema
from mixent.families.poisson import PoissonFamily, Poissons
from mixent.hmm.classifier import HMMClassifier
from mixent.hmm.describe import classifier_on_rows, describe_classifier, describe_model, model_on_rows
from mixent.hmm.estimators import HiddenMarkovModel
from mixent.hmm.fitting import FittedChain
from mixent.hmm.options import HMMPrior
from mixent.hmm.problem import ChainParams, ChainProblem


def few_sequences(model: Any) -> tuple[Any, dict[str, Any]]:
    """A few rows, steps of short sequences unless a row is a sequence, and the further arguments of methods."""
    rows: Any = few_rows(model.schema_)
    if model.by_row_:
        return rows, {}
    lengths, chains = [1] * rows.n_rows, model._chains()
    if all(chain.params.log_trans.ndim == 2 for chain in chains):  # else a sequence has as many steps as in training
        lengths = [LEAST, *lengths[LEAST:]]
    precomputed = any(chain.problem.family is None for chain in chains)  # rows are log-likelihoods of the states
    return rows.X if precomputed else rows, {"lengths": lengths}


def sequence_predictions(model: Any) -> Iterator[tuple[str, Any]]:
    """The predictions for a few sequences."""
    rows, more = few_sequences(model)
    return predictions(model, rows, **more)


STATE = {
    "schema_": Schema,
    "variables_": Schema,
    "by_row_": bool,
    "varying_": index("d", below="c"),
    "constants_": free("c"),
}


def sizes_of_steps(model: Any) -> dict[str, Any]:
    """The sizes of the variables of a step."""
    return sizes_of(model) | sizes_of_columns(model.variables_)


register(
    "hmm-density",
    task="density",
    title="Hidden Markov model",
    describe=describe_model,
    on_rows=model_on_rows,
    state={"chain_": FittedChain, **STATE},
    parts={
        ChainParams: {"log_start": log_shares("K"), "log_trans": log_shares("K K | t K K"), "repairs": index("")},
        ChainProblem: {},
        FittedChain: {},
        HMMPrior: {},
        PoissonFamily: {"mean": positive("d"), "events": real("", 0.0), "n_components": index("")},
        Poissons: {"rates": positive("K d")},
    },
    sizes=sizes_of_steps,
    parameters=lambda model: model._check_options(),
    predictions=sequence_predictions,
)(HiddenMarkovModel)
register(
    "hmm",
    task="classification",
    title="Bayes classifier with a hidden Markov model for each class",
    describe=describe_classifier,
    on_rows=classifier_on_rows,
    state={
        **STATE,
        "classes_": np.ndarray,
        "class_prior_": shares("C"),
        "chains_": Several(FittedChain, "C"),
    },
    sizes=sizes_of_steps,
    parameters=lambda model: model._check_options(),
    predictions=sequence_predictions,
)(HMMClassifier)
