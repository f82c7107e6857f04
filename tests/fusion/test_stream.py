"""Items that arrive in parts: one fit to all of them, computed when a result is read."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent.fusion import Fuser, estimator
from mixent.fusion.answers import read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.sources import Layout
from mixent.fusion.stream import MIN_JOINED, Items

from .panels import METHODS, SEARCHED, panel, taken

COMPUTED = [name for name, value in vars(Fuser).items() if isinstance(value, estimator.Computed) and name[0] != "_"]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


@pytest.fixture
def n_fits(monkeypatch):
    """Numbers of fits and of tests of the sources so far."""
    counts = {"fits": 0, "tests": 0}
    original_fit, original_tests = estimator.METHODS["ml-product"], estimator.source_tests

    def fit(task):
        counts["fits"] += 1
        return original_fit(task)

    def tests(*args):
        counts["tests"] += 1
        return original_tests(*args)

    monkeypatch.setitem(estimator.METHODS, "ml-product", fit)
    monkeypatch.setattr(estimator, "source_tests", tests)
    return counts


def parts(drawn, y, size, n):
    for a in range(0, n, size):
        rows = list(range(a, min(a + size, n)))
        yield taken(drawn.answers, rows), [y[r] for r in rows], np.where(np.array(rows) % 3, 1.0, 2.0)


def few_labels(drawn):
    return [label if i % 8 == 0 else None for i, label in enumerate(drawn.truth)]


def numbers(fuser):
    """All diagnostics as numbers."""
    estimate, tests = fuser.prior_estimate_, [*fuser.drift_.values(), *fuser.agreement_.values()]
    return {
        "prior": fuser.prior_,
        "interval": np.array([estimate.low, estimate.high]),
        "z": fuser.dependence_.z,
        "tests": np.array([test.p_value for test in tests]),
        "shift": np.array([fuser.prior_shift_.statistic, fuser.prior_shift_.robust_p_value]),
        "n": np.array([fuser.n_items_]),
        "rates": np.concatenate([*fuser.confusion_.values()]),
    }


def same(a, b, atol=1e-9):
    before, after = numbers(a), numbers(b)
    for name in before:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-6, atol=atol, err_msg=name)
    assert a.method_ == b.method_ and a.faults_ == b.faults_ and a.warnings_ == b.warnings_


@pytest.mark.parametrize("kind", ["hard", "soft"])
@pytest.mark.parametrize("method", METHODS)
def test_parts_with_labels_and_weights_are_one_fit(method, kind):
    drawn = panel(1, n=60, K=2, J=3, kind=kind, gaps=0.1)
    y, weight = few_labels(drawn), np.where(np.arange(60) % 3, 1.0, 2.0)
    whole = Fuser(drawn.sources, method=method).fit(drawn.answers, y, sample_weight=weight)
    stream, blocks = Fuser(drawn.sources, method=method), Fuser(drawn.sources, method=method)
    for answers, labels, weights in parts(drawn, y, 7, 60):
        stream.partial_fit(answers, labels, sample_weight=weights)
    blocks.fit_blocks(parts(drawn, y, 7, 60))
    atol = 1e-5 if whole.method_ in SEARCHED else 1e-8
    for other in (stream, blocks):
        np.testing.assert_allclose(other.predict_proba(drawn.answers), whole.predict_proba(drawn.answers), atol=atol)
        if whole.method_ not in SEARCHED:
            same(whole, other)
    np.testing.assert_allclose(stream.posterior_, whole.posterior_[-4:], atol=atol)
    assert blocks.posterior_ is None and blocks.labels_ is None


def test_blocks_and_their_order_change_nothing():
    drawn = panel(2, n=60, K=3, J=3, kind="mixed")
    y = few_labels(drawn)
    for size in (1, 13, 60):
        several = list(parts(drawn, y, size, 60))
        forwards, backwards = (Fuser(drawn.sources).fit_blocks(order) for order in (several, several[::-1]))
        same(forwards, backwards, atol=1e-6)
    without = Fuser(drawn.sources).fit_blocks([answers for answers, _, _ in several])
    same(without, Fuser(drawn.sources).fit(drawn.answers))
    labelled = Fuser(drawn.sources).fit_blocks([(answers, labels) for answers, labels, _ in several])
    same(labelled, Fuser(drawn.sources).fit(drawn.answers, y))


def test_nothing_is_computed_before_it_is_read(n_fits):
    drawn = panel(3, n=50, K=2, J=3)
    fuser = Fuser(drawn.sources, method="ml-product").fit(drawn.answers)
    assert n_fits == {"fits": 1, "tests": 0}
    for i in range(20):
        fuser.partial_fit(taken(drawn.answers, [i]))
    assert n_fits == {"fits": 1, "tests": 0} and fuser.n_items_ == 70
    assert fuser.posterior_.shape == (1, 2) and fuser.prior_.shape == (2,)
    assert n_fits == {"fits": 2, "tests": 0}
    assert fuser.drift_.keys() == fuser.agreement_.keys() == drawn.sources.keys()
    assert n_fits == {"fits": 2, "tests": 1}


@pytest.mark.parametrize("name", COMPUTED)
def test_every_attribute_may_be_the_first_that_is_read(name):
    drawn = panel(4, n=40, K=2, J=3)
    early, late = (Fuser(drawn.sources).fit(taken(drawn.answers, range(30))) for _ in range(2))
    stale = str(getattr(early, name))
    for fuser in (early, late):
        fuser.partial_fit(taken(drawn.answers, range(30, 40)))
    late.predict_proba(drawn.answers)
    assert str(getattr(early, name)) == str(getattr(late, name))
    if name not in ("trust_", "gap_", "confusion_", "method_", "faults_", "n_patterns_", "warnings_", "history_"):
        assert str(getattr(early, name)) != stale


def test_attributes_are_absent_before_the_first_fit():
    fuser = Fuser(panel(4).sources)
    assert COMPUTED and not any(hasattr(fuser, name) for name in COMPUTED)
    assert pickle.loads(pickle.dumps(fuser)).get_params().keys() == fuser.get_params().keys()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda fuser: pickle.loads(pickle.dumps(fuser))])
def test_copies_are_complete(copied):
    drawn = panel(5, n=60, K=2, J=3, kind="mixed")
    fuser = Fuser(drawn.sources).fit(taken(drawn.answers, range(40))).partial_fit(taken(drawn.answers, range(40, 60)))
    other = copied(fuser)
    assert all(name in vars(other) for name in COMPUTED)
    same(fuser, other)
    same(*(one.partial_fit(drawn.answers) for one in (fuser, other)))


def test_the_window_is_that_of_the_items_so_far():
    drawn, later = panel(6, n=80, K=2, J=3), panel(7, n=80, K=2, J=3)
    whole = Fuser(drawn.sources).fit(drawn.answers).update_prior(later.answers)
    stream = Fuser(drawn.sources).fit(taken(drawn.answers, range(50))).partial_fit(taken(drawn.answers, range(50, 80)))
    same(whole, stream.update_prior(later.answers))


def test_a_part_that_cannot_be_read_changes_nothing():
    drawn = panel(8, n=40, K=2, J=3)
    fuser = Fuser(drawn.sources, unknown="error").fit(drawn.answers)
    before = fuser.posterior_
    with pytest.raises(ValueError, match="among"):
        fuser.partial_fit({"s0": ["no such answer"]})
    assert fuser.posterior_ is before and fuser.n_items_ == 40


def test_the_level_of_the_tests_is_that_of_the_fit():
    drawn = panel(9, n=80, K=2, J=3)
    fuser = Fuser(drawn.sources, confidence=0.8).fit(drawn.answers).set_params(confidence=0.99)
    assert fuser.prior_estimate_.confidence == 0.8


@pytest.mark.parametrize("kind", ["hard", "soft"])
def test_the_work_for_an_item_does_not_grow_with_their_number(kind, monkeypatch):
    drawn = panel(10, n=1, K=2, J=2, kind=kind)
    layout = Layout.of(drawn.sources)
    one = Batch(layout, read_answers(layout, drawn.answers), np.ones(1), np.full(1, -1))
    joined, n, original = [], 12 * MIN_JOINED, Batch.joined

    def counted(self, *others):
        joined.append(self.n_patterns + sum(part.n_patterns for part in others))
        return original(self, *others)

    monkeypatch.setattr(Batch, "joined", counted)
    items = Items(one)
    for _ in range(n):
        items.add(one)
    assert items.joined().weight.sum() == n + 1
    assert sum(joined) <= 4 * n and len(joined) <= 14
