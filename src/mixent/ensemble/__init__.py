"""Ensembles: boosting, and classifiers combined by maximum entropy or by hidden Markov models."""

from mixent.ensemble.boosting import AdaBoostM1Classifier, WeightBoostClassifier
from mixent.ensemble.columns import OutputColumns
from mixent.ensemble.hmm_stacking import HMMStackingClassifier
from mixent.ensemble.options import InputRegions
from mixent.ensemble.stacking import MaxEntStackingClassifier
from mixent.ensemble.tuned import TunedClassifier

__all__ = [
    "AdaBoostM1Classifier",
    "HMMStackingClassifier",
    "InputRegions",
    "MaxEntStackingClassifier",
    "OutputColumns",
    "TunedClassifier",
    "WeightBoostClassifier",
]
