"""Batches and calibrations on which a careless fusion is silently wrong."""

import numpy as np
import pandas as pd
import pytest

from mixent.fusion import Calibration, Fuser, Source, long_answers

from .panels import panel

PAIR = {
    "A": Calibration.from_counts([[90, 10], [20, 80]], ["h", "i"]),
    "B": Calibration.from_counts([[70, 30], [10, 90]], ["h", "i"]),
}
RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_few_items_are_not_certain(n):
    fuser = Fuser(PAIR).fit({"A": ["i"] * n, "B": ["i"] * n})
    assert 0.8 < fuser.posterior_[0, 1] < 0.995
    assert not fuser.prior_shift_.significant and np.isnan(fuser.prior_shift_.robust_p_value)
    assert np.isnan([d.p_value for d in fuser.drift_.values()]).all() and np.isnan(fuser.dependence_.z).all()
    assert np.ptp([fuser.prior_estimate_.low, fuser.prior_estimate_.high], axis=0).min() > 0.2
    fuser.update_prior({"A": ["h"], "B": ["h"]})
    assert 0.05 < fuser.prior_[1] < 0.5


def test_intervals_of_few_items_hold_the_truth():
    inside = []
    for seed in range(150):
        drawn = panel(seed, n=10, K=2, J=3, prior=[0.7, 0.3], rows=300)
        found = Fuser(drawn.sources, method="product").fit(drawn.answers).prior_estimate_
        inside.append(found.low[0] <= 0.7 <= found.high[0])
    assert np.mean(inside) > 0.85


def test_the_interval_carries_what_a_source_was_never_calibrated_on():
    inside = []
    for seed in range(80):
        drawn = panel(seed, n=600, K=3, J=3, prior=[0.4, 0.3, 0.3], rows=300)
        two = Calibration.from_counts(np.delete(drawn.sources["s0"].counts, 2, axis=0), ["a", "b"], ["a", "b", "c"])
        found = Fuser({**drawn.sources, "s0": two}, method="product").fit(drawn.answers).prior_estimate_
        inside.append((found.low <= [0.4, 0.3, 0.3]) & (found.high >= [0.4, 0.3, 0.3]))
    assert np.mean(inside, axis=0).min() > 0.85


def test_a_class_that_no_source_knows_is_refused():
    one = Calibration.from_counts([[20, 5], [5, 20], [0, 0]], list("abc"), list("ab"))
    with pytest.raises(ValueError, match="calibration rows"):
        Fuser({"x": one}).fit({"x": ["a", "b"]})
    assert Fuser({"x": one}).fit({"x": list("ab") * 9}, [*"abc", *[None] * 15]).classes_.tolist() == list("abc")


def contextual(seed, n=3000, tied=0.0):
    """Three cameras whose accuracy hangs on a cell; `tied`: how far the cell goes with the class."""
    rng = np.random.default_rng(seed)

    def draw(n, share):
        truth = (rng.random(n) < share).astype(int)
        answers = {}
        for name in "ABC":
            cell = np.where(rng.random(n) < tied, truth, rng.integers(0, 2, n))
            right = rng.random(n) < np.where(cell == 0, 0.9, 0.65)
            answers[name], answers[f"{name}@"] = np.where(right, truth, 1 - truth), cell
        return truth, answers

    truth, said = draw(4000, 0.5)
    sources = {
        name: Calibration.from_predictions(truth, said[name], cells=said[f"{name}@"], context=True) for name in "ABC"
    }
    return sources, *draw(n, 0.2)


def test_pairs_of_sources_with_a_context_are_not_judged():
    sources, truth, answers = contextual(0)
    fuser = Fuser(sources).fit(answers)
    assert np.isnan(fuser.dependence_.z).all()
    assert (fuser.labels_ != truth).mean() < 0.12
    assert fuser.prior_estimate_.low[1] < 0.2 < fuser.prior_estimate_.high[1]


def test_a_context_that_goes_with_the_class_does_not_move_the_priors_of_others():
    sources, truth, answers = contextual(1, tied=0.8)
    plain = panel(3, n=1, K=2, J=1, rows=10)  # any plain source: the estimate is its alone
    assert plain.sources["s0"].context is False
    fixed = {**sources, "D": Calibration.from_counts([[1800, 200], [200, 1800]], [0, 1])}
    said = np.where(np.random.default_rng(2).random(len(truth)) < 0.9, truth, 1 - truth)
    found = Fuser(fixed, method="product").fit({**answers, "D": said}).prior_estimate_
    assert found.low[1] < 0.2 < found.high[1] and found.high[1] - found.low[1] < 0.1


def test_a_source_of_fewer_classes_vetoes_none():
    other = Calibration.from_counts(80 * np.eye(3) + 10, list("abc"))
    narrow = Calibration.from_predictions(
        list("abc") * 30, np.array([[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]] * 30), list("ab")
    )
    even = Fuser({"n": narrow}, method="product", class_prior="uniform").fit({"n": [[0.5, 0.5]] * 3})
    np.testing.assert_allclose(even.posterior_[0], 1 / 3, atol=0.02)
    zeros = Calibration.from_predictions(list("abc") * 30, np.array([[0.8, 0.2, 0], [0.2, 0.8, 0], [0.5, 0.5, 0]] * 30))
    fuser = Fuser({"z": zeros, "o": other}, method="product", class_prior="uniform")
    assert fuser.fit({"z": [[0.5, 0.5, 0]], "o": ["c"]}).posterior_[0, 2] > 0.5


def test_labels_are_counted_once_by_dawid_and_skene():
    truth = RNG.choice(["h", "i"], 40)
    said = np.where(RNG.random(40) < 0.8, truth, "i")
    learned = Fuser({"A": PAIR["A"]}, method="dawid-skene").fit({"A": said}, truth).confusion_["A"]
    counted = PAIR["A"].counts + 0.5
    for k, label in enumerate("hi"):
        for v, symbol in enumerate("hi"):
            counted[k, v] += ((truth == label) & (said == symbol)).sum()
    np.testing.assert_allclose(learned, counted / counted.sum(axis=1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize("kind", ["hard", "soft"])
@pytest.mark.parametrize(
    "method", ["auto", "ml-product", "ml-sum", "composite", "trimmed-mean", "pool", "discounted", "majority"]
)
def test_the_same_batch_again_moves_no_prior(method, kind):
    drawn = panel(11, n=300, K=2, J=4, kind=kind, prior=[0.8, 0.2])
    fuser = Fuser(drawn.sources, method=method).fit(drawn.answers)
    before = fuser.prior_
    fuser.update_prior(drawn.answers)
    np.testing.assert_allclose(fuser.prior_, before, atol=1e-5)


def test_a_window_is_looked_at_anew():
    drawn = panel(12, n=400, K=2, J=4, prior=[0.85, 0.15])
    fuser = Fuser(drawn.sources).fit(drawn.answers)
    turned = {**drawn.answers, "s0": [{"a": "b", "b": "a"}[v] for v in drawn.answers["s0"]]}
    fuser.update_prior(turned)
    assert [fault.sources for fault in fuser.faults_] == [("s0",)] and fuser.drift_["s0"].p_value < 1e-3


def test_items_nobody_answered_do_not_pull_the_priors():
    drawn = panel(13, n=300, K=2, J=3, prior=[0.9, 0.1])
    holes = {name: [*said, *[None] * 300] for name, said in drawn.answers.items()}
    for method in ("min-divergence", "ml-product", "composite", "dawid-skene", "pool"):
        whole, half = (Fuser(drawn.sources, method=method).fit(a) for a in (drawn.answers, holes))
        np.testing.assert_allclose(half.prior_, whole.prior_, atol=0.02)
        np.testing.assert_allclose(half.posterior_[-1], half.prior_, atol=0.02)


def test_a_symbol_that_tells_nothing_is_no_silence():
    close = [
        Calibration.from_rates([[0.8, 0.1, 0.1], [0.1, 0.8, x]], 1e6, ["h", "i"], ["h", "i", "unsure"]) for x in (0.1,)
    ]
    sources = {"A": Calibration.from_rates([[0.9, 0.1], [0.1, 0.9]], 1e6, ["h", "i"]), "B": close[0]}
    fuser = Fuser(sources, method="sum", class_prior="uniform").fit({"A": ["h"], "B": ["unsure"]})
    np.testing.assert_allclose(fuser.posterior_[0, 0], 0.7, atol=1e-3)


def test_a_copy_speaks_for_those_that_are_silent():
    copied = {**PAIR, "A2": Calibration.from_counts(PAIR["A"].counts, ["h", "i"], copy_of="A")}
    votes = {"A": ["h", "i"] * 40, "B": ["h", "i", "i", "h"] * 20}
    alone = Fuser(PAIR, method="ml-product").fit(votes)
    mute = Fuser(copied, method="ml-product").fit({**votes, "A2": [None] * 80})
    np.testing.assert_allclose(mute.posterior_, alone.posterior_, atol=1e-9)
    for method in ("product", "ml-product", "pool", "discounted"):
        gaps = {**votes, "A": ["h", None] * 40, "A2": [None, "i"] * 40}
        a, b = Fuser(PAIR, method=method).fit(votes), Fuser(copied, method=method).fit(gaps)
        if "product" in method:  # the others see the copies' answers as those of half the items each
            np.testing.assert_allclose(a.posterior_, b.posterior_, atol=1e-6)
        np.testing.assert_allclose(b.fuse_one({"A2": "i"})["i"], b.fuse_one({"A": "i"})["i"], atol=1e-6)
        np.testing.assert_allclose(b.fuse_one({"A": "i"})["i"], b.fuse_one({"A": "i", "A2": "i"})["i"], atol=1e-6)


def test_a_copy_without_a_set_has_that_of_its_original():
    one = Calibration.from_counts(PAIR["A"].counts, ["h", "i"], calibration_set="lab")
    other = Calibration.from_counts(PAIR["A"].counts, ["h", "i"], copy_of="A")
    assert Fuser({"A": one, "A2": other}).fit({"A": ["h"], "A2": ["h"]})._fitted_layout.calibration_sets == [[0, 1]]


def test_scores_that_part_the_classes_do_not_make_a_ratio_infinite():
    one = Calibration.from_scores([0] * 10 + [1] * 10, np.linspace(0, 1, 20), ratio=True)
    assert abs(one.line[0] + 2 * one.line[1]) < 1e-6 and one.line[0] * 0.5 < 5


def test_what_explains_many_sources_is_exact():
    many = {f"s{j}": PAIR["A"] for j in range(400)}
    fuser = Fuser(many, method="product", class_prior=[0.6, 0.4]).fit({name: ["i"] for name in many})
    np.testing.assert_allclose(fuser.explain({name: ["i"] for name in many})[0, -1], [0.2027, -0.2027], atol=1e-3)


@pytest.mark.parametrize("power", [0.5, 1.0, 3.0])
def test_a_scale_mends_probabilities_that_are_too_sure_or_too_timid(power):
    """Honest log-odds times a power; the calibration's rows have other shares than its training had."""
    rng = np.random.default_rng(4)

    def draw(n, share):
        truth = (rng.random(n) < share).astype(int)
        x = rng.normal(2 * truth - 1, 1.0)
        high = 1 / (1 + np.exp(-power * (2 * x + np.log(0.3 / 0.7))))
        return truth, np.column_stack([1 - high, high])

    scaled = Calibration.from_predictions(*draw(3000, 0.5))
    assert abs(scaled.scale[0] - 1 / power) < 0.15 / power
    truth, said = draw(3000, 0.1)
    fuser = Fuser({"x": scaled}, method="ml-product").fit({"x": said})
    np.testing.assert_allclose(fuser.prior_[1], truth.mean(), atol=0.03)
    assert Calibration.from_json(scaled.to_json()) == scaled


def test_counts_are_read_by_name():
    table = pd.DataFrame([[80, 20], [10, 90]], index=["i", "h"], columns=["i", "h"])
    assert Calibration.from_counts(table, classes=["h", "i"]).counts.tolist() == [[90, 10], [20, 80]]


def test_slips_are_told():
    with pytest.raises(ValueError, match="300 different numbers"):
        Calibration.from_predictions(RNG.integers(0, 2, 300), RNG.random(300))
    with pytest.raises(ValueError, match="same type"):
        Calibration.from_predictions([0, 1], ["0", "1"])
    with pytest.raises(ValueError, match="'A' must be"):
        Fuser(PAIR).fit({"A": [0.2, 0.8]})
    assert Calibration.from_counts([[9, 1], [2, 8]], ["h", "i"], priors={"i": 0.3, "h": 0.7}).priors.tolist() == [
        0.7,
        0.3,
    ]
    cells = pd.DataFrame({"day": [0.5, 1.0], "night": [0.5, 0.0]})
    assert Calibration.from_predictions(["h", "i"], ["h", "i"], cells=cells).cells == ("day", "night")
    assert Fuser(PAIR).fit({"A": ["h", "i"]}).fuse_one({"A": np.str_("i")})["i"] > 0.5


def test_long_tables_of_verdicts_with_confidence():
    table = pd.DataFrame(
        {
            "item": [1, 2, 3, 1, 2, 3],
            "source": ["J"] * 3 + ["L"] * 3,
            "value": ["good", "bad", "good", "good", "bad", "bad"],
            "p": [0.9, 0.8, None, None, None, None],
        }
    )
    turned = long_answers(table, probability="p")
    assert turned.values["L"].tolist() == ["good", "bad", "bad"]  # it never gives a probability: these are labels
    judge = Calibration.from_predictions(["good", "bad"] * 20, [[0.31, 0.69], [0.77, 0.23]] * 20)
    said = Fuser({"J": judge, "L": Calibration.from_counts([[9, 1], [1, 9]], ["bad", "good"])}).fit(turned)
    # the other symbol has the rest, and a blank is no answer
    np.testing.assert_allclose(said._batch.answers.responses[0], [[0.1, 0.9], [0.8, 0.2], [0, 0]])


def test_probabilities_through_the_confusion_matrix_are_those_of_a_doubted_label():
    """A pmf of one symbol is the label itself."""
    hot = {"A": [[0.0, 1.0], [1.0, 0.0]], "B": [[0.0, 1.0], [0.0, 1.0]]}
    doubted = {name: Source(one, as_is=False) for name, one in PAIR.items()}
    a = Fuser(doubted, method="product").fit(hot).posterior_
    np.testing.assert_allclose(a, Fuser(PAIR, method="product").fit({"A": ["i", "h"], "B": ["i", "i"]}).posterior_)


def test_symbols_that_are_not_named_share_the_rest():
    three = Calibration.from_predictions(
        list("abc") * 30, np.tile([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], (30, 1))
    )
    fuser = Fuser({"x": three}, method="min-divergence").fit(
        {"x": {"a": [0.6, 0.2, np.nan], "b": [np.nan, 0.5, np.nan]}}
    )
    np.testing.assert_allclose(fuser._batch.answers.responses[0], [[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0, 0, 0]])
    table = pd.DataFrame({"item": [1, 2], "source": ["x", "x"], "value": ["a", "a"], "p": [0.6, 0.9]})
    said = Fuser({"x": three}).fit(long_answers(table, probability="p"))._batch.answers.responses[0]
    np.testing.assert_allclose(said, [[0.6, 0.2, 0.2], [0.9, 0.05, 0.05]])


def test_labels_beside_a_scaled_source_of_fewer_classes():
    two = Calibration.from_predictions(list("ab") * 30, [[0.81, 0.19], [0.33, 0.67]] * 30)
    three = Calibration.from_counts(80 * np.eye(3) + 10, list("abc"))
    answers = {"two": [[0.7, 0.3]] * 30, "three": list("abc") * 10}
    fuser = Fuser({"two": two, "three": three}).fit(answers, [*"abc", *[None] * 27])
    assert fuser.labels_[:3].tolist() == list("abc")


def test_a_rare_class_is_not_lost_at_the_start_of_dawid_and_skene():
    """Guesses of seven in ten tell a class of one item in ten to be absent; what sources say together does not."""
    rng = np.random.default_rng(5)
    truth = (rng.random(400) < 0.1).astype(int)
    votes = {f"w{j}": np.where(rng.random(400) < 0.93, truth, 1 - truth) for j in range(6)}
    fuser = Fuser().fit(votes)
    assert fuser.prior_estimate_.prior[1] < 1e-3  # the composite estimate by the guesses
    learned = Fuser(method="dawid-skene").fit(votes)
    assert max((fit.labels_ != truth).mean() for fit in (fuser, learned)) < 0.02
