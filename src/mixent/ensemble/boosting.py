"""Boosting: classifiers trained in turn, with weights on the rows that the last ones got wrong.

Bagging, where they are trained apart from one another, is `sklearn.ensemble.BaggingClassifier`.
"""

from mixent.ensemble.adaboost import AdaBoostM1Classifier
from mixent.ensemble.boosted import Boosted
from mixent.ensemble.weightboost import WeightBoostClassifier

__all__ = ["AdaBoostM1Classifier", "Boosted", "WeightBoostClassifier"]
