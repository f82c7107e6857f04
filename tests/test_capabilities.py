"""The table of estimators and capabilities is true: every cell is tried.

"Yes" must have the effect it claims, "no" must be an error that says so or a method that is not there, and "–" must
change nothing.
"""

import re
import tracemalloc
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import OutlierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import mixent
from mixent import (
    FisherKernel,
    GaussianMixture,
    HiddenMarkovModel,
    HMMClassifier,
    MEDClassifier,
    MixtureClassifier,
    SharedMixtureClassifier,
)
from mixent.base.capabilities import LEFT_OUT, MEANINGS, YES, cells_of
from mixent.base.options import Estimator
from mixent.overview import page

from .subjects import (
    CERTAIN,
    CLASSES,
    DOUBT,
    FOUND,
    KERNEL,
    NUMBERS,
    PUBLIC,
    SEQUENCES,
    SOME,
    SUBJECTS,
    TABLE,
    TWICE,
    UNLABELLED,
    WEIGHT,
    N,
    Subject,
    Y,
    differ,
    fuser,
    members,
    rows,
    same,
    subject,
    votes,
    without_uniform,
)

PAGE = Path(__file__).parent.parent / "docs" / "capabilities.md"
TRIED = set()  # (subject, capability)


def each(what, *, able):
    """The subjects whose cell says so."""
    names = [name for name, cells in FOUND.items() if cells[what].able is able]
    TRIED.update((name, what) for name in names)
    return pytest.mark.parametrize("name", names)


# --- what the cells say -------------------------------------------------------------------------------------------


@each("missing", able=True)
def test_gaps_are_taken_and_the_rest_of_the_row_counts(name):
    one = SUBJECTS[name]
    fitted = one.fit(one.gappy)
    said = one.said(fitted, one.gappy)
    assert np.isfinite(said).all()
    whole = np.flatnonzero(~pd.DataFrame(one.gappy).isna().any(axis=1))
    assert differ(one.said(fitted), one.said(one.fit(rows(one.gappy, whole), Y[whole])))  # rows with gaps were heard
    holed = np.setdiff1d(np.arange(N), whole)
    assert len(np.unique(said[holed].reshape(len(holed), -1).round(9), axis=0)) > len(holed) / 4


@each("missing", able=False)
def test_gaps_are_refused(name):
    one = SUBJECTS[name]
    with pytest.raises(ValueError, match="missing values|NaN"):
        one.fit(one.gappy)
    with pytest.raises(ValueError, match="missing values|NaN"):
        one.said(one.usual, one.gappy)


WITHOUT_FOLDS = {  # which are drawn of rows, as the note says
    "HMMStackingClassifier": {"cv": "train", "calibration": None},
    "MaxEntStackingClassifier": {"cv": "train"},
    "stack of naive Bayes": {"cv": "train"},
}


@each("weights", able=True)
def test_weight_two_is_the_row_twice(name):
    one = SUBJECTS[name]
    if name in WITHOUT_FOLDS:
        one = replace(one, model=clone(one.model).set_params(**WITHOUT_FOLDS[name]))
    X, twice = one.X, rows(one.X, TWICE)
    weighted, repeated = one.fit(sample_weight=WEIGHT), one.fit(twice, Y[TWICE])
    if X is KERNEL:
        same(one.said(weighted), one.said(repeated, KERNEL[:, TWICE]))
    else:
        same(one.said(weighted), one.said(repeated))
    assert differ(one.said(weighted), one.answers())


@each("soft_labels", able=True)
def test_certain_probabilities_are_labels_and_doubt_is_heard(name):
    one = SUBJECTS[name]
    labels = one.answers()
    same(one.answers(y=CERTAIN), labels, atol=1e-12)
    same(one.answers(y=CERTAIN[CERTAIN.columns[::-1]]), labels, atol=1e-12)
    assert differ(one.answers(y=DOUBT), labels, by=1e-3)


@each("soft_labels", able=False)
def test_probabilities_of_labels_are_refused(name):
    one = SUBJECTS[name]
    with pytest.raises(ValueError, match="probabilities") as caught:
        one.fit(y=DOUBT)
    assert re.search("give|one known label|blank for", str(caught.value))


@each("absent_labels", able=True)
def test_rows_without_a_label_count_as_the_note_says(name):
    one, note = SUBJECTS[name], FOUND[name]["absent_labels"].note
    kept = np.flatnonzero(~UNLABELLED)
    if name == "Fuser":
        plain, told = one.fit(y=None), one.fit(y=SOME)
        assert (told.labels_[kept] == Y[kept]).all() and (plain.labels_ != Y).any()
        assert differ(told.posterior_[UNLABELLED], plain.posterior_[UNLABELLED])  # known ones help to judge the others
        return
    some, less = one.fit(y=SOME), one.fit(rows(one.X, kept), Y[kept])
    said = one.said(some), one.said(less, KERNEL[:, kept] if one.X is KERNEL else None)
    assert np.isfinite(said[0]).all()
    if note == LEFT_OUT.note:
        same(*said, atol=1e-12)
    elif (gain := getattr(some, "unlabelled_gain_", None)) is not None and gain <= 0:  # these few rows do not help
        assert np.isfinite(some.label_posterior_[UNLABELLED]).all()
    else:
        assert differ(*said, by=1e-5)


@each("absent_labels", able=False)
def test_rows_without_a_label_are_refused(name):
    with pytest.raises(ValueError, match="sequence 0"):
        SUBJECTS[name].fit(y=SOME)


@each("soft_labels", able=None)
def test_labels_in_doubt_change_nothing_where_none_are_taken(name):
    one = SUBJECTS[name]
    np.testing.assert_array_equal(one.said(one.fit(y=DOUBT)), one.said(one.usual))


@each("absent_labels", able=None)
def test_absent_labels_change_nothing_where_none_are_taken(name):
    one = SUBJECTS[name]
    np.testing.assert_array_equal(one.said(one.fit(y=SOME)), one.said(one.usual))


def test_a_fisher_kernel_hands_labels_on_to_its_model():
    kernel = subject(FisherKernel(MixtureClassifier(1, "VVI"), random_state=0))
    assert "which is fitted with y" in FOUND["FisherKernel"]["soft_labels"].note
    labels, doubt, some = (kernel.said(kernel.fit(y=y)) for y in (Y, DOUBT, SOME))
    assert differ(doubt, labels) and differ(some, labels)


@each("multiclass", able=True)
def test_three_classes_are_told_apart(name):
    one = SUBJECTS[name]
    fitted = one.usual
    proba = one.said(fitted)
    assert fitted.classes_.tolist() == CLASSES and proba.shape == (N, 3)
    same(proba.sum(axis=1), 1.0)
    guess = fitted.classes_[proba.argmax(axis=1)]
    assert set(guess) == set(CLASSES) and np.mean(guess == Y) > 0.6


@each("multiclass", able=None)
def test_there_are_no_classes_to_tell_apart(name):
    one = SUBJECTS[name]
    fitted = one.usual
    assert not one.takes_y and not hasattr(fitted, "classes_")
    if name == "MaxEntJoint":  # as its note says
        assert fitted.predict_proba(TABLE, target="color").shape == (N, 3)


# --- columns ------------------------------------------------------------------------------------------------------


def changed(X):
    """The same rows with other numbers, and with other words."""
    early = np.arange(N) < N // 2
    if "scale" in X:
        return X.assign(scale=X.scale + early), X.assign(judge=X.judge.mask(early, "beech"))
    return X.assign(height=X.height + early), X.assign(color=X.color.mask(early, "red"))


@each("mixed", able=True)
def test_numbers_and_words_both_count(name):
    one = SUBJECTS[name]
    if isinstance(one.model, HMMClassifier | HiddenMarkovModel):
        steps_of_numbers_and_words(one)
        return
    for other in changed(one.X):
        assert differ(one.said(one.usual, other), one.said(one.usual), by=1e-3)  # in what is said of a row
        assert differ(one.answers(other), one.answers(), by=1e-3)  # and in what is learned


def steps_of_numbers_and_words(one):
    """Of a hidden Markov model: as its note says, with a row for each step."""
    lengths = np.full(N // 3, 3)
    fitted = one.fit(TABLE, Y[::3], lengths=lengths)
    plain = fitted.score_samples(TABLE, lengths=lengths)
    for other in changed(TABLE):
        assert differ(fitted.score_samples(other, lengths=lengths), plain, by=1e-3)
    with pytest.raises(ValueError, match="row per step"):
        one.fit(TABLE)


@each("mixed", able=False)
def test_mixed_columns_are_refused(name):
    with pytest.raises(ValueError, match="matrix|variable|have no"):
        SUBJECTS[name].fit(TABLE)


@each("mixed", able=None)
def test_mixed_columns_are_the_affair_of_a_base_of_another_library(name):
    model = SUBJECTS[name].model
    with pytest.raises(ValueError, match="could not convert"):
        clone(model).fit(TABLE, Y)
    able_base = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    option = {"estimator": able_base} if hasattr(model, "estimator") else {"estimators": [able_base, *members()]}
    one = subject(clone(model).set_params(**option))
    fitted = one.fit()
    assert all(differ(one.said(fitted, other), one.said(fitted), by=1e-3) for other in changed(TABLE))


# --- more than fits into memory -----------------------------------------------------------------------------------

COARSE = {  # few passes over many rows
    "GaussianMixture": GaussianMixture(2, "VVI", tol=1.0, random_state=0),
    "MixtureClassifier": MixtureClassifier(1, "VVI", random_state=0),
    "SharedMixtureClassifier": SharedMixtureClassifier(2, "VVI", n_init=1, tol=1.0, random_state=0),
    "conditional mixture": MixtureClassifier(1, "VVI", training="conditional", tol=1.0, random_state=0),
}


@pytest.fixture(scope="module")
def on_disk(tmp_path_factory):
    """(100 000, 20) numbers in a file, and labels."""
    path = tmp_path_factory.mktemp("rows") / "rows.npy"
    y = np.arange(200_000) % 2
    np.save(path, np.random.default_rng(0).normal(size=(200_000, 20)) + y[:, None] * np.linspace(0, 1, 20))
    return np.load(path, mmap_mode="r"), y


@each("out_of_core", able=True)
def test_rows_on_disk_give_the_same_model_without_being_loaded(name, request):
    if name == "Fuser":
        blocks_of_answers()
        return
    (X, y), model = request.getfixturevalue("on_disk"), COARSE[name]
    assert cells_of(model) == FOUND[name] and isinstance(X, np.memmap)
    clone(model).fit(X[:300], y[:300])  # what is imported on the way does not count
    tracemalloc.start()
    try:
        fitted = clone(model).fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.6 * X.nbytes
    held = clone(model).fit(np.array(X), y)
    np.testing.assert_array_equal(fitted.score_samples(X[:100]), held.score_samples(np.array(X[:100])))


def blocks_of_answers():
    answers = votes()
    whole = fuser().fit(answers)
    parts = fuser().fit_blocks(answers.iloc[start : start + 7] for start in range(0, N, 7))
    same(parts.prior_, whole.prior_)
    same(parts.predict_proba(answers), whole.posterior_)


@each("out_of_core", able=False)
def test_rows_still_to_come_are_refused(name):
    one = SUBJECTS[name]
    assert not hasattr(one.model, "fit_blocks")
    with pytest.raises(ValueError, match="got a generator"):
        one.fit(part for part in [one.X, one.X])
    with pytest.raises(ValueError, match="got 'rows.parquet'"):
        one.fit("rows.parquet")


# --- what a model gives -------------------------------------------------------------------------------------------


@each("explanations", able=True)
def test_parts_add_up_to_the_log_odds(name):
    one = SUBJECTS[name]
    fitted = one.usual
    if isinstance(fitted, OutlierMixin):
        X = one.X
        blank = np.c_[np.full(len(X), np.nan), X[:, 1:]] if isinstance(X, np.ndarray) else X.assign(height=np.nan)
        same(fitted.contributions(X)[:, 0], fitted.score_samples(X) - fitted.score_samples(blank))
        return
    log_proba, found = np.log(without_uniform(fitted, one.said(fitted))), fitted.explain(one.X)
    if name == "Fuser":
        assert found.shape == (N, 4, 3) and np.abs(found).max() > 0.1  # three sources and the priors
        same(found.sum(axis=1), log_proba - log_proba.mean(axis=1, keepdims=True))
        return
    place = {label: c for c, label in enumerate(fitted.classes_)}
    ours, rival = ([place[label] for label in labels] for labels in (found.label, found.rival))
    parts = found.parts
    same(found.log_odds, log_proba[np.arange(N), ours] - log_proba[np.arange(N), rival], atol=1e-7)
    same(found.baseline + parts.sum(axis=1), found.log_odds)
    assert (np.ptp(parts, axis=0) > 0.01).sum() > 1  # more than one part has a say


@each("density", able=True)
def test_odd_rows_are_improbable(name):
    one = SUBJECTS[name]
    said = (fitted := one.usual).score_samples(one.X)
    if name == "MaxEntJoint":  # as its note says, it sees what goes with what
        swapped = TABLE.assign(color=TABLE.color.replace({"red": "green", "green": "red"}))
        assert fitted.score_samples(swapped).mean() < said.mean() - 0.3
        return
    odd = one.X * 0 + [60.0, -60.0, 60.0, -60.0, 60.0] if one.X is SEQUENCES else one.X.assign(height=60.0, age=-60.0)
    assert np.isfinite(said).all() and (fitted.score_samples(odd).max() < said.min() - 1)


@each("sampling", able=True)
def test_rows_drawn_are_like_those_seen(name):
    one = SUBJECTS[name]
    fitted = one.usual
    drawn = fitted.sample(4000, random_state=0)[0]
    np.testing.assert_array_equal(drawn, fitted.sample(4000, random_state=0)[0])
    table, theirs = (pd.DataFrame(X).select_dtypes("number") for X in (one.X, drawn))
    assert theirs.shape == (4000, table.shape[1])
    if one.X is SEQUENCES:  # all steps together: two states are not the truth of each
        table, theirs = (pd.DataFrame(X.to_numpy().ravel()) for X in (table, theirs))
    assert (np.abs(theirs.mean() - table.mean()) < 0.3 * table.std()).all()
    assert (np.abs(np.log(theirs.std() / table.std())) < 0.3).all()
    if "color" in drawn:
        shares = drawn["color"].value_counts(normalize=True) - one.X.color.value_counts(normalize=True)
        assert shares.abs().max() < 0.06


@each("imputation", able=True)
def test_missing_values_are_filled_and_the_others_kept(name):
    one = SUBJECTS[name]
    gappy, filled = pd.DataFrame(one.gappy), pd.DataFrame(one.usual.impute(one.gappy))
    filled.columns = gappy.columns
    assert gappy.isna().to_numpy().any() and not filled.isna().to_numpy().any()
    pd.testing.assert_frame_equal(filled.mask(gappy.isna()), gappy, check_dtype=False)


PLAIN = {"prior": None, "random_state": 0}  # without pseudo-rows, which the first batch settles
EXACT = {  # of one component statistics are exact: batches are all rows at once
    "GaussianMixture": GaussianMixture(1, "VVV", **PLAIN),
    "MixtureClassifier": MixtureClassifier(1, "VVV", **PLAIN),
    "SharedMixtureClassifier": SharedMixtureClassifier(1, "VVV", **PLAIN),
}


@each("batches", able=True)
def test_batches_are_all_rows_at_once(name):
    one = SUBJECTS[name] if name == "Fuser" else Subject(EXACT.get(name, SUBJECTS[name].model), NUMBERS)
    order = np.random.default_rng(5).permutation(N)
    first, second = order[: N // 2], order[N // 2 :]
    y = None if name == "Fuser" else Y
    model = deepcopy(one.model)
    for part in (first, second):
        model.partial_fit(rows(one.X, part), None if y is None else y[part])
        if part is first:
            early = one.said(model)
    same(one.said(model), one.answers(y=y), atol=1e-5)
    assert differ(one.said(model), early, by=1e-3)


@each("shifted_priors", able=True)
def test_priors_follow_a_batch_and_nothing_else_changes(name):
    one = SUBJECTS[name]
    batch = np.r_[0:20, 20:24, 40:44]  # mostly of the first class
    if name == "Fuser":
        found = one.fit(rows(one.X, np.repeat(batch, 3)), None).prior_
        assert found[0] > 0.5 > 1 / 3 + 0.1
        return
    fitted = one.usual
    there = KERNEL[batch] if one.X is KERNEL else rows(one.X, batch)
    moved = fitted.adjust_priors(there)
    assert moved.class_prior_[0] > fitted.class_prior_[0] + 0.1
    change = moved.predict_log_proba(one.X) - fitted.predict_log_proba(one.X)
    change -= np.log(moved.class_prior_) - np.log(fitted.class_prior_)
    same(change, change[:, :1] + np.zeros(3), atol=1e-6)  # Bayes' rule: a constant for each row


@each("saved", able=True)
def test_what_is_loaded_says_the_same(name, tmp_path):
    one = SUBJECTS[name]
    fitted, how = one.usual, {"foreign": "skops"} if "skops" in FOUND[name]["saved"].note else {}
    mixent.save(fitted, tmp_path / "model.mixent", **how)
    np.testing.assert_array_equal(one.said(mixent.load(tmp_path / "model.mixent")), one.said(fitted))


METHODS = {
    "explanations": ("explain", "contributions"),
    "density": ("score_samples",),
    "sampling": ("sample",),
    "imputation": ("impute",),
    "batches": ("partial_fit",),
    "shifted_priors": ("adjust_priors", "update_prior"),
}


TRIED.update((name, what) for name in SUBJECTS for what in METHODS if not FOUND[name][what].able)


@pytest.mark.parametrize("what", METHODS)
@pytest.mark.parametrize("name", SUBJECTS)
def test_what_cannot_be_done_is_no_method(name, what):
    """Of the fitted estimator; and what can be done is one."""
    one = SUBJECTS[name]
    assert any(hasattr(one.usual, method) for method in METHODS[what]) is bool(FOUND[name][what].able)


# --- the table ----------------------------------------------------------------------------------------------------


def test_every_public_estimator_is_in_the_table_as_it_was_tried():
    wanted = {
        name
        for name in mixent.__all__
        if isinstance(value := getattr(mixent, name), type) and issubclass(value, Estimator)
    }
    table = mixent.capabilities()
    assert set(table.cells) == set(PUBLIC) == wanted
    for name in wanted:
        assert FOUND[name] == table.cells[name], "what was tried must be what the table shows"
    assert {cell.able for _, _, cell in table} == {True, False, None}


def test_every_cell_is_tried():
    assert {(name, what) for name in SUBJECTS for what in MEANINGS} == TRIED
    assert all(any(cells[what].able for cells in FOUND.values()) for what in MEANINGS)


def test_the_page_is_what_the_tags_say():
    assert PAGE.read_text() == page(), "run: python -m mixent.overview > docs/capabilities.md"


def test_the_page_shows_code_that_runs(capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL):
        exec(block, names)
    assert names["table"]["MaxEntClassifier", "explanations"].note == "by column"
    assert "missing values  no: " in capsys.readouterr().out


def test_a_table_can_be_looked_at():
    table = mixent.capabilities(MixtureClassifier(), GaussianMixture())
    frame = table.frame()
    assert frame.loc["GaussianMixture", "soft labels"] == "–: y is ignored"
    assert frame.shape == (2, len(MEANINGS)) and frame.loc["MixtureClassifier", "weights"] == "yes"
    assert "MixtureClassifier\n  missing values  yes: " in str(table)
    lines = table.markdown().splitlines()
    assert lines[0].startswith("| estimator | missing values | weights |")
    assert lines[3].startswith("| `GaussianMixture` | yes (1) | yes | – (")
    assert lines[5] == "1. integrated out exactly" and len(lines) == 5 + len(table.notes)
    assert table["MixtureClassifier", "batches"] == YES
    twice = mixent.capabilities(MEDClassifier(), MEDClassifier("precomputed"))
    assert list(twice.cells) == ["MEDClassifier()", "MEDClassifier(kernel='precomputed')"]
