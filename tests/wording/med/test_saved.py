"""Wording of med, saved."""

import zipfile

import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

import mixent
from mixent import MEDClassifier, MEDGaussianClassifier
from mixent.core import serialize
from mixent.options import Margin
from mixent.persistence import SavedFileError
from mixent.persistence.files import known_classes

from ...med.test_saved import LABELS, MODELS, OPTIONS, X


def dot(A, B):
    return A @ B.T


def test_functions_and_foreign_transformers_are_refused(tmp_path):
    y = LABELS["two"]
    path = tmp_path / "m.mixent"
    with pytest.raises(TypeError, match="is a function, and a mixent file holds no code; use kernel='rbf' or 'poly', "):
        mixent.save(MEDClassifier(dot, **OPTIONS).fit(X, y), path)
    gaussian = MEDGaussianClassifier(kernel=dot, n_kernel_components=3, **OPTIONS).fit(X, y)
    with pytest.raises(TypeError, match="holds no code; use kernel='rbf' or 'poly'$"):
        mixent.save(gaussian, path)
    numbers = X[["count"]]
    with pytest.raises(TypeError, match="is a StandardScaler, which a mixent file cannot hold; transform the rows"):
        mixent.save(MEDClassifier(StandardScaler(), **OPTIONS).fit(numbers, y), path)
    with pytest.raises(NotFittedError):
        mixent.save(MEDClassifier(), path)
    assert not path.exists()


def test_a_margin_that_mixent_does_not_know_is_refused(tmp_path):
    class Own(Margin):
        pass

    model = MEDClassifier(margin=Own("laplace"), C=3.0, cv=2, random_state=0).fit(X, LABELS["two"])
    with pytest.raises(TypeError, match="is a Own, which a mixent file cannot hold"):
        mixent.save(model, tmp_path / "m.mixent")


@pytest.mark.parametrize(
    ("name", "part", "said"),
    [
        ("linear", "function_", "is not of type DiscriminantFunction"),
        ("linear", "encoder_", "is not of type Encoder or None"),
        ("rbf", "kernel_", "is not of type Kernel or None"),
        ("rbf by features", "feature_map_", "is not of type Nystrom or FisherKernel or None"),
        ("linear", "calibration_", "is not of type Calibration"),
        ("linear", "margin_", "is not of type MarginPrior"),
        ("linear", "schema_", "is not of type Schema"),
        ("linear", "run_", "is not of type Run"),
        ("Gaussians", "distribution_", "is not of type JointDistribution"),
        ("Gaussians", "encoder_", "is not of type Encoder"),
        ("Gaussians, rbf", "components_", "is not of type KernelComponents or None"),
    ],
)
def test_a_model_without_a_part_is_refused(name, part, said, tmp_path):
    model = MODELS[name].fit(X, LABELS["two"])
    delattr(model, part)
    for _ in range(2):  # missing, then something else
        serialize.save(tmp_path / "m.mixent", model.set_params(progress=False), known_classes(), {})
        with pytest.raises(SavedFileError, match=rf"damaged \({part} is missing or {said}\)"):
            mixent.load(tmp_path / "m.mixent")
        setattr(model, part, "something else")


def test_a_damaged_kernel_inside_a_model_is_refused(tmp_path):
    model = MODELS["fisher"].fit(X, LABELS["two"])
    del model.feature_map_.model_.params_
    serialize.save(tmp_path / "m.mixent", model, known_classes(), {})
    with pytest.raises(SavedFileError, match=r"damaged \(params_ is missing"):
        mixent.load(tmp_path / "m.mixent")
    model.feature_map_.root_ = None
    serialize.save(tmp_path / "m.mixent", model, known_classes(), {})
    with pytest.raises(SavedFileError, match=r"damaged \(root_ is missing"):
        mixent.load(tmp_path / "m.mixent")


def test_a_cut_or_altered_file_is_refused(tmp_path):
    path = tmp_path / "m.mixent"
    mixent.save(MODELS["rbf"].fit(X, LABELS["three"]), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(SavedFileError, match="damaged or cut short"):
        mixent.load(path)
    with zipfile.ZipFile(path, "w") as pack, zipfile.ZipFile(_spare(tmp_path, whole)) as old:
        for item in old.infolist():
            data = old.read(item)
            if item.filename == "header.json":
                data = data.replace(b'"$object": "med.DiscriminantFunction"', b'"$object": "eval"')
            pack.writestr(item, data)
    with pytest.raises(SavedFileError, match="contains an object of unknown type 'eval'"):
        mixent.load(path)


def _spare(folder, content):
    path = folder / "whole.zip"
    path.write_bytes(content)
    return path
