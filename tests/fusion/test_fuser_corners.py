"""Corners of the Fuser that were once wrong."""

import numpy as np
import pandas as pd
import pytest

from mixent.datasets import simulate_votes
from mixent.fusion import Calibration, Fuser

from .panels import Drawn, panel, with_copies


@pytest.mark.parametrize(("seed", "gap"), [(17, 1e-4), (19, 1e-3)])
def test_the_gap_of_a_batch_that_lacks_a_class(seed, gap):
    """The bound is looser there: the slope of a class without mass is anybody's, and the best one met is taken."""
    drawn = panel(seed, n=300, K=3, J=4, prior=[0.6, 0.4, 0.0], rows=400)
    assert 0 <= Fuser(drawn.sources, method="min-divergence").fit(drawn.answers).gap_ <= gap


def correlated(seed, copies):
    votes = simulate_votes(
        200, priors=(0.3, 0.7), n_sources=4, accuracy=0.75, correlation=0.6, n_calibration=80 + 10 * seed,
        random_state=seed,
    )  # fmt: skip
    sources = {
        name: Calibration.from_predictions(truth[j:], said[j:])
        for j, (name, (truth, said)) in enumerate(votes.labelled.items())
    }
    return with_copies(Drawn(sources, {n: v.tolist() for n, v in votes.answers.items()}, votes.truth), copies)


@pytest.mark.parametrize("copies", [1, 5, 20])
@pytest.mark.parametrize("method", ["discounted", "auto"])
@pytest.mark.parametrize("seed", range(4))
def test_declared_copies_change_nothing_where_sources_depend(method, seed, copies):
    alone, copied = (
        Fuser(d.sources, method=method).fit(d.answers) for d in (correlated(seed, 0), correlated(seed, copies))
    )
    assert copied.method_ == alone.method_
    np.testing.assert_allclose(copied.posterior_, alone.posterior_, atol=1e-9)


ABC = Calibration.from_counts(30 * np.eye(3) + 5, list("abc"))


@pytest.mark.parametrize("classes", [("a", "b"), ("b", "a")])
def test_labels_can_be_given_beside_a_source_of_scores_on_a_line(classes):
    line = Calibration(classes, classes, [[30, 5], [5, 30]], line=(1.0, 0.0))
    fuser = Fuser({"line": line, "votes": ABC}).fit(
        {"line": [1.0, -1.0] * 20, "votes": list("ab") * 20}, ["a"] + [None] * 39
    )
    assert fuser.posterior_[0].tolist() == [1, 0, 0]


def test_the_effective_number_is_not_lowered_by_declared_copies():
    drawn = panel(0, n=300, K=2, J=3, rows=300)
    alone, copied = (Fuser(d.sources).fit(d.answers).dependence_ for d in (drawn, with_copies(drawn, 20)))
    assert copied.n_effective == pytest.approx(alone.n_effective, rel=0.05)


def test_objectives_are_on_one_scale():
    drawn = panel(1, n=300, K=2, J=3)
    it, pool = (Fuser(drawn.sources, method=m).fit(drawn.answers).objective_ for m in ("min-divergence", "pool"))
    assert it >= pool  # the free posteriors reach a lower R than the pool's


def test_columns_of_a_frame_are_read_by_name():
    said = pd.DataFrame({"i": [0.1, 0.9], "h": [0.9, 0.1]})
    one = Calibration.from_predictions(["h", "i"], said)
    assert one.symbols == ("h", "i") and one.counts.tolist() == [[0.9, 0.1], [0.1, 0.9]]
    fuser = Fuser({"x": one}, method="product", class_prior="uniform").fit({"x": said})
    assert fuser.labels_.tolist() == ["h", "i"]
    with pytest.raises(ValueError, match="'the source'"):
        Calibration.from_predictions(["h", "i"], said.rename(columns={"i": "j"})[["h", "j"]])
    # names that are none of the symbols say nothing of the order
    assert Calibration.from_predictions(["h", "i"], said[["h", "i"]].set_axis(["a", "b"], axis=1)) == one


def test_a_label_never_said_may_still_be_said():
    one = Calibration.from_predictions(["h", "i"], ["h", "h"])
    assert one.symbols == ("h", "i")
    assert Calibration.from_predictions(["h", "i"], ["h", "unsure"]).symbols == ("h", "i", "unsure")
    assert Calibration.from_predictions(["h", "i"], ["no", "yes"]).symbols == ("no", "yes")


def test_bins_lie_where_a_rare_class_is_told():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [5000, 50])
    one = Calibration.from_scores(truth, rng.normal(truth * 4.0))
    assert (one.edges > 2).sum() >= 4  # by rows alone none would be
    mass = (one.counts / one.n_rows[:, None]).mean(axis=0)
    np.testing.assert_allclose(mass, 0.1, atol=0.02)
    with pytest.raises(ValueError, match="scores"):
        Calibration.from_scores([0, 1], ["low", "high"])
    with pytest.raises(ValueError, match="finite score"):
        Calibration.from_scores([0, 1, None, None], [np.nan, np.nan, 1.0, 2.0])
    with pytest.raises(ValueError, match="y_true"):
        Calibration.from_scores([[0.2, 0.8], [0.5, 0.5]], [1.0, 2.0])


def test_calibrations_compare_and_tell_themselves_shortly():
    one, other = (Calibration.from_counts([[9, 1], [2, n]], ["h", "i"]) for n in (8, 7))
    assert one == Calibration.from_json(one.to_json()) and hash(one) == hash(Calibration.from_json(one.to_json()))
    assert one != other and one != 3
    assert repr(one) == "Calibration(rows={'h': 10, 'i': 10}, symbols='h', 'i')"


def test_priors_may_be_given_by_class():
    votes = {"x": list("abc") * 5}
    named = Fuser({"x": ABC}, method="product", class_prior={"c": 1, "a": 2, "b": 3}).fit(votes)
    np.testing.assert_allclose(named.prior_, np.array([2, 3, 1]) / 6)
    with pytest.raises(ValueError, match="no probability"):
        Fuser({"x": ABC}, class_prior={"a": 1, "b": 1}).fit(votes)


def test_confusion_matrices_are_told_and_learned_anew():
    drawn = panel(3, n=400, K=2, J=4)
    fixed, learned = (Fuser(drawn.sources, method=m).fit(drawn.answers) for m in ("product", "dawid-skene"))
    for name, one in drawn.sources.items():
        np.testing.assert_array_equal(fixed.confusion_[name], one.confusion)
        np.testing.assert_allclose(learned.confusion_[name].sum(axis=1), 1.0)
    assert any(np.abs(fixed.confusion_[n] - learned.confusion_[n]).max() > 0.01 for n in drawn.sources)


def test_blocks_are_one_batch():
    drawn = panel(5, n=300, K=3, J=3)
    table = pd.DataFrame(drawn.answers)
    for method in ("ml-product", "min-divergence", "dawid-skene"):
        whole = Fuser(drawn.sources, method=method).fit(table)
        blocks = Fuser(drawn.sources, method=method).fit_blocks(table[a : a + 70] for a in range(0, 300, 70))
        assert blocks.posterior_ is None and blocks.labels_ is None
        assert blocks.n_items_ == 300 and blocks.n_patterns_ == whole.n_patterns_
        np.testing.assert_allclose(blocks.predict_proba(table), whole.posterior_, atol=1e-9)
    with pytest.raises(ValueError, match="least one item"):
        Fuser(drawn.sources).fit_blocks([])


def test_a_rule_by_it_keeps_its_priors_where_a_source_is_silent():
    """Constants of the classes stand with the classes, not in the weights of a source that may be silent."""
    drawn = panel(7, n=500, K=2, J=4, prior=[0.9, 0.1])
    fuser = Fuser(drawn.sources, method="min-divergence").fit(drawn.answers)
    some = {name: said[:50] for name, said in drawn.answers.items() if name != "s3"}
    share = fuser.predict_proba(some)[:, 0].mean()
    assert 0.7 < share < 1.0
    parts = fuser.explain(some)  # (n, J + 1, K)
    np.testing.assert_allclose(np.ptp(parts[:, -1], axis=0), 0.0, atol=1e-9)  # the priors' part is the same for all


@pytest.mark.parametrize("method", ["ml-product", "dawid-skene", "min-divergence", "auto"])
def test_labels_that_rule_out_a_class_for_the_whole_batch(method):
    """All items are labelled with one class: patterns without unlabelled items have weight and density zero."""
    sources = {"A": Calibration.from_counts([[9, 1], [2, 8]], classes=["a", "b"])}
    fuser = Fuser(sources, method=method).fit({"A": ["a", "b"]}, ["a", "a"])
    np.testing.assert_allclose(fuser.posterior_, [[1.0, 0.0], [1.0, 0.0]], atol=1e-9)
    assert np.isfinite([step.objective for step in fuser.history_]).all()
