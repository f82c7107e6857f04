"""Ensembles: boosting, and classifiers combined by maximum entropy or by hidden Markov models."""

from mixent.ensemble.adaboost import AdaBoostM1Classifier
from mixent.ensemble.hmm_stacking import HMMStackingClassifier
from mixent.ensemble.maxent_stacking import MaxEntStackingClassifier
from mixent.ensemble.output_columns import OutputColumns
from mixent.ensemble.tuned import TunedClassifier
from mixent.ensemble.weightboost import WeightBoostClassifier

__all__ = [
    "AdaBoostM1Classifier",
    "HMMStackingClassifier",
    "MaxEntStackingClassifier",
    "OutputColumns",
    "TunedClassifier",
    "WeightBoostClassifier",
]
