"""Results with a row per row of a table have its library and row labels; samples are like the training table."""

from copy import deepcopy
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB

import mixent
from mixent import GaussianMixture, HiddenMarkovModel, HMMClassifier, MaxEntJoint
from mixent.data import Origin

from .subjects import CLASSES, GAPPY, PUBLIC, SEQUENCES, SUBJECTS, TABLE, N, Y

LABELS = np.random.default_rng(5).permutation([f"row {i}" for i in range(N)])
TO = {
    "pandas": lambda frame: frame.set_axis(LABELS),
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
}


def having(method):
    return [name for name in PUBLIC if name != "Fuser" and hasattr(type(PUBLIC[name]), method)]


def names_of(frame):
    return list(frame.column_names if isinstance(frame, pa.Table) else frame.columns)


def column(frame, name):
    """The values of a column as a list, None where missing."""
    values = frame[name].to_pylist() if isinstance(frame, pa.Table) else list(frame[name])
    return [None if pd.isna(value) else value for value in values]


def assert_like(result, given):
    """Same library and, where there are any, the same row labels."""
    assert type(result) is type(given)
    if isinstance(given, pd.DataFrame):
        assert result.index.equals(given.index)


def fitted_to(name, X, y=Y):
    one = SUBJECTS[name]
    return clone(one.model).fit(X, y if one.takes_y else None)


def of_subject(name, frame=TABLE):
    """The rows of an estimator as a pandas table, and whether they have names."""
    given = SUBJECTS[name].X
    return frame if given is TABLE else pd.DataFrame(given, columns=[f"step {j}" for j in range(given.shape[1])])


@cache
def subject_in(name, library):
    """The rows of an estimator in a library, and the estimator fitted to them: those who ask do not change it."""
    given = TO[library](of_subject(name))
    return given, fitted_to(name, given)


# --- missing values filled --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", TO)
@pytest.mark.parametrize("name", having("impute"))
def test_imputed_tables_are_like_the_given_ones(name, library):
    given = TO[library](GAPPY)
    model = SUBJECTS[name].usual
    filled = model.impute(given)
    assert_like(filled, given)
    assert names_of(filled) == names_of(given)
    there, back = (pd.DataFrame(frame.to_pandas() if library != "pandas" else frame) for frame in (given, filled))
    assert back.notna().all().all() and back.where(there.notna()).equals(there.where(there.notna()))
    pd.testing.assert_frame_equal(back.set_axis(GAPPY.index), model.impute(GAPPY), check_dtype=False)


@pytest.mark.parametrize("name", having("impute"))
def test_fillna_with_the_imputed_table_fills_the_rows_own_values(name):
    model, shuffled = SUBJECTS[name].usual, GAPPY.set_axis(LABELS).sample(frac=1.0, random_state=1)
    by_label = GAPPY.set_axis(LABELS).fillna(model.impute(shuffled))
    pd.testing.assert_frame_equal(by_label, model.impute(GAPPY.set_axis(LABELS)))


@pytest.mark.parametrize("name", having("impute"))
def test_imputed_arrays_are_arrays(name):
    numbers, objects = GAPPY[["height", "age"]].to_numpy(), GAPPY.to_numpy(dtype=object)
    for given in (numbers, objects, objects.tolist()):
        filled = fitted_to(name, given).impute(given)
        assert isinstance(filled, np.ndarray) and filled.dtype == (float if given is numbers else object)
        known = pd.notna(np.asarray(given, dtype=object))
        assert pd.notna(filled).all() and (filled[known] == np.asarray(given, dtype=object)[known]).all()


def typed():
    """A column of every type that can hold missing values, each with some."""
    rng = np.random.default_rng(6)
    words = rng.choice(["p", "q", "r"], N)
    frame = pd.DataFrame(
        {
            "double": rng.normal(size=N),
            "single": rng.normal(size=N).astype("float32"),
            "whole": pd.array(rng.integers(0, 9, N), dtype="Int32"),
            "flag": pd.array(rng.random(N) < 0.5, dtype="boolean"),
            "ordered": pd.Categorical(words, categories=["r", "q", "p"], ordered=True),
            "string": pd.array(words, dtype="string"),
            "objects": np.array([bool(value) for value in rng.random(N) < 0.5], dtype=object),
            "complete": rng.integers(0, 9, N).astype("int16"),
        }
    )
    for j in range(frame.shape[1] - 1):
        frame.iloc[j::9, j] = None
    return frame


@pytest.mark.parametrize("model", [GaussianMixture(2, "VVI"), MaxEntJoint(prior_variance=1.0)])
def test_types_of_columns_are_kept(model):
    frame = typed()
    filled = clone(model).fit(frame).impute(frame)
    same = frame.columns.drop("objects")
    assert filled.dtypes[same].equals(frame.dtypes[same]) and filled["objects"].dtype.kind == "b"
    for given in (pl.from_pandas(frame), pl.from_pandas(frame).to_arrow()):
        assert clone(model).fit(given).impute(given).schema == given.schema


def test_a_column_keeps_its_numbers_where_floats_cannot_hold_them():
    large = pd.array([2**60 + 1, 2**60 + 3, None, 2**60 + 7], dtype="Int64")
    frame = pd.DataFrame({"id": large, "x": [0.0, 1.0, 2.0, 3.0]})
    model = GaussianMixture(1, "VVI").fit(frame.assign(id=pd.array([1, 2, 3, 4], dtype="Int64")))
    for given in (frame, pl.from_pandas(frame)):
        filled = column(model.impute(given), "id")
        assert [filled[i] for i in (0, 1, 3)] == [2**60 + 1, 2**60 + 3, 2**60 + 7] and 0 < filled[2] < 5


def test_categories_of_training_rows_are_added_where_the_table_lacks_them():
    frame = pd.DataFrame({"shade": pd.Categorical(["dark"] * 30 + ["light"] * 5), "x": np.r_[np.zeros(30), np.ones(5)]})
    frame["x"] += np.linspace(0, 0.1, 35)
    model = GaussianMixture(2, "EII", random_state=0).fit(frame)
    new = pd.DataFrame({"shade": pd.Categorical(["light", None]), "x": [1.0, 0.0]})
    assert model.impute(new)["shade"].tolist() == ["light", "dark"]
    lacks = pl.DataFrame({"shade": pl.Series(["light", None], dtype=pl.Enum(["light"])), "x": [1.0, 0.0]})
    assert model.impute(lacks)["shade"].to_list() == ["light", "dark"]


# --- rows drawn -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", TO)
@pytest.mark.parametrize("name", having("sample"))
def test_samples_are_like_the_training_table(name, library):
    given, model = subject_in(name, library)
    drawn, labels = model.sample(7, random_state=0)
    assert type(drawn) is type(given) and names_of(drawn) == names_of(given) and len(labels) == 7
    table = drawn if library == "pandas" else drawn.to_pandas()
    if "color" in table:
        assert set(table["color"]) <= set(TABLE["color"])
    again, _ = subject_in(name, "pandas")[1].sample(7, random_state=0)
    pd.testing.assert_frame_equal(table, again, check_dtype=False)


@pytest.mark.parametrize("name", having("sample"))
def test_samples_of_a_model_of_an_array_are_an_array(name):
    array = of_subject(name).to_numpy(dtype=object if SUBJECTS[name].X is TABLE else float)
    drawn, _ = fitted_to(name, array).sample(7, random_state=0)
    assert isinstance(drawn, np.ndarray) and drawn.shape == (7, array.shape[1]) and drawn.dtype == array.dtype


def test_a_loaded_model_draws_rows_in_the_same_library(tmp_path):
    model = subject_in("GaussianMixture", "polars")[1]
    mixent.save(model, tmp_path / "model.mixent")
    drawn = mixent.load(tmp_path / "model.mixent").sample(3, random_state=0)[0]
    assert drawn.equals(model.sample(3, random_state=0)[0])


def test_sampled_sequences():
    steps = pd.DataFrame({"speed": SEQUENCES[:20].ravel(), "kind": np.where(SEQUENCES[:20].ravel() > 0, "up", "down")})
    drawn, states = HiddenMarkovModel(2, random_state=0).fit(pl.from_pandas(steps), lengths=[5] * 20).sample(3, 4)
    assert isinstance(drawn, pl.DataFrame) and drawn.columns == ["speed", "kind"] and drawn.height == len(states) == 12
    by_row = HiddenMarkovModel(2, random_state=0).fit(pd.DataFrame(SEQUENCES, columns=list("abcde")))
    assert list(by_row.sample(3)[0].columns) == list("abcde") and by_row.sample(3, 4)[0].shape == (3, 4)


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", TO)
@pytest.mark.parametrize("name", having("decision"))
def test_decisions_have_the_row_labels(name, library):
    given, model = subject_in(name, library)
    decision = model.decision(given, reject=0.3)
    assert_like(decision.frame(), given)
    assert names_of(decision.frame()) == ["label", "expected_cost", "rejected"]
    assert column(decision.frame(), "label") == decision.labels.tolist()


@pytest.mark.parametrize("library", TO)
@pytest.mark.parametrize("name", having("explain"))
def test_explanations_have_the_row_labels(name, library):
    given, model = subject_in(name, library)
    explanation = model.explain(given)
    assert_like(explanation.frame(), given)
    assert len(names_of(explanation.frame())) == 4 + len(explanation.names)


def test_explanations_of_other_libraries_have_the_row_labels():
    given = TO["pandas"](TABLE[["height", "age"]])
    explanation = mixent.explain(GaussianNB().fit(given, Y), given[:3], background=given)
    assert_like(explanation.frame(), given[:3])


def test_a_column_called_label_is_a_part_of_its_own():
    frame = TABLE.rename(columns={"age": "label"})
    table = fitted_to("MaxEntClassifier", frame).explain(frame).frame()
    assert "label (part)" in table and set(table["label"]) <= set(CLASSES)


def test_decisions_of_sequences_with_a_row_per_step_have_no_row_labels():
    steps = pd.DataFrame({"speed": SEQUENCES.ravel()}, index=[f"step {i}" for i in range(SEQUENCES.size)])
    model = HMMClassifier(2, random_state=0).fit(steps, Y, lengths=[5] * N)
    assert model.decision(steps, lengths=[5] * N).frame().index.equals(pd.RangeIndex(N))


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", having("transform"))
def test_transformed_rows_are_arrays_unless_set_output_is_used(name, library):
    given, model = subject_in(name, library)
    model = deepcopy(model)
    plain = model.transform(given)
    assert isinstance(plain, np.ndarray)
    framed = model.set_output(transform=library).transform(given)
    assert_like(framed, given)
    np.testing.assert_array_equal(framed.to_numpy(), plain)
    assert names_of(framed) == model.get_feature_names_out().tolist()


@pytest.mark.parametrize("method", ["predict", "predict_proba", "score_samples", "decision_function"])
def test_values_of_rows_are_arrays(method):
    for name in having(method):
        given, model = subject_in(name, "polars")
        assert isinstance(getattr(model, method)(given), np.ndarray), name


def test_the_origin_of_an_array_is_none():
    assert Origin.of(np.ones((2, 1))) == Origin() and Origin().frame({"a": [1.0]}).equals(pd.DataFrame({"a": [1.0]}))
