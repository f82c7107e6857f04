"""Ordinal sources: likelihood ratios that are monotone in the answer, by pool-adjacent-violators."""

import json

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, minimize

import mixent
from mixent import Calibration, Fuser, Source
from mixent.fusion.answers import read_answers
from mixent.fusion.batch import Batch
from mixent.fusion.facts import accuracy, answer_type, below_chance
from mixent.fusion.reading import ordered_integers
from mixent.fusion.scales import monotone_counts
from mixent.fusion.sources import Layout

RNG = np.random.default_rng(5)
TABLES = [RNG.integers(0, 7, (K, V)) + smooth for K in (2, 3, 5) for V in (1, 2, 6) for smooth in (0.5, 0.5, 0.01)]


def mean_order(counts):
    return np.argsort(counts @ np.arange(counts.shape[1]) / counts.sum(axis=1), kind="stable")


@pytest.mark.parametrize("counts", TABLES)
def test_higher_symbols_make_higher_classes_more_probable(counts):
    made = monotone_counts(counts)
    np.testing.assert_allclose(made.sum(axis=0), counts.sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(made.sum(axis=1), counts.sum(axis=1), rtol=1e-9)
    shares = (made / made.sum(axis=0))[mean_order(counts)]
    above = np.cumsum(shares[::-1], axis=0)[::-1]
    assert (np.diff(above, axis=1) >= -1e-12).all() and made.min() > 0


@pytest.mark.parametrize("counts", TABLES)
def test_classes_weights_and_direction_of_the_symbols_do_not_matter(counts):
    made, order = monotone_counts(counts), RNG.permutation(len(counts))
    np.testing.assert_allclose(monotone_counts(counts[order]), made[order], rtol=1e-9)
    np.testing.assert_allclose(monotone_counts(3 * counts), 3 * made, rtol=1e-9)
    np.testing.assert_allclose(monotone_counts(counts[:, ::-1]), made[:, ::-1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("counts", [table for table in TABLES if len(table) == 2 and table.shape[1] > 1])
def test_for_two_classes_it_is_the_maximum_likelihood_of_monotone_ratios(counts):
    made, V = monotone_counts(counts), counts.shape[1]
    low, high = mean_order(counts)
    ratio = made[high] / made[low]
    assert (np.diff(ratio) >= -1e-9 * ratio[1:]).all()
    np.testing.assert_allclose(monotone_counts(made), made, rtol=1e-9)  # a projection
    scale = np.where(np.arange(2) == high, 7.0, 1.0)[:, None]  # the shares of the classes do not matter for the ratio
    scaled = monotone_counts(counts * scale)
    np.testing.assert_allclose(scaled[high] / scaled[low], 7 * ratio, rtol=1e-9)

    def loss(x):
        logits = x.reshape(2, V)
        return -(counts * (logits - np.log(np.exp(logits).sum(axis=1, keepdims=True)))).sum()

    steps = np.zeros((V - 1, 2, V))
    for v in range(V - 1):
        steps[v, high, v : v + 2], steps[v, low, v : v + 2] = (-1, 1), (1, -1)
    best = minimize(loss, np.zeros(2 * V), constraints=LinearConstraint(steps.reshape(V - 1, -1), 0, np.inf))
    found = -(counts * np.log(made / made.sum(axis=1, keepdims=True))).sum()
    assert found == pytest.approx(best.fun, rel=1e-6)
    assert found <= best.fun + 1e-9 * abs(found)


def test_monotone_counts_are_not_changed_and_empty_symbols_stay_empty():
    counts = np.array([[8.0, 0, 3, 1], [1, 0, 3, 8]])
    np.testing.assert_allclose(monotone_counts(counts), counts, rtol=1e-12)
    np.testing.assert_allclose(monotone_counts(counts[:, ::-1]), counts[:, ::-1], rtol=1e-12)
    # the shares of the second class, 1/2, 0 and 1/2, violate the order: the first two symbols are pooled
    pooled = monotone_counts(np.array([[2.0, 4, 2], [2, 0, 2]]))
    np.testing.assert_allclose(pooled, [[3, 3, 2], [1, 1, 2]], rtol=1e-12)


GRADES = [1, 2, 2, 3, 5, 3, 4, 5, 5, np.nan]
TRUTH = ["no"] * 5 + ["yes"] * 5


def test_every_grade_is_a_symbol_and_no_class():
    grades = Calibration.from_scores([0] * 5 + [1] * 5, GRADES, ordinal=True)
    assert grades.symbols == (1, 2, 3, 4, 5) and grades.edges.tolist() == [1.5, 2.5, 3.5, 4.5]
    assert grades.counts.tolist() == [[1, 2, 1, 0, 1], [0, 0, 1, 1, 2]]  # the counts themselves are kept
    assert accuracy(grades) is None and below_chance(grades) is None
    assert answer_type(grades) == "ordered scores (5 values)"
    np.testing.assert_allclose(grades.confusion, monotone_counts(grades.counts + 0.5) / [[7.5], [6.5]], rtol=1e-12)
    layout = Layout.of({"grade": grades})
    said = read_answers(layout, {"grade": [1, 4, 4.4, 0, 9, None]})
    assert said.responses[0].tolist() == [0, 3, 3, 0, 4, -1]  # another value is the nearest grade
    np.testing.assert_allclose(layout.confusion, grades.confusion.T, rtol=1e-12)
    np.testing.assert_allclose(layout.counts, grades.confusion.T * [7.5, 6.5], rtol=1e-12)
    np.testing.assert_allclose(layout.rates, monotone_counts(grades.counts).T / [5, 4], rtol=1e-12)
    votes = Batch.of(layout, said).votes()[0]
    assert votes.argmax(axis=1)[0] == 0 and votes.argmax(axis=1)[3] == 1  # the grade 1 is no vote for class 1


def test_many_values_have_bins_with_monotone_ratios():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 300)
    scores = rng.normal(-truth)  # a low score for class 1
    bins = Calibration.from_scores(truth, scores)
    ordinal = Calibration.from_scores(truth, scores, ordinal=True)
    assert ordinal.symbols == bins.symbols and (ordinal.counts == bins.counts).all()
    assert (np.diff(ordinal.confusion[1] / ordinal.confusion[0]) <= 1e-12).all()
    assert not (np.diff(bins.confusion[1] / bins.confusion[0]) <= 1e-12).all()


def test_words_in_an_order():
    answers = ["none", "some", "none", "severe", "none", "some", "severe", "severe", "none", None]
    pain = Calibration.from_predictions(TRUTH, answers, symbols=["none", "some", "severe"], ordinal=True)
    assert pain.symbols == ("none", "some", "severe") and pain.edges is None
    assert answer_type(pain) == "ordered labels (3 values)"
    ratio = pain.confusion[1] / pain.confusion[0]
    assert (np.diff(ratio) >= -1e-12).all()
    fitted = Fuser({"pain": pain}, method="product").fit({"pain": ["none", "severe", None]})
    assert fitted.labels_[:2].tolist() == ["no", "yes"]
    counted = Calibration.from_counts(pain.counts, ["no", "yes"], pain.symbols, ordinal=True)
    np.testing.assert_array_equal(counted.confusion, pain.confusion)


def test_a_class_without_rows_is_not_ordered():
    grades = Calibration.from_counts([[5, 3, 1], [1, 3, 5], [0, 0, 0]], ["a", "b", "c"], [1, 2, 3], ordinal=True)
    np.testing.assert_allclose(grades.confusion[2], (6 + np.array([0.5] * 3)) / 19.5)


def test_ordinal_goes_through_files_and_labelled_items(tmp_path):
    rng = np.random.default_rng(1)
    truth, batch = rng.integers(0, 3, 200), rng.integers(0, 3, 300)

    def grade(y):
        return {name: np.clip(np.round(2 * y + rng.normal(size=len(y)) + 1), 0, 6) for name in "ab"}

    sources = {name: Calibration.from_scores(truth, v, ordinal=True) for name, v in grade(truth).items()}
    for one in sources.values():
        assert Calibration.from_json(json.loads(json.dumps(one.to_json()))) == one
    answers, known = grade(batch), np.where(np.arange(300) < 20, batch.astype(object), None)
    for method in ("ml-product", "min-divergence", "dawid-skene", "discounted"):
        fuser = Fuser(sources, method=method).fit(answers, known)
        assert all(s.calibration.ordinal for s in fuser._fitted_layout.sources)
        assert (fuser.labels_ == batch).mean() > 0.8
        mixent.save(fuser, tmp_path / "m.mixent")
        again = mixent.load(tmp_path / "m.mixent")
        np.testing.assert_array_equal(again.predict_proba(answers), fuser.predict_proba(answers))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Calibration.from_counts([[1, 2], [2, 1]], [0, 1], ordinal="yes"),
        lambda: Calibration((0, 1), (0, 1), np.ones((2, 2, 2)), cells=("l", "r"), ordinal=True),
        lambda: Calibration((0, 1), (0, 1), [[2, 1], [1, 2]], line=(1, 0), ordinal=True),
        lambda: Calibration.from_scores([0, 1, 0, 1], [1, 2, 3, 4], ratio=True, ordinal=True),
        lambda: Calibration.from_predictions([0, 1], ["low", "high"], ordinal=True),
    ],
)
def test_what_cannot_be_ordinal_is_refused(make):
    with pytest.raises(ValueError, match="ordinal"):
        make()


def test_grades_that_are_passed_as_labels_have_a_note():
    with pytest.warns(mixent.DataWarning, match="whole numbers"):
        merged = Calibration.from_predictions([0, 1] * 5, [*GRADES[:9], 1])
    assert merged.symbols == (0, 1, 2, 3, 4, 5)
    named = Calibration.from_predictions([0, 1] * 5, [*GRADES[:9], 1], symbols=[0, 1, 2, 3, 4, 5])  # no doubt, no note
    assert named == merged


@pytest.mark.parametrize(
    ("answers", "classes", "ordered"),
    [
        (range(10), (0, 1), True),
        (range(1, 6), ("no", "yes"), True),
        ((1.0, 2.0, 3.0), ("no", "yes"), True),
        ((0, 1, 2), (0, 1), False),  # 2 may be "unsure"
        ((0, 1), ("no", "yes"), False),
        ((1, 2, 3), (1, 2, 3), False),
        ((0.5, 1, 2), ("no", "yes"), False),
        ((True, False), (0, 1), False),
        (("1", "2", "3"), ("no", "yes"), False),
    ],
)
def test_ordered_integers(answers, classes, ordered):
    assert ordered_integers(answers, classes) == ordered


def test_less_often_right_than_by_chance():
    def source(counts, symbols=None):
        return Calibration.from_counts(counts, ["a", "b"], symbols)

    assert below_chance(source([[17, 83], [83, 17]])) == pytest.approx(0.17)
    assert below_chance(source([[2, 3], [3, 2]])) is None  # too few rows
    assert below_chance(source([[83, 17], [17, 83]])) is None
    assert below_chance(source([[30, 5, 65], [5, 30, 65]], ["a", "b", "unsure"])) is None  # unsure is not wrong
    assert below_chance(source([[20, 80], [80, 20]], ["x", "y"])) is None
    assert below_chance(source([[20, 80], [0, 0]])) is None


def test_probabilities_of_ordered_words_use_the_confusion_matrix():
    levels = Calibration.from_counts([[8, 2], [3, 7]], ["a", "b"], ordinal=True)
    plain = Calibration.from_counts([[8, 2], [3, 7]], ["a", "b"])
    table = {"s": np.array([[0.7, 0.3], [0.2, 0.8]])}
    found = Fuser({"s": levels}, method="product").fit(table).posterior_
    expected = Fuser({"s": Source(plain, as_is=False)}, method="product").fit(table).posterior_
    np.testing.assert_allclose(found, expected, rtol=1e-12)
