"""Registration of the estimators in this folder."""

from __future__ import annotations

from mixent.base.registry import register
from mixent.data import Schema
from mixent.hmm.classifier import HMMClassifier
from mixent.hmm.describe import classifier_on_rows, describe_classifier, describe_model, model_on_rows
from mixent.hmm.estimators import HiddenMarkovModel
from mixent.hmm.fitting import FittedChain
from mixent.hmm.options import HMMPrior
from mixent.hmm.problem import ChainParams, ChainProblem

STATE = {"schema_": Schema, "variables_": Schema, "by_row_": bool}

register(
    "hmm-density",
    task="density",
    title="Hidden Markov model",
    describe=describe_model,
    on_rows=model_on_rows,
    state={**STATE, "chain_": FittedChain},
    parts=(ChainParams, ChainProblem, FittedChain, HMMPrior),
)(HiddenMarkovModel)
register(
    "hmm",
    task="classification",
    title="Bayes classifier with a hidden Markov model for each class",
    describe=describe_classifier,
    on_rows=classifier_on_rows,
    state={**STATE, "chains_": tuple},
)(HMMClassifier)
