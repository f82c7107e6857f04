"""The files in tests/saved, one of each estimator, are read and predict what they did when they were written."""

import io
import json
import tracemalloc
import zipfile

import numpy as np
import pytest

import mixent
from mixent.core import serialize
from mixent.persistence import SavedFileError

from .saved import make
from .subjects import PUBLIC, SUBJECTS

ANSWERS = json.loads(make.ANSWERS.read_text())


@pytest.mark.parametrize("name", PUBLIC)
def test_a_kept_file_predicts_as_it_did(name):
    path = make.HERE / f"{name}.mixent"
    assert path.exists(), "an estimator is new: run python tests/saved/make.py"
    model = mixent.load(path)
    np.testing.assert_allclose(make.kept_answers(SUBJECTS[name], model), ANSWERS[name], rtol=1e-9, atol=1e-12)
    assert type(model).__name__ == name and model.summary().sections


def changed(source, target, change):
    """A copy of a file whose model, as JSON, was changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename == "header.json":
                header = json.loads(data)
                change(header["model"]["state"])
                data = json.dumps(header).encode()
            new.writestr(item.filename, data)
    return target


def test_a_parameter_that_is_newer_than_the_file_has_its_default(tmp_path):
    path = changed(make.HERE / "MixtureClassifier.mixent", tmp_path / "m.mixent", lambda state: state.pop("training"))
    assert mixent.load(path).training == "likelihood"


# --- crafted files ----------------------------------------------------------------------------------------------------


def with_array(source, target, name, values):
    """A copy of a file with another array."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for item in old.infolist():
            buffer = io.BytesIO(old.read(item))
            if item.filename == name:
                buffer = io.BytesIO()
                np.save(buffer, values)
            new.writestr(item.filename, buffer.getvalue())
    return target


def arrays_of(path, kinds):
    with zipfile.ZipFile(path) as pack:
        arrays = {n: np.load(io.BytesIO(pack.read(n))) for n in pack.namelist() if n.startswith("arrays/")}
    found = {name: values for name, values in arrays.items() if values.dtype.kind in kinds and values.size}
    some = list(found)[:: 1 + len(found) // 30]
    return {name: found[name] for name in some}


@pytest.mark.parametrize("name", PUBLIC)
def test_no_position_leads_out_of_its_array(name, tmp_path):
    """A position that `numpy.bincount` takes on trust wrote outside of the memory of an array."""
    path = make.HERE / f"{name}.mixent"
    labels = mixent.load(path).classes_ if "classes_" in vars(mixent.load(path)) else ()
    for array, values in arrays_of(path, "iu").items():
        if np.array_equal(values, labels) or (
            set(values.ravel().tolist()) == {0, 1} and "Boost" in name
        ):  # class labels
            continue
        for crafted in (np.iinfo(values.dtype).max, -2, 40_000_000 // 8):
            out = values.copy()
            out.flat[0] = crafted
            with pytest.raises(SavedFileError, match="damaged"):
                mixent.load(with_array(path, tmp_path / "m.mixent", array, out))


@pytest.mark.parametrize("name", PUBLIC)
def test_no_number_that_is_used_is_nan(name, tmp_path):
    """Only what describes the training rows, or the course of the optimization, may hold NaN."""
    path = make.HERE / f"{name}.mixent"
    refused = []
    for array, values in arrays_of(path, "f").items():
        out = values.copy()
        out.flat[-1] = np.nan
        try:
            model = mixent.load(with_array(path, tmp_path / "m.mixent", array, out))
            assert np.isfinite(make.kept_answers(SUBJECTS[name], model)).all()
        except SavedFileError:
            refused.append(array)
    assert refused


def test_the_limit_of_memory_is_the_peak(tmp_path):
    """An array is read into its own memory: no second copy of it is made, and a larger one is not read at all."""
    n = 4_000_000
    path = with_array(make.HERE / "MixtureClassifier.mixent", tmp_path / "m.mixent", "arrays/0.npy", np.zeros(n))
    for limit, largest in ((9 * n, 9 * n), (7 * n, n)):
        tracemalloc.start()
        with pytest.raises(SavedFileError):
            mixent.load(path, max_bytes=limit)
        assert tracemalloc.get_traced_memory()[1] < largest
        tracemalloc.stop()
    assert serialize.MAX_BYTES == 512 << 20


def test_a_large_header_takes_less_than_the_limit(tmp_path):
    """Of the kinds of values that take most memory for their length."""
    for item in ("{}", '{"$dict":[]}', '{"$tuple":[]}', "[[]]", '{"a":0}', "0.5", '"ab"', '{"$float":"1"}'):
        text = "[" + ",".join([item] * ((256 << 10) // (len(item) + 1))) + "]"
        path = tmp_path / "m.mixent"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
            about = '{"format": "mixent", "format_version": 3, "n_arrays": 0, "model": '
            pack.writestr("header.json", about + text + "}")
        tracemalloc.start()
        with pytest.raises(SavedFileError):
            mixent.load(path)
        allowed = sum(text.count(sign.decode()) * cost for sign, cost in serialize._COSTS.items())
        assert tracemalloc.get_traced_memory()[1] < allowed + (1 << 20)
        tracemalloc.stop()
