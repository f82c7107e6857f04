"""What the rest of the library knows of the estimators in this folder."""

from __future__ import annotations

from mixent.base.registry import register
from mixent.data import Schema
from mixent.hmm.classifier import HMMClassifier
from mixent.hmm.describe import describe_classifier, describe_model
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
    state={**STATE, "chain_": FittedChain},
    parts=(ChainParams, ChainProblem, FittedChain, HMMPrior),
)(HiddenMarkovModel)
register(
    "hmm",
    task="classification",
    title="Bayes classifier with a hidden Markov model for each class",
    describe=describe_classifier,
    state={**STATE, "chains_": tuple},
)(HMMClassifier)
