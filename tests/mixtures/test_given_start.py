"""The parameter `init` as responsibilities or initial parameters."""

import warnings

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture as Peer

from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier, load, save
from mixent.options import Conditional, Search

PEER = {"VII": "spherical", "VVI": "diag", "EEE": "tied", "VVV": "full"}


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=150)
    return 2.0 * np.eye(3)[label] + 0.8 * rng.normal(size=(150, 3)), label


def started(X, name, **start):
    model = GaussianMixture(3, name, prior=None, init=start, tol=0, max_iter=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


def full(covariances, kind):
    """scikit-learn's covariances or precisions of each type as (K, d, d)."""
    if kind == "spherical":
        return covariances[:, None, None] * np.eye(3)
    if kind == "diag":
        return covariances[:, :, None] * np.eye(3)
    return np.tile(covariances, (3, 1, 1)) if kind == "tied" else covariances


@pytest.mark.parametrize(("name", "kind"), PEER.items())
def test_an_iteration_from_given_parameters_is_that_of_scikit_learn(rows, name, kind):
    X, _ = rows
    weights, means = np.array([0.5, 0.3, 0.2]), np.array([[2.0, 0, 0], [0, 2, 0], [0, 0, 2]])
    shape = {"spherical": (3,), "diag": (3, 3), "tied": (), "full": (3,)}[kind]
    precisions = np.random.default_rng(1).uniform(0.5, 2.0, size=shape)
    precisions = precisions if kind in ("spherical", "diag") else precisions[..., None, None] * (np.eye(3) + 0.2)
    peer = Peer(3, covariance_type=kind, weights_init=weights, means_init=means, precisions_init=precisions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.set_params(max_iter=1, reg_covar=0).fit(X)
    ours = started(X, name, weights=weights, means=means, precisions=full(precisions, kind))
    order = np.argsort(-peer.weights_)
    np.testing.assert_allclose(ours.weights_, peer.weights_[order], rtol=1e-9)
    np.testing.assert_allclose(ours.means_, peer.means_[order], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.covariances_, full(peer.covariances_, kind)[order], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ours.precisions_, full(peer.precisions_, kind)[order], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("name", ["EII", "VEI", "EEE", "VVE", "EEV", "VVV"])
def test_a_fit_from_its_own_parameters_stays_there(rows, name):
    X, _ = rows
    X = np.where(np.random.default_rng(2).random(X.shape) < 0.1, np.nan, X)
    first = GaussianMixture(3, name, prior=None, tol=1e-10, max_iter=5000, random_state=0).fit(X)
    start = {"weights": first.weights_, "means": first.means_}
    for key in ("covariances", "precisions"):
        again = started(X, name, **start, **{key: getattr(first, f"{key}_")})
        assert again.lower_bound_ == pytest.approx(first.lower_bound_, abs=1e-8)
        np.testing.assert_allclose(again.means_, first.means_, atol=1e-3)


def test_means_alone_put_each_row_in_the_nearest_component(rows):
    X, _ = rows
    means = np.array([[2.0, 0, 0], [0, 2, 0], [0, 0, 2]])
    near = ((X - means[:, None]) ** 2 / X.var(axis=0)).sum(axis=2).argmin(axis=0)
    by_means = GaussianMixture(3, prior=None, init={"means": means}).fit(X)
    by_rows = GaussianMixture(3, prior=None, init=np.eye(3)[near]).fit(X)
    assert by_means.lower_bound_ == pytest.approx(by_rows.lower_bound_, abs=1e-6)
    assert by_means.starts_.run.trace[0].objective != by_rows.starts_.run.trace[0].objective


@pytest.mark.filterwarnings("ignore::mixent.DataWarning")
def test_constant_columns_take_no_part_in_a_start(rows):
    X, _ = rows
    means = np.array([[2.0, 0, 0], [0, 2, 0], [0, 0, 2]])
    plain = GaussianMixture(3, init={"means": means}).fit(X)
    wider = GaussianMixture(3, init={"means": np.insert(means, 1, 7.0, axis=1)}).fit(np.insert(X, 1, 7.0, axis=1))
    assert wider.lower_bound_ == pytest.approx(plain.lower_bound_, rel=1e-9)
    again = GaussianMixture(3, init={"precisions": wider.precisions_}).fit(np.insert(X, 1, 7.0, axis=1))
    assert np.isfinite(again.lower_bound_)


# --- responsibilities of classifiers ---------------------------------------------------------------------------------


def two_parts(rows):
    """Two components for each of three classes: rows below and above the median of the first column in the class."""
    X, label = rows
    medians = np.array([np.median(X[label == c, 0]) for c in range(3)])
    part = 2 * label + (X[:, 0] > medians[label])
    return X, label, np.eye(6)[part]


def test_each_class_starts_like_its_own_mixture(rows):
    X, y, resp = two_parts(rows)
    model = MixtureClassifier(2, "VVI", prior=None, init=resp, tol=1e-12, max_iter=5000).fit(X, y)
    for c in range(3):
        own = resp[y == c][:, 2 * c : 2 * c + 2]
        alone = GaussianMixture(2, "VVI", prior=None, init=own, tol=1e-12, max_iter=5000).fit(X[y == c])
        np.testing.assert_allclose(np.sort(model.means_[2 * c : 2 * c + 2, 0]), np.sort(alone.means_[:, 0]), atol=1e-3)


@pytest.mark.parametrize("training", ["likelihood", Conditional(validation=0.3)])
@pytest.mark.parametrize("make", [MixtureClassifier, SharedMixtureClassifier])
def test_responsibilities_start_both_classifiers(rows, make, training):
    X, y, resp = two_parts(rows)
    y = np.where(np.arange(150) % 5 == 0, np.nan, y)  # unlabelled rows keep all responsibilities
    n_components = 2 if make is MixtureClassifier else 6
    model = make(n_components, "VVI", training=training, tol=1e-3, random_state=0)
    model.set_params(init=resp).fit(X, y)
    assert model.weights_.shape == (3, 6) and model.score(X[y == y], y[y == y]) > 0.7
    shuffled = np.random.default_rng(0).permutation(150)
    other = make(n_components, "VVI", init=resp[shuffled], tol=1e-3).fit(X[shuffled], y[shuffled])
    plain = make(n_components, "VVI", init=resp, tol=1e-3).fit(X, y)
    np.testing.assert_allclose(other.predict_proba(X), plain.predict_proba(X), atol=1e-6)


def test_a_start_is_refused_where_it_has_no_place(rows):
    X, y, resp = two_parts(rows)
    for init in (resp[:, :3], {"means": np.zeros((3, 3))}):
        for options in ({"n_components": "auto"}, {"n_components": 3, "search": Search(growth="incremental")}):
            with pytest.raises(ValueError, match="^init"):
                GaussianMixture(init=init, **options).fit(X)
    wrong = [resp[:, :5], np.roll(resp, 2, axis=1), {"means": np.zeros((6, 3))}]
    for init in wrong:
        with pytest.raises(ValueError, match="^init"):
            MixtureClassifier(2, init=init).fit(X, y)
    for init in (resp[:100], wrong[2]):
        with pytest.raises(ValueError, match="^init"):
            SharedMixtureClassifier(6, init=init).fit(X, y)


BAD = {
    "empty": {},
    "key": {"mean": np.zeros((3, 3))},
    "both": {"covariances": np.ones((3, 3)), "precisions": np.ones((3, 3))},
    "shape": {"means": np.zeros((2, 3))},
    "text": {"means": "center"},
    "missing": {"means": np.full((3, 3), np.nan)},
    "weights": {"weights": [0.5, 0.5, 0.5]},
    "negative": {"weights": [1.5, -0.25, -0.25]},
    "indefinite": {"covariances": np.tile(-np.eye(3), (3, 1, 1))},
    "infinite": {"precisions": np.full((3, 3), np.inf)},
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_starts_are_refused(rows, kind):
    with pytest.raises(ValueError, match="^init"):
        GaussianMixture(3, init=BAD[kind]).fit(rows[0])


def test_a_saved_model_keeps_its_start_and_its_history(rows, tmp_path):
    X, y, resp = two_parts(rows)
    mixture = GaussianMixture(3, init={"means": X[:3], "weights": [0.2, 0.3, 0.5]}, tol=1e-3).fit(X)
    classifier = MixtureClassifier(2, "VVI", init=resp, tol=1e-3).fit(X, y)
    for model in (mixture, classifier):
        save(model, tmp_path / "m.mixent")
        again = load(tmp_path / "m.mixent")
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    save(mixture, tmp_path / "m.mixent")
    again = load(tmp_path / "m.mixent")
    assert again.lower_bounds_ == mixture.lower_bounds_
    np.testing.assert_array_equal(again.init["means"], X[:3])
