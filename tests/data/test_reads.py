"""A table is read once per fit and once per call of any other method, labels and weights once per fit."""

import inspect
import warnings
from collections import Counter

import pytest

import mixent
import mixent.data.features
import mixent.data.labels
import mixent.data.weights
import mixent.evaluate

from ..subjects import SUBJECTS, TABLE, WEIGHT, Y

HANDED_ON = {  # fits of other estimators inside, each of which reads its labels and weights
    "AdaBoostM1Classifier": 3,
    "WeightBoostClassifier": 9,
    "MaxEntStackingClassifier": 6,
    "HMMStackingClassifier": 6,
    "FisherKernel": 1,
    "kernel of sequences": 1,
    "stack of naive Bayes": 12,
}


@pytest.fixture
def reads(monkeypatch):
    """How often tables, labels and weights of users have been read."""
    counts = Counter()

    def counted(module, name, what):
        read = getattr(module, name)

        def reading(*args, **options):
            counts[what] += 1
            return read(*args, **options)

        monkeypatch.setattr(module, name, reading)

    counted(mixent.data.features, "read_source", "table")
    counted(mixent.data.labels, "_open", "labels")
    counted(mixent.data.weights, "_check_finite", "weights")
    return counts


def called(model, X):
    """Every public method that takes X, with its name."""
    for name, method in inspect.getmembers(model, callable):
        if name.startswith("_") or name in ("fit", "partial_fit", "fit_predict", "fit_transform"):
            continue
        parameters = inspect.signature(method).parameters
        if "X" in parameters:
            few = {"n_resamples": 3} if "n_resamples" in parameters else {}
            yield name, method, ({"y": Y} if "y" in parameters else {}) | few


@pytest.mark.parametrize("name", [name for name in SUBJECTS if name != "Fuser"])
def test_once_per_fit_and_once_per_call(name, reads):
    subject = SUBJECTS[name]
    weighted = {} if name in ("TunedClassifier",) else {"sample_weight": WEIGHT}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = subject.fit(y=Y if subject.takes_y else None, **weighted)
        assert reads["table"] == 1
        assert reads["labels"] <= 1 + HANDED_ON.get(name, 0)
        assert reads["weights"] <= 1 + HANDED_ON.get(name, 0)
        for method, call, more in called(model, subject.X):
            reads.clear()
            result = call(subject.X, **more)
            if inspect.isgenerator(result):
                list(result)
            assert reads["table"] == 1, method


@pytest.mark.parametrize(
    "method", ["mixture", "linear MED", pytest.param("stack", marks=pytest.mark.slow), "naive Bayes"]
)
def test_a_comparison_reads_its_table_once(method, reads):
    found = mixent.compare(
        TABLE, Y, methods=[method], baselines=False, folds=2, n_jobs=1, sample_weight=WEIGHT, categorical=["color"]
    )
    fits = 3 * (1 + 24 * (method == "stack"))  # two folds and the winner; in a stack four classifiers, each in six fits
    assert found.winner is not None and not found.cv.failures
    assert reads["table"] == 1
    assert reads["labels"] <= 15 + fits and reads["weights"] <= 1 + fits


def test_cross_validation_reads_its_table_once(reads):
    methods = {"mixture": SUBJECTS["MixtureClassifier"].model, "net": SUBJECTS["MEDBayesNetClassifier"].model}
    assert not mixent.evaluate.cross_validate(methods, TABLE, Y, folds=2, sample_weight=WEIGHT).failures
    assert reads == {"table": 1, "labels": 1 + 2 * 4, "weights": 1 + 4}
