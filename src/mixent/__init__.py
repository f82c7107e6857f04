"""mixent: probabilistic classification by mixtures and maximum entropy."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.3.0"

# public name -> module; imported on first use, so that `import mixent` stays cheap
_HOMES = {
    "GaussianMixture": "mixent.mixtures",
    "MixtureClassifier": "mixent.mixtures",
    "SharedMixtureClassifier": "mixent.mixtures",
    "HMMClassifier": "mixent.hmm",
    "HiddenMarkovModel": "mixent.hmm",
    "AdaBoostM1Classifier": "mixent.ensemble",
    "HMMStackingClassifier": "mixent.ensemble",
    "MaxEntStackingClassifier": "mixent.ensemble",
    "TunedClassifier": "mixent.ensemble",
    "WeightBoostClassifier": "mixent.ensemble",
    "MaxEntClassifier": "mixent.maxent",
    "MaxEntJoint": "mixent.maxent",
    "FisherKernel": "mixent.med",
    "MEDBayesNetClassifier": "mixent.med",
    "MEDClassifier": "mixent.med",
    "MEDGaussianClassifier": "mixent.med",
    "MEDNoveltyDetector": "mixent.med",
    "MEDTreeClassifier": "mixent.med",
    "KernelFisherClassifier": "mixent.classical",
    "ParzenClassifier": "mixent.classical",
    "Calibration": "mixent.fusion",
    "Fuser": "mixent.fusion",
    "Source": "mixent.fusion",
    "DataWarning": "mixent.data",
    "config_context": "mixent.data",
    "capabilities": "mixent.overview",
    "compare": "mixent.comparison",
    "explain": "mixent.base.foreign",
    "save": "mixent.persistence",
    "load": "mixent.persistence",
}

_MODULES = ("data", "datasets", "displays", "evaluate", "options", "persistence", "plugins", "report", "studies")

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"mixent.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'mixent' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
