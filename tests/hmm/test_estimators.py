"""What users see: sequences in rows and in steps, classes, options, files."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

import mixent
from mixent import HiddenMarkovModel, HMMClassifier
from mixent.hmm.problem import ChainProblem
from mixent.options import HMMPrior
from mixent.persistence import SavedFileError


@pytest.mark.parametrize(
    ("estimator", "at_least"),
    [
        (HiddenMarkovModel(), 46),
        (HiddenMarkovModel(3, "VVV", topology="left-right"), 46),
        (HiddenMarkovModel(transitions="per_step", prior=1.0), 46),
        (HMMClassifier(), 60),
        (HMMClassifier(3, topology="left-right"), 60),
        (HMMClassifier(transitions="per_step"), 60),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore")  # the checks feed one row, one column, all zeros: they are about errors
def test_every_check_of_scikit_learn_passes(estimator, at_least):
    results = check_estimator(estimator, on_fail=None)
    assert len(results) >= at_least
    assert [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")] == []
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}


@pytest.mark.filterwarnings("ignore")
def test_with_several_starts_every_check_passes_but_the_one_a_random_start_breaks():
    """k-means draws its centers row by row: shuffled or repeated rows start elsewhere."""
    results = check_estimator(HMMClassifier(n_init=2), on_fail=None)
    failed = {r["check_name"] for r in results if r["status"] == "failed"}
    assert failed <= {"check_sample_weight_equivalence_on_dense_data"}


def walks(n=80, length=12, seed=0):
    """Two kinds of sequences with the same distribution at each step: slow and fast changes of two states."""
    rng = np.random.default_rng(seed)
    fast = rng.random(n) < 0.5
    change = rng.random((n, length)) < np.where(fast, 0.6, 0.1)[:, None]
    states = (np.cumsum(change, axis=1) + rng.integers(2, size=(n, 1))) % 2
    return states, np.where(fast, "fast", "slow")


def numbers(n=80, length=12, seed=0):
    states, y = walks(n, length, seed)
    return 3.0 * states + np.random.default_rng(seed + 1).normal(size=states.shape), y


def steps_of(X):
    """The same sequences, a row per step."""
    return X.reshape(-1, 1), np.full(len(X), X.shape[1])


def test_a_sequence_per_row_is_the_same_as_a_row_per_step():
    X, y = numbers()
    steps, lengths = steps_of(X)
    rows = HiddenMarkovModel(2).fit(X)
    other = HiddenMarkovModel(2).fit(steps, lengths=lengths)
    np.testing.assert_allclose(rows.means_, other.means_, rtol=1e-12)
    np.testing.assert_array_equal(rows.decode(X).ravel(), other.decode(steps, lengths=lengths))
    np.testing.assert_allclose(rows.score_samples(X), other.score_samples(steps, lengths=lengths), rtol=1e-12)
    assert rows.predict(X).shape == X.shape and rows.predict_proba(X).shape == (*X.shape, 2)
    np.testing.assert_allclose(rows.predict_proba(X).sum(axis=-1), 1.0)
    one = HMMClassifier(2).fit(X, y)
    two = HMMClassifier(2).fit(steps, y, lengths=lengths)
    np.testing.assert_allclose(one.predict_proba(X), two.predict_proba(steps, lengths=lengths), rtol=1e-9)
    assert one.score(X, y) == two.score(steps, y, lengths=lengths) > 0.85
    assert one.score(X, y, sample_weight=np.arange(len(y))) == np.average(
        one.predict(X) == y, weights=np.arange(len(y))
    )
    np.testing.assert_allclose(one.score_samples(X), two.score_samples(steps, lengths=lengths), rtol=1e-9)


def test_groups_are_sequences_wherever_their_rows_stand():
    X, y = numbers(30)
    steps, lengths = steps_of(X)
    ids = np.repeat(np.array([f"s{i:02d}" for i in range(30)]), 12)
    order = np.argsort(np.tile(np.arange(12), 30), kind="stable")  # all first steps, then all second ones
    by_lengths = HMMClassifier(2).fit(steps, y, lengths=lengths)
    by_groups = HMMClassifier(2).fit(steps[order], y, groups=ids[order])
    np.testing.assert_allclose(
        by_groups.predict_proba(steps[order], groups=ids[order]),
        by_lengths.predict_proba(steps, lengths=lengths),
        rtol=1e-9,
    )
    np.testing.assert_array_equal(by_groups.predict(steps, groups=ids), by_lengths.predict(steps, lengths=lengths))
    model = HiddenMarkovModel(2).fit(steps, groups=ids)
    np.testing.assert_array_equal(
        model.decode(steps[order], groups=ids[order]), model.decode(steps, lengths=lengths)[order]
    )


def test_words_in_rows_share_one_alphabet():
    states, y = walks(150, 14)
    rng = np.random.default_rng(4)
    letter = np.where(rng.random(states.shape) < 0.85, states, 2)
    X = np.array(["a", "b", "c"], dtype=object)[letter]
    X[:, 0] = np.where(X[:, 0] == "c", "a", X[:, 0])  # the first column never holds it
    X[rng.random(X.shape) < 0.1] = None
    frame = pd.DataFrame(X, columns=[f"t{j}" for j in range(14)])
    model = HiddenMarkovModel(2, random_state=0).fit(frame)
    assert list(model.tables_) == ["value"] and model.tables_["value"].shape == (2, 3)
    assert model.variables_.columns[0].categories == ("a", "b", "c")
    turned = frame.assign(t0="c")  # known from other columns: no warning
    assert np.isfinite(model.score_samples(turned)).all()
    classifier = HMMClassifier(2, random_state=0).fit(frame, y)
    assert classifier.score(frame, y) > 0.8
    drawn, found = model.sample(3, random_state=0)
    assert drawn.shape == found.shape == (3, 14) and set(drawn.to_numpy().ravel()) <= {"a", "b", "c"}
    codes = pd.DataFrame(np.where(X == None, np.nan, letter).astype(float))  # noqa: E711
    numbers = HiddenMarkovModel(2, categorical=list(range(14)), random_state=0).fit(codes)
    assert numbers.variables_.columns[0].categories == (0, 1, 2)
    flags = HiddenMarkovModel(2, random_state=0).fit(states == 1)
    assert flags.variables_.columns[0].kind == "boolean" and flags.sample(2, 4)[0].dtype == bool


def test_mixed_columns_of_steps(mixed):
    table, lengths = mixed(0, missing=0.1, n=40)
    model = HiddenMarkovModel(3, "VVV", random_state=0).fit(table, lengths=lengths)
    assert set(model.tables_) == {"word", "big"} and model.means_.shape == (3, 2) and model.converged_
    drawn, states = model.sample(4, 5, random_state=1)
    assert list(drawn.columns) == ["a", "word", "b", "big"] and len(drawn) == len(states) == 20
    again, _ = model.sample(4, 5, random_state=1)
    pd.testing.assert_frame_equal(drawn, again)
    assert model.bic(table, lengths=lengths) == pytest.approx(
        -2 * model.log_likelihood_ + model.n_parameters_ * np.log(len(table)), rel=1e-6
    )
    assert model.aic(table, lengths=lengths) == pytest.approx(
        -2 * model.log_likelihood_ + 2 * model.n_parameters_, rel=1e-6
    )
    assert model.n_parameters_ == 2 + 6 + 3 * (2 + 3) + 3 * (2 + 1)
    y = np.where(np.arange(len(lengths)) % 2, "odd", "even")
    classifier = HMMClassifier(2, random_state=0).fit(table, y, lengths=lengths)
    assert classifier.predict_proba(table, lengths=lengths).shape == (40, 2)


def test_what_is_drawn_is_what_the_model_says():
    X, _ = numbers()
    model = HiddenMarkovModel(2).fit(X)
    drawn, states = model.sample(4000, random_state=0)
    assert drawn.shape == states.shape == (4000, 12)
    np.testing.assert_allclose(np.bincount(states[:, 0]) / 4000, model.start_, atol=0.03)
    pairs = np.zeros((2, 2))
    np.add.at(pairs, (states[:, :-1].ravel(), states[:, 1:].ravel()), 1)
    np.testing.assert_allclose(pairs / pairs.sum(axis=1, keepdims=True), model.transitions_, atol=0.02)
    for s in range(2):
        np.testing.assert_allclose(drawn[states == s].mean(), model.means_[s, 0], atol=0.05)
    again = HiddenMarkovModel(2).fit(drawn)
    np.testing.assert_allclose(again.transitions_, model.transitions_, atol=0.03)


def test_a_classifier_draws_from_its_classes():
    X, y = numbers(120)
    model = HMMClassifier(2, class_prior=[0.8, 0.2]).fit(X, y)
    drawn, labels = model.sample(1000, random_state=0)
    assert drawn.shape == (1000, 12) and abs((labels == "fast").mean() - 0.8) < 0.05
    assert model.score(drawn, labels) > 0.85
    steps, lengths = steps_of(X)
    by_step = HMMClassifier(2).fit(steps, y, lengths=lengths)
    assert by_step.sample(5, 7, random_state=0)[0].shape == (35, 1)
    words = HMMClassifier(2, random_state=0).fit(np.where(X > 1.5, "hi", "lo"), y)
    assert set(words.sample(6, random_state=0)[0].ravel()) <= {"hi", "lo"}


def test_left_right_never_goes_back():
    rng = np.random.default_rng(0)
    X = np.repeat([[0.0, 0.0, 3.0, 3.0, 6.0, 6.0]], 40, axis=0) + rng.normal(size=(40, 6))
    model = HiddenMarkovModel(3, topology="left-right").fit(X)
    assert model.start_.tolist() == [1, 0, 0] and not np.tril(model.transitions_, -1).any()
    np.testing.assert_allclose(model.means_[:, 0], [0, 3, 6], atol=0.5)
    assert (np.diff(model.decode(X), axis=1) >= 0).all()
    assert model.n_parameters_ == 0 + 3 + 6
    assert np.isfinite(HiddenMarkovModel(3, topology="left-right", n_init=3, random_state=0).fit(X).score(X))


def test_more_starts_do_not_end_lower():
    X, _ = numbers(40)
    one = HiddenMarkovModel(3, random_state=0).fit(X)
    three = HiddenMarkovModel(3, n_init=4, random_state=0).fit(X)
    assert three.run_.objective >= one.run_.objective - 1e-3
    assert np.isfinite(HiddenMarkovModel(3, init="random", random_state=0).fit(X).score(X))


def test_class_priors():
    X, y = numbers(100)
    learned, held = HMMClassifier().fit(X, y), HMMClassifier(class_prior=[3, 1]).fit(X, y)
    np.testing.assert_allclose(learned.class_prior_, [(y == "fast").mean(), (y == "slow").mean()])
    np.testing.assert_allclose(held.class_prior_, [0.75, 0.25])
    weight = np.where(y == "fast", 2.0, 1.0)
    weighted = HMMClassifier().fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(weighted.class_prior_[0], weight[y == "fast"].sum() / weight.sum())
    odds = held.predict_log_proba(X) - learned.predict_log_proba(X)
    shift = np.log(held.class_prior_ / learned.class_prior_)
    np.testing.assert_allclose(odds[:, 0] - odds[:, 1], shift[0] - shift[1], rtol=1e-9)
    batch, labels = held.sample(400, random_state=1)
    moved = learned.adjust_priors(batch)
    assert abs(moved.class_prior_[0] - (labels == "fast").mean()) < 0.08
    assert held.decision(X, reject=0.1).rejected.any() and held.decision(X).labels.shape == (100,)


def test_the_models_of_the_classes():
    X, y = numbers()
    classifier = HMMClassifier(2).fit(pd.DataFrame(X, columns=[f"t{j}" for j in range(12)]), y)
    frame = pd.DataFrame(X, columns=[f"t{j}" for j in range(12)])
    joint = np.stack([m.score_samples(frame) for m in classifier.models_], axis=1) + np.log(classifier.class_prior_)
    np.testing.assert_allclose(np.logaddexp(*joint.T), classifier.score_samples(frame), rtol=1e-12)
    np.testing.assert_array_equal(classifier.classes_[joint.argmax(axis=1)], classifier.predict(frame))
    stay = [np.diag(m.transitions_).min() for m in classifier.models_]
    assert stay[0] < 0.6 < stay[1]  # fast, slow
    assert classifier.converged_ and classifier.n_iter_ == max(r.n_passes for r in classifier.runs_)


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_constant_columns_are_left_out(sequences):
    X, lengths, _ = sequences(0)
    wide = np.column_stack([X[:, 0], np.full(len(X), 7.0), X[:, 1]])
    start = {"means": [[0.0, 7.0, 1.0], [1.0, 7.0, 0.0]], "covariances": np.tile(np.eye(3), (2, 1, 1))}
    model = HiddenMarkovModel(2, "VVV", init=start).fit(wide, lengths=lengths)
    flat = dict(start, means=np.delete(start["means"], 1, 1), covariances=np.ones((2, 2)))
    plain = HiddenMarkovModel(2, "VVV", init=flat).fit(X, lengths=lengths)
    np.testing.assert_allclose(model.means_[:, [0, 2]], plain.means_, rtol=1e-9)
    assert (model.means_[:, 1] == 7).all() and (model.covariances_[:, 1] == 0).all()
    assert (model.sample(2, 3)[0][:, 1] == 7).all()


def test_shared_structures_start_from_what_they_allow(sequences):
    X, lengths, _ = sequences(1)
    start = {"covariances": np.stack([np.eye(2), 3 * np.eye(2)])}
    for name in ("EII", "EEE", "VEV"):
        model = HiddenMarkovModel(2, name, init=start, accelerate=False).fit(X, lengths=lengths)
        gains = np.diff([s.objective for s in model.run_.trace])
        assert (gains > -1e-7).all()
        if name[0] == "E" and name != "VEV":
            np.testing.assert_allclose(*model.covariances_, rtol=1e-9)


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_impossible_sequences():
    X = np.array([["a", "b", "b"], ["a", "a", "b"], ["a", "b", "a"]])
    start = {"start": [1.0, 0.0], "transitions": [[0.5, 0.5], [0.0, 1.0]], "tables": [[1.0, 0.0], [0.0, 1.0]]}
    model = HiddenMarkovModel(2, init=start, prior=HMMPrior(smoothing=0.0, transition_smoothing=0.0)).fit(X[:2])
    assert model.score_samples(X)[2] < -600 < -5 < model.score_samples(X)[0]  # a trace: tables keep 1e-300
    log_emit = np.log(np.full((4, 2), 0.5))
    log_emit[3] = -np.inf
    given = HiddenMarkovModel(2, emissions="precomputed").fit(log_emit[:3], lengths=[2, 1])
    found = given.score_samples(log_emit, lengths=[2, 2])
    assert np.isfinite(found[0]) and np.isneginf(found[1])
    assert (given.predict_proba(log_emit, lengths=[2, 2])[2:] == 0).all()
    with pytest.raises(ValueError, match="sequence 1"):
        HiddenMarkovModel(2, emissions="precomputed").fit(log_emit, lengths=[2, 2])
    without = HiddenMarkovModel(2, emissions="precomputed").fit(log_emit, lengths=[2, 2], sample_weight=[1, 0])
    np.testing.assert_allclose(without.transitions_, 0.5)
    nothing = HiddenMarkovModel(2, emissions="precomputed").fit(
        np.where(np.isinf(log_emit), np.nan, log_emit), lengths=[2, 2]
    )
    assert np.isfinite(nothing.log_likelihood_)


def test_steps_beyond_every_density_are_impossible_not_nan(sequences):
    X, lengths, _ = sequences(2)
    model = HiddenMarkovModel(2, "VVV").fit(1e-9 * X, lengths=lengths)
    # with correlated columns, terms of either sign overflow
    far = np.array([[1e149, 1e149], [0.0, 0.0], [1e149, -1e149], [0.0, 0.0]])
    assert model.score_samples(far, lengths=[2, 2]).tolist() == [-np.inf, -np.inf]
    assert np.isfinite(model.score_samples(far[1:2], lengths=[1])).all()
    assert not np.isnan(model.predict_proba(far, lengths=[2, 2])).any()
    y = np.arange(len(lengths)) % 2
    classifier = HMMClassifier(2, "VVV").fit(1e-9 * X, y, lengths=lengths)
    np.testing.assert_allclose(classifier.predict_proba(far, lengths=[2, 2])[0], classifier.class_prior_)


def test_a_density_that_is_no_number_is_none(monkeypatch):
    """Inf - inf, where a step lies far enough out; which kernels meet it depends on the order of their sums."""
    X, _ = numbers(10)
    model = HiddenMarkovModel(2).fit(X)
    opened = ChainProblem._open

    def broken(self, ready, block):
        log_emit, works = opened(self, ready, block)
        log_emit = np.array(log_emit)
        log_emit[:, 3] = np.nan  # the first step of the fourth sequence
        return log_emit, works

    monkeypatch.setattr(ChainProblem, "_open", broken)
    lost = np.arange(10) == 3
    np.testing.assert_array_equal(np.isneginf(model.score_samples(X)), lost)
    np.testing.assert_array_equal((model.predict_proba(X) == 0).all(axis=(1, 2)), lost)


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_states_beyond_the_distinct_values_start_apart():
    X = np.repeat([[0.0, 10.0, 0.0, 0.0, 10.0]], 6, axis=0)
    model = HiddenMarkovModel(4, init={"fixed": ["means"]}, random_state=0).fit(X)
    assert len(np.unique(model.means_.round(6))) == 4


MODELS = {
    "rows": (HiddenMarkovModel(2, random_state=0), None),
    "left-right": (HiddenMarkovModel(2, topology="left-right", progress=lambda *a: None), None),
    "per step, from a start": (HiddenMarkovModel(2, transitions="per_step", init={"start": np.full(2, 0.5)}), None),
    "classes": (HMMClassifier(2, random_state=0), "y"),
    "classes, priors held": (HMMClassifier(2, "VVV", class_prior=[0.3, 0.7]), "y"),
}


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_is_the_saved_one(name, words, tmp_path):
    X, y = numbers()
    X = np.where(X > 1.5, "hi", "lo") if words else X
    model = clone(MODELS[name][0]).fit(X, y)
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    assert type(again) is type(model)
    for other in (again, *([] if callable(model.progress) else [pickle.loads(pickle.dumps(model))])):
        np.testing.assert_array_equal(other.predict_proba(X), model.predict_proba(X))
        np.testing.assert_array_equal(other.score_samples(X), model.score_samples(X))
        assert other.schema_ == model.schema_ and other.variables_ == model.variables_
    assert again.progress is False


def test_given_emissions_are_saved_too_and_damage_is_seen(tmp_path):
    log_emit = np.log(np.random.default_rng(0).dirichlet([1, 1], size=20))
    model = HiddenMarkovModel(2, emissions="precomputed").fit(log_emit, lengths=[5, 15])
    mixent.save(model, tmp_path / "m.mixent")
    again = mixent.load(tmp_path / "m.mixent")
    np.testing.assert_array_equal(again.decode(log_emit, lengths=[20]), model.decode(log_emit, lengths=[20]))
    damaged = clone(model)
    damaged.schema_, damaged.variables_, damaged.by_row_ = model.schema_, model.variables_, False
    mixent.save(damaged, tmp_path / "d.mixent")
    with pytest.raises(SavedFileError, match="chain_"):
        mixent.load(tmp_path / "d.mixent")


def test_a_fisher_kernel_of_sequences_is_saved(tmp_path):
    X, y = numbers()
    for model in (HiddenMarkovModel(2), HMMClassifier(2)):
        kernel = mixent.FisherKernel(model, n_samples=200, random_state=0).fit(X, y)
        mixent.save(kernel, tmp_path / "k.mixent")
        np.testing.assert_array_equal(mixent.load(tmp_path / "k.mixent").transform(X), kernel.transform(X))


def test_clone_pipelines_and_cross_validation():
    X, y = numbers(90)
    model = HMMClassifier(2)
    assert clone(model).get_params() == model.get_params()
    assert cross_val_score(model, X, y, cv=3).mean() > 0.75
    assert np.isfinite(cross_val_score(HiddenMarkovModel(2), X, cv=3)).all()
    assert get_tags(model).input_tags.allow_nan and get_tags(model).target_tags.required
    assert not get_tags(HiddenMarkovModel()).target_tags.required


def test_progress_is_told():
    X, y = numbers(20)
    told = []
    HMMClassifier(2, progress=lambda *a: told.append(a)).fit(X, y)
    assert told and told[0][1] == 500 and "objective" in told[0][2]


@pytest.mark.parametrize("size", [1e3, 1e5, 1e6, 1e7, 1e8, 1e10, 1e50])
def test_outliers_before_forbidden_transitions_keep_distributions(size):
    rng = np.random.default_rng(0)
    X = np.c_[rng.normal(0, 0.01, (30, 2)), rng.normal(1, 1, (30, 2))]  # quiet, then loud
    new = np.array([[0.0, size, 0.0, 1.0], [size, size, 0.0, 0.0], [-size, 0.5 * size, size, -size]])
    model = HiddenMarkovModel(2, topology="left-right", random_state=0).fit(X)
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=-1), 1.0, rtol=1e-12)
    assert (model.predict_proba(new)[:, 0, 0] == 1).all()  # sequences begin in state 0
    classifier = HMMClassifier(2, topology="left-right", random_state=0).fit(X, np.repeat([0, 1], 15))
    np.testing.assert_allclose(classifier.predict_proba(new).sum(axis=1), 1.0, rtol=1e-12)
