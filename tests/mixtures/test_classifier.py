"""The Bayes classifier: its special cases, and what labels, priors and the order of things mean."""

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ShuffleSplit

from mixent import GaussianMixture, MixtureClassifier
from mixent.base.bounded_loss import fit_temperature, row_losses
from mixent.options import Search


@pytest.fixture(params=["iris", "wine"])
def data(request):
    return {"iris": load_iris, "wine": load_wine}[request.param](return_X_y=True)


# --- special cases ---------------------------------------------------------------------------------------------------


def log_posteriors(model, X, factor=1.0):
    """Straight from the formula, with every covariance multiplied by a factor."""
    joint = []
    for p, m, S in zip(model.class_prior_, model.means_, model.covariances_ * factor):
        square = np.sum((X - m) @ np.linalg.inv(S) * (X - m), axis=1)
        joint.append(np.log(p) - 0.5 * np.linalg.slogdet(S)[1] - 0.5 * square)
    joint = np.stack(joint, axis=1)
    return joint - np.logaddexp.reduce(joint, axis=1)[:, None]


def one_of(candidates, wanted, rtol, atol):
    return any(np.allclose(c, wanted, rtol=rtol, atol=atol) for c in candidates)


def test_one_free_gaussian_per_class_is_quadratic_discriminant_analysis(data):
    """scikit-learn divides the scatter of a class by n_c or, in older versions, by n_c - 1."""
    X, y = data
    model = MixtureClassifier(1, "VVV", prior=None).fit(X, y)
    qda = QuadraticDiscriminantAnalysis(store_covariance=True).fit(X, y)
    np.testing.assert_allclose(model.means_, qda.means_, rtol=1e-9)
    np.testing.assert_allclose(model.class_prior_, qda.priors_, rtol=1e-12)
    for c, n in enumerate(np.bincount(y)):
        ours = model.covariances_[c]
        assert one_of([ours, ours * n / (n - 1)], qda.covariance_[c], 1e-7, 1e-9)
    np.testing.assert_allclose(model.predict_log_proba(X), log_posteriors(model, X), rtol=1e-7, atol=1e-7)
    if np.allclose(model.covariances_, qda.covariance_, rtol=1e-7, atol=1e-9):
        np.testing.assert_allclose(model.predict_proba(X), qda.predict_proba(X), rtol=1e-6, atol=1e-10)
    assert (model.predict(X) == qda.predict(X)).mean() > 0.98


def test_one_shared_covariance_is_linear_discriminant_analysis(data):
    """scikit-learn's lsqr divides the scatter within classes by n, as maximum likelihood does; its svd may by n - C."""
    X, y = data
    model = MixtureClassifier(1, "EEE", across_classes=True, prior=None).fit(X, y)
    lsqr = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X, y)
    np.testing.assert_allclose(model.covariances_[0], lsqr.covariance_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(model.predict_proba(X), lsqr.predict_proba(X), rtol=1e-6, atol=1e-10)
    svd = LinearDiscriminantAnalysis(solver="svd").fit(X, y)
    ours = [np.exp(log_posteriors(model, X, factor)) for factor in (1.0, len(X) / (len(X) - 3))]
    assert one_of(ours, svd.predict_proba(X), 1e-6, 1e-10)


def spherical_em(X, resp, n_passes, equal):
    """Document 003, equations 1 to 5, line by line; `equal`: one sigma for all (EII), else one each (VII)."""
    D = X.shape[1]
    for _ in range(n_passes):
        p, mu, sigma = spherical_update(X, resp, equal)
        square = ((X[:, None, :] - mu) ** 2).sum(axis=2)
        g = np.exp(-0.5 * square / sigma**2) / (np.sqrt(2 * np.pi) * sigma) ** D  # (2)
        resp = p * g / (p * g).sum(axis=1, keepdims=True)  # (1)
    return spherical_update(X, resp, equal)


def spherical_update(X, resp, equal):
    n, D = X.shape
    p = resp.mean(axis=0)  # (5)
    mu = (resp.T @ X) / resp.sum(axis=0)[:, None]  # (3)
    square = ((X[:, None, :] - mu) ** 2).sum(axis=2)
    sigma = np.sqrt((resp * square).sum(axis=0) / D / resp.sum(axis=0))  # (4)
    return p, mu, np.full(len(p), np.sqrt((resp * square).sum() / D / n)) if equal else sigma


@pytest.mark.usefixtures("plain_em")
@pytest.mark.parametrize(("name", "equal"), [("EII", True), ("VII", False)])
@pytest.mark.parametrize("n_passes", [1, 5, 40])
def test_spherical_em_is_that_of_document_003(draw, soft_start, name, equal, n_passes):
    X, _ = draw(n=200, d=2)
    start = soft_start(200, 3)
    p, mu, sigma = spherical_em(X, start, n_passes, equal)
    mixture = GaussianMixture(3, name, prior=None, init=start, tol=0, max_iter=n_passes)
    with pytest.warns(ConvergenceWarning, match="max_iter was reached"):
        mixture.fit(X)
    order = np.argsort(-p)
    # the start mixes 1e-6 of the flat weight in, so that no component begins empty; it is gone after a few passes
    rtol = 1e-5 if n_passes < 10 else 1e-6
    np.testing.assert_allclose(mixture.weights_, p[order], rtol=rtol)
    np.testing.assert_allclose(mixture.means_, mu[order], rtol=rtol, atol=1e-5)
    np.testing.assert_allclose(
        mixture.covariances_, sigma[order, None, None] ** 2 * np.eye(2), rtol=10 * rtol, atol=1e-12
    )


def test_the_classifier_runs_that_em_in_each_class(draw):
    """With one class's rows alone, the class-conditional density is that of a mixture of those rows."""
    X, label = draw(n=300, d=2)
    y = (label == 2).astype(int)
    model = MixtureClassifier({0: 2, 1: 1}, "VII", prior=None, tol=1e-12, max_iter=5000, random_state=0).fit(X, y)
    own = model.component_class_ == 0
    p, mu, sigma = spherical_em(X[y == 0], _start_near(X[y == 0], model.means_[own]), 500, False)
    order = np.argsort(-p)
    np.testing.assert_allclose(model.weights_[0, own] / model.class_prior_[0], p[order], rtol=1e-4)
    np.testing.assert_allclose(model.means_[own], mu[order], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(model.covariances_[own][:, 0, 0], sigma[order] ** 2, rtol=1e-4)


def _start_near(X, means):
    return np.equal(((X[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)[:, None], np.arange(len(means))).astype(
        float
    )


# --- labels ----------------------------------------------------------------------------------------------------------


def test_hard_labels_are_one_hot_probabilities(draw, same):
    import pandas as pd

    X, label = draw(missing=0.1)
    names = np.array(["low", "mid", "top"])
    frame = pd.DataFrame(np.eye(3)[label], columns=names)[["top", "low", "mid"]]
    hard = MixtureClassifier(2, "VVI", random_state=0).fit(X, names[label])
    soft = MixtureClassifier(2, "VVI", random_state=0).fit(X, frame)
    same(hard, soft, 0)
    np.testing.assert_array_equal(hard.classes_, soft.classes_)
    np.testing.assert_array_equal(hard.predict_proba(X), soft.predict_proba(X))


@pytest.mark.parametrize("absent", [None, np.nan, ""], ids=["None", "NaN", "blank"])
def test_an_absent_label_is_a_row_of_ones(draw, same, absent):
    X, label = draw(gap=1.0)
    gone = np.random.default_rng(0).random(len(X)) < 0.4
    y = np.array(["a", "b", "c"], dtype=object)[label]
    y[gone] = absent
    likelihood = np.eye(3)[label]
    likelihood[gone] = 1.0
    one = MixtureClassifier(1, "VVV").fit(X, y)
    other = MixtureClassifier(1, "VVV").fit(X, likelihood)
    same(one, other, 1e-9)
    assert one.classes_.tolist() == ["a", "b", "c"]


def test_missing_whole_numbers_stay_whole_numbers(draw):
    X, label = draw()
    y = label + 5.0
    y[::4] = np.nan
    model = MixtureClassifier(1, "VVV").fit(X, y)
    assert model.classes_.tolist() == [5, 6, 7] and model.classes_.dtype.kind == "i"


@pytest.mark.usefixtures("plain_em")
def test_nearly_certain_labels_are_nearly_hard_ones(draw, same):
    X, label = draw(gap=1.0)
    hard = MixtureClassifier(1, "VVV", tol=1e-10).fit(X, label)
    eps = 1e-9
    soft = np.full((len(X), 3), eps / 2)
    soft[np.arange(len(X)), label] = 1 - eps
    same(hard, MixtureClassifier(1, "VVV", tol=1e-10).fit(X, soft), 1e-5)


def test_equal_label_probabilities_say_as_little_as_no_label(draw, same):
    """A likelihood counts up to a factor: (1/3, 1/3, 1/3) is (1, 1, 1)."""
    X, label = draw(gap=1.5)
    likelihood = np.eye(3)[label]
    likelihood[::3] = 1.0
    thirds = np.eye(3)[label]
    thirds[::3] = 1 / 3
    options = {"tol": 1e-13, "max_iter": 20000}
    ones = MixtureClassifier(1, "EEE", **options).fit(X, likelihood)
    same(ones, MixtureClassifier(1, "EEE", **options).fit(X, thirds), 1e-6)


def test_labels_absent_from_a_class_but_one_row_each_cluster(draw):
    """Semi-supervised learning: 4 labels of 200, well separated classes."""
    X, label = draw(seed=8, n=200, K=2, gap=6.0)
    y = np.full(200, np.nan)
    for c in range(2):
        y[np.flatnonzero(label == c)[:2]] = c
    model = MixtureClassifier(1, "VVV").fit(X, y)
    assert (model.predict(X) == label).all()
    np.testing.assert_allclose(model.class_prior_, np.bincount(label) / 200, atol=0.01)


def test_rows_without_labels_help():
    """Two parallel clouds and three labels each: so few do not show the direction that tells them apart."""
    rng = np.random.default_rng(1)
    n = 400
    label = rng.integers(2, size=2 * n)
    X = rng.normal(size=(2 * n, 6)) * 2.5
    X[:, 0] = rng.normal(size=2 * n) * 0.5 + np.where(label, 1.2, -1.2)
    train, test = np.arange(n), np.arange(n, 2 * n)
    y = np.full(n, np.nan)
    for c in range(2):
        y[np.flatnonzero(label[train] == c)[:3]] = c
    known = ~np.isnan(y)
    supervised = MixtureClassifier(1, "EEE", across_classes=True).fit(X[train][known], y[known])
    everything = MixtureClassifier(1, "EEE", across_classes=True).fit(X[train], y)
    right = [m.score(X[test], label[test]) for m in (supervised, everything)]
    assert right[1] > 0.97
    assert right[1] > right[0] + 0.05


# --- priors, components, structures ----------------------------------------------------------------------------------


def test_class_priors_are_the_shares_of_the_weights(draw):
    X, label = draw()
    weight = np.random.default_rng(0).exponential(size=len(X))
    model = MixtureClassifier(2, "VVI", random_state=0).fit(X, label, sample_weight=weight)
    np.testing.assert_allclose(model.class_prior_, np.bincount(label, weight) / weight.sum(), rtol=1e-12)
    np.testing.assert_allclose(model.weights_.sum(axis=1), model.class_prior_, rtol=1e-12)


@pytest.mark.parametrize("gone", [False, True], ids=["labelled", "semi-supervised"])
def test_given_class_priors_are_held(draw, gone):
    X, label = draw(gap=1.0)
    y = label.astype(float)
    y[::3] = np.nan if gone else y[::3]
    model = MixtureClassifier(2, "VVI", class_prior=[1, 2, 7], random_state=0).fit(X, y)
    np.testing.assert_allclose(model.class_prior_, [0.1, 0.2, 0.7], rtol=1e-12)
    np.testing.assert_allclose(model.predict_proba(np.full((1, 3), np.nan)), [[0.1, 0.2, 0.7]], rtol=1e-9)


def test_components_and_structures_by_class(draw):
    X, label = draw(n=300)
    names = np.array(["x", "y", "z"])[label]
    model = MixtureClassifier(
        {"x": 1, "y": 2, "z": 3}, {"x": "VVV", "y": "EII", "z": "VVI"}, prior=None, random_state=0
    ).fit(X, names)
    assert model.n_components_.tolist() == [1, 2, 3]
    assert model.component_class_.tolist() == [0, 1, 1, 2, 2, 2]
    assert model.covariance_ == ["VVV", "EII", "VVI"]
    assert model.weights_.shape == (3, 6) and ((model.weights_ > 0).sum(axis=0) == 1).all()
    spheres = model.covariances_[1:3]
    np.testing.assert_allclose(spheres, spheres[0, 0, 0] * np.eye(3)[None].repeat(2, 0), rtol=1e-12)
    boxes = model.covariances_[3:]
    assert (boxes[:, ~np.eye(3, dtype=bool)] == 0).all() and len(set(boxes[:, 0, 0])) == 3
    assert (model.covariances_[0] != 0).all()
    # 6 means; 6 + 1 + 9 in covariances; 0 + 1 + 2 weights within classes; 2 class priors
    assert model.n_parameters_ == 6 * 3 + (6 + 1 + 3 * 3) + 3 + 2


def test_across_classes_shares_among_classes_and_otherwise_only_within(draw):
    X, label = draw()
    within = MixtureClassifier(2, "EEE", random_state=0).fit(X, label).covariances_
    across = MixtureClassifier(2, "EEE", across_classes=True, random_state=0).fit(X, label).covariances_
    np.testing.assert_array_equal(within[0], within[1])
    assert np.abs(within[0] - within[2]).max() > 1e-3
    assert all(np.array_equal(across[0], cov) for cov in across)


def test_components_come_by_class_and_falling_weight(draw):
    X, label = draw(n=400)
    for seed in range(5):
        model = MixtureClassifier(3, "VVI", random_state=seed).fit(X, label)
        assert model.component_class_.tolist() == sorted(model.component_class_.tolist())
        for c in range(3):
            own = model.weights_[c, model.component_class_ == c]
            assert (np.diff(own) <= 0).all()


# --- the answer moves with the question ------------------------------------------------------------------------------


def test_relabelling_the_classes_relabels_the_answers(draw):
    X, label = draw(missing=0.1)
    new = np.array(["c", "a", "b"])  # 0 -> c, 1 -> a, 2 -> b
    one, other = MixtureClassifier(1, "VVV").fit(X, label), MixtureClassifier(1, "VVV").fit(X, new[label])
    place = np.argsort(np.argsort(new))  # where each old class stands now
    np.testing.assert_allclose(other.predict_proba(X)[:, place], one.predict_proba(X), rtol=1e-9, atol=1e-15)
    np.testing.assert_array_equal(other.predict(X), new[one.predict(X)])


def test_permuting_the_columns_changes_no_answer(draw):
    X, label = draw(missing=0.1)
    order = [2, 0, 1]
    one, other = MixtureClassifier(1, "VVV").fit(X, label), MixtureClassifier(1, "VVV").fit(X[:, order], label)
    np.testing.assert_allclose(other.means_, one.means_[:, order], rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(other.predict_proba(X[:, order]), one.predict_proba(X), rtol=1e-7, atol=1e-12)


def test_permuting_the_rows_permutes_the_answers(draw):
    X, label = draw(missing=0.1)
    order = np.random.default_rng(0).permutation(len(X))
    one, other = MixtureClassifier(1, "VVV").fit(X, label), MixtureClassifier(1, "VVV").fit(X[order], label[order])
    np.testing.assert_allclose(other.predict_proba(X[order]), one.predict_proba(X)[order], rtol=1e-7, atol=1e-12)


# --- generative side -------------------------------------------------------------------------------------------------


def test_an_outlier_has_a_low_density(draw):
    X, label = draw()
    model = MixtureClassifier(1, "VVV").fit(X, label)
    usual = model.score_samples(X)
    assert model.score_samples([[60.0, -60.0, 60.0]])[0] < usual.min() - 100


def test_score_samples_sums_the_classes_out(draw):
    X, label = draw(missing=0.2)
    model = MixtureClassifier(2, "VVI", random_state=0).fit(X, label)
    np.testing.assert_allclose(
        model.score_samples(X), np.logaddexp.reduce(model._log_joint(X), axis=1), rtol=1e-10, atol=1e-12
    )


def test_a_fit_on_samples_recovers_the_model(draw):
    X, label = draw(n=300)
    names = np.array(["x", "y", "z"])[label]
    model = MixtureClassifier(1, "VVV").fit(X, names)
    sample, drawn = model.sample(20000, random_state=0)
    assert sample.shape == (20000, 3) and set(drawn) == {"x", "y", "z"}
    again = MixtureClassifier(1, "VVV", prior=None).fit(sample, drawn)
    np.testing.assert_allclose(again.class_prior_, model.class_prior_, atol=0.02)
    np.testing.assert_allclose(again.means_, model.means_, atol=0.1)
    np.testing.assert_allclose(again.covariances_, model.covariances_, atol=0.15)


def test_samples_are_reproduced_by_the_random_state(draw):
    X, label = draw()
    model = MixtureClassifier(1, "VVV", random_state=3).fit(X, label)
    for a, b in zip(model.sample(5), model.sample(5)):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(model.sample(5)[0], model.sample(5, random_state=1)[0])


def test_marginal_is_the_classifier_of_some_columns(draw):
    """Equal to the whole classifier with the other columns missing."""
    X, label = draw(missing=0.1)
    model = MixtureClassifier(2, "EEE", random_state=0).fit(X, label)
    part, alone = model.marginal([1]), np.full_like(X, np.nan)
    alone[:, 1] = X[:, 1]
    np.testing.assert_allclose(part.predict_proba(X[:, [1]]), model.predict_proba(alone), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(part.score_samples(X[:, [1]]), model.score_samples(alone), rtol=1e-9, atol=1e-12)


# --- "auto" ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def rings():
    """A class of two far groups around another: one Gaussian per class cannot tell them apart."""
    rng = np.random.default_rng(0)
    inner = rng.normal(size=(150, 2)) * 0.5
    outer = rng.normal(size=(150, 2)) * 0.5 + np.where(rng.random(150) < 0.5, 3.0, -3.0)[:, None] * [1.0, 0.0]
    return np.concatenate([inner, outer]), np.repeat(["in", "out"], 150)


@pytest.fixture(scope="module")
def auto(rings):
    return MixtureClassifier(search=Search(max_components=3, cv=3), random_state=0).fit(*rings)


def test_auto_finds_what_the_classes_need(auto, rings):
    X, y = rings
    assert auto.score(X, y) > 0.98
    best = auto.search_[0]
    most = max(r["folds"] for r in auto.search_)
    assert best["log_loss"] == min(r["log_loss"] for r in auto.search_ if r["folds"] == most)
    (chosen,) = (r for r in auto.search_ if r["chosen"])
    assert list(auto.n_components_) == chosen["n_components"] and chosen["folds"] == most
    assert sum(chosen["n_components"]) <= sum(best["n_components"])  # the simplest within noise of the best
    assert chosen["temperature"] == auto.temperature_
    assert 0 < auto.temperature_ <= 1
    for record in auto.search_:
        assert set(record) >= {
            "n_components",
            "covariance",
            "across_classes",
            "prior_rows",
            "log_loss",
            "error",
            "temperature",
        }
        assert np.isfinite(record["log_loss"]) and 0 <= record["error"] <= 1
        assert record["log_loss"] <= record["log_loss_raw"]


def test_auto_searches_the_structures_it_is_given(rings):
    X, y = rings
    model = MixtureClassifier(covariance=["VVI", "EII"], search=Search(max_components=2, cv=2), random_state=0).fit(
        X, y
    )
    assert {r["covariance"] for r in model.search_} == {"VVI", "EII"}
    one = MixtureClassifier(covariance="VVI", search=Search(max_components=2, cv=2), random_state=0).fit(X, y)
    assert {r["covariance"] for r in one.search_} == {"VVI"}


def test_auto_is_reproduced_by_the_random_state(auto, rings, same):
    X, y = rings
    again = MixtureClassifier(search=Search(max_components=3, cv=3), random_state=0).fit(X, y)
    same(auto, again, 0)
    assert again.search_ == auto.search_
    np.testing.assert_array_equal(again.predict_proba(X), auto.predict_proba(X))


def test_auto_of_few_rows_is_one_shrunk_gaussian_per_class(draw):
    X, label = draw(n=30)
    model = MixtureClassifier().fit(X, label)
    assert model.search_ == [] and model.temperature_ == 1.0
    assert model.n_components_.tolist() == [1, 1, 1]
    assert model.prior_rows_ == 5 * (3 + 2)


def test_auto_takes_absent_and_uncertain_labels_gaps_and_weights(draw):
    X, label = draw(n=200, missing=0.1)
    y = np.full((200, 3), 0.1)
    y[np.arange(200), label] = 0.8
    y[:40] = 1.0
    model = MixtureClassifier(search=Search(max_components=2, cv=3), random_state=0)
    model.fit(X, y, sample_weight=np.random.default_rng(0).exponential(size=200))
    assert len(model.search_) > 3 and model.score(X, label) > 0.8


def test_auto_does_not_care_how_classes_are_called(draw):
    X, label = draw(n=200, seed=4)
    one, other = (
        MixtureClassifier(search=Search(max_components=1, cv=3), random_state=0).fit(X, names[label])
        for names in (np.array(["a", "b", "c"]), np.array(["x", "y", "z"]))
    )
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_auto_goes_on_with_a_single_split(rings):
    X, y = rings
    one = MixtureClassifier(search=Search(cv=ShuffleSplit(1, test_size=0.3, random_state=0)), random_state=0).fit(X, y)
    assert max(max(r["n_components"]) for r in one.search_) > 3


def test_the_temperature_is_the_best_on_a_fine_grid():
    rng = np.random.default_rng(0)
    density, target = 8 * rng.normal(size=(300, 3)), np.eye(3)[rng.integers(3, size=300)]
    density += 6 * target
    prior = np.tile(np.log([0.5, 0.3, 0.2]), (300, 1))
    found, loss, raw = fit_temperature(density, prior, target, np.ones(300))
    grid = [row_losses(density, prior, t, target).mean() for t in np.geomspace(0.02, 1, 400)]
    assert loss <= min(grid) + 1e-6 and loss < raw and 0.02 <= found <= 1


def test_soft_labels_are_likelihoods_in_the_search_too(draw):
    """Doubt about the label is not doubt of the model: 80 % labels must not flatten the probabilities."""
    X, label = draw(n=240, seed=5)
    sure = MixtureClassifier(search=Search(max_components=2, cv=3), random_state=0).fit(X, label)
    soft = MixtureClassifier(search=Search(max_components=2, cv=3), random_state=0).fit(
        X, 0.8 * np.eye(3)[label] + 0.2 / 3
    )
    assert soft.score(X, label) > sure.score(X, label) - 0.02
    assert soft.temperature_ > 0.5 * sure.temperature_


@pytest.mark.filterwarnings("ignore:constant:mixent.DataWarning")
def test_a_failed_refit_leaves_the_model_as_it_was(data):
    X, _ = data
    model = GaussianMixture(2, random_state=0).fit(X)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="rows"):
        model.set_params(n_components=5).fit(np.column_stack([X[:3, :-1], np.ones(3)]))
    np.testing.assert_array_equal(model.predict_proba(X), before)


def test_a_row_of_weight_zero_does_not_set_a_constant(draw):
    X, _ = draw(n=100)
    X = np.column_stack([X, np.full(100, 3.0)])
    X[0, -1] = 99.0
    model = GaussianMixture(1).fit(X, sample_weight=np.r_[0.0, np.ones(99)])
    np.testing.assert_array_equal(model.means_[:, -1], 3.0)
