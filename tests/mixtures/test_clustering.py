"""GaussianMixture: starts, search, criteria, warm start, sampling."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture as Peer

from mixent import GaussianMixture
from mixent.families.gaussian.prior import common_variances
from mixent.options import Search

NAMES = ("EII", "VII", "EEI", "VEI", "EVI", "VVI", "EEE", "VEE", "EVE", "VVE", "EEV", "VEV", "EVV", "VVV")


# --- criteria --------------------------------------------------------------------------------------------------------

COVARIANCE_PARAMETERS = {  # CORRECTIONS, section 003, with b = d (d + 1) / 2
    "EII": lambda K, d, b: 1,
    "VII": lambda K, d, b: K,
    "EEI": lambda K, d, b: d,
    "VEI": lambda K, d, b: K + d - 1,
    "EVI": lambda K, d, b: 1 + K * (d - 1),
    "VVI": lambda K, d, b: K * d,
    "EEE": lambda K, d, b: b,
    "VEE": lambda K, d, b: b + K - 1,
    "EVE": lambda K, d, b: b + (K - 1) * (d - 1),
    "VVE": lambda K, d, b: b + (K - 1) * d,
    "EEV": lambda K, d, b: K * b - (K - 1) * d,
    "VEV": lambda K, d, b: K * b - (K - 1) * (d - 1),
    "EVV": lambda K, d, b: K * b - (K - 1),
    "VVV": lambda K, d, b: K * b,
}


@pytest.mark.parametrize("name", NAMES)
def test_criteria_are_their_formulas(draw, name):
    X, _ = draw(n=120, d=4, missing=0.1)
    mixture = GaussianMixture(3, name, random_state=0).fit(X)
    free = 2 + 3 * 4 + COVARIANCE_PARAMETERS[name](3, 4, 10)
    log_lik, resp = mixture.score_samples(X).sum(), mixture.predict_proba(X)
    entropy = -np.sum(resp[resp > 0] * np.log(resp[resp > 0]))
    assert mixture.n_parameters_ == free
    assert mixture.bic(X) == pytest.approx(-2 * log_lik + free * np.log(120), rel=1e-12)
    assert mixture.aic(X) == pytest.approx(-2 * log_lik + 2 * free, rel=1e-12)
    assert mixture.icl(X) == pytest.approx(-2 * log_lik + free * np.log(120) + 2 * entropy, rel=1e-12)


@pytest.mark.parametrize("method", ["score", "bic", "aic", "icl"])
def test_in_criteria_too_a_weight_is_the_row_that_often(draw, method):
    X, _ = draw(n=120, d=4, missing=0.1)
    measure = getattr(GaussianMixture(3, random_state=0).fit(X), method)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    assert measure(X, sample_weight=weight) == pytest.approx(measure(np.repeat(X, weight, axis=0)), rel=1e-12)
    assert measure(X, sample_weight=np.ones(len(X))) == pytest.approx(measure(X), rel=1e-12)
    if method == "score":
        assert measure(X, sample_weight=0.3 * weight) == pytest.approx(measure(X, sample_weight=weight), rel=1e-12)


@pytest.mark.parametrize(("word", "name"), [("spherical", "VII"), ("diag", "VVI"), ("tied", "EEE"), ("full", "VVV")])
def test_criteria_have_the_sign_of_scikit_learn_and_the_same_optimum(draw, word, name):
    X, _ = draw(n=300, gap=4.0)
    peer = Peer(3, covariance_type=word, reg_covar=0, tol=1e-9, max_iter=2000, random_state=0).fit(X)
    start = peer.predict_proba(X)
    ours = GaussianMixture(3, name, prior=None, init=start, tol=1e-12).fit(X)
    assert ours.score(X) == pytest.approx(peer.score(X), abs=1e-6)
    assert ours.bic(X) == pytest.approx(peer.bic(X), rel=1e-6)
    assert ours.aic(X) == pytest.approx(peer.aic(X), rel=1e-6)
    order = np.argsort(-peer.weights_)
    np.testing.assert_allclose(ours.means_, peer.means_[order], atol=1e-3)


# --- starts ----------------------------------------------------------------------------------------------------------


def test_every_start_is_kept_and_the_best_runs_on(draw):
    X, _ = draw(n=300, K=5)
    mixture = GaussianMixture(5, "VVI", init="random", n_init=6, random_state=0).fit(X)
    short = [run.objective for run in mixture.starts_.short]
    assert len(short) == 6
    assert mixture.starts_.best == int(np.argmax(short))
    assert mixture.run_.objective >= max(short)
    one = GaussianMixture(5, "VVI", init="random", random_state=0).fit(X)
    assert len(one.starts_.short) == 0
    assert mixture.run_.objective >= one.run_.objective - 1e-6 * abs(one.run_.objective)


@pytest.mark.parametrize("init", ["kmeans++", "random"])
def test_starts_work_with_gaps_and_are_reproduced(draw, same, init):
    X, _ = draw(n=200, missing=0.3)
    one, other = (GaussianMixture(3, init=init, n_init=2, random_state=4).fit(X) for _ in range(2))
    same(one, other, 0)
    other = GaussianMixture(3, init=init, n_init=2, random_state=np.random.RandomState(4)).fit(X)
    same(one, other, 0)


def test_a_start_of_unnormalized_responsibilities_is_normalized(draw, soft_start, same):
    X, _ = draw(n=100)
    start = soft_start(100, 2)
    scale = np.random.default_rng(0).random((100, 1)) + 0.5
    same(GaussianMixture(2, init=start).fit(X), GaussianMixture(2, init=start * scale).fit(X), 1e-9)


def test_components_come_by_falling_weight(draw):
    for seed in range(5):
        X, _ = draw(seed=seed, n=300)
        assert (np.diff(GaussianMixture(4, "VVI", random_state=seed).fit(X).weights_) <= 0).all()


def test_a_sample_of_a_long_table_starts_it():
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=12000)
    X = rng.normal(size=(12000, 2)) + 12.0 * np.array([[0, 0], [1, 0], [0, 1]])[label]
    mixture = GaussianMixture(3, random_state=0).fit(X)
    assert len(set(zip(mixture.predict(X).tolist(), label.tolist()))) == 3


# --- search ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def clear():
    """Three well separated groups with common axes, equal volumes and shapes (EEE)."""
    rng = np.random.default_rng(0)
    root = np.array([[1.0, 0.0], [0.9, 0.5]])
    label = np.repeat([0, 1, 2], 120)
    return np.array([[0.0, 0.0], [9.0, -6.0], [-9.0, -6.0]])[label] + rng.normal(size=(360, 2)) @ root.T, label


@pytest.mark.parametrize("prior", ["auto", None])
@pytest.mark.parametrize("selection", ["bic", "icl"])
def test_auto_finds_components_and_structure(clear, selection, prior):
    X, label = clear
    mixture = GaussianMixture("auto", "auto", prior=prior, search=Search(selection, 4), random_state=0).fit(X)
    assert (mixture.n_components_, mixture.covariance_) == (3, "EEE")
    assert len({*zip(mixture.predict(X).tolist(), label.tolist())}) == 3
    table = mixture.search_
    assert {(r["n_components"], r["covariance"]) for r in table} == {(k, n) for k in range(1, 5) for n in NAMES}
    assert len(table) == 4 * 14
    best = min(table, key=lambda r: r[selection])
    assert (best["n_components"], best["covariance"]) == (3, "EEE")
    assert mixture.bic(X) == pytest.approx(best["bic"], rel=1e-9)
    assert mixture.icl(X) == pytest.approx(best["icl"], rel=1e-9)
    assert mixture.aic(X) == pytest.approx(best["aic"], rel=1e-9)
    assert mixture.score_samples(X).sum() == pytest.approx(best["log_likelihood"], rel=1e-9)
    assert mixture.n_parameters_ == best["n_free"]
    assert all(isinstance(r["converged"], bool) for r in table)


def test_the_default_prior_does_not_swell_groups_far_apart():
    """Its target is the covariance within groups, not the far larger one of the whole table."""
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1, 2], 100)
    X = rng.normal(size=(300, 2)) + 20.0 * np.array([[0, 0], [1, 0], [0, 1]])[label]
    covs = GaussianMixture(3, random_state=0).fit(X).covariances_
    plain = GaussianMixture(3, prior=None, random_state=0).fit(X).covariances_
    np.testing.assert_allclose(covs, plain, atol=0.05)


def test_icl_prefers_separated_components():
    """Two concentric clouds: BIC takes two components for the density, ICL one cluster."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)) * np.where(rng.random(600) < 0.5, 1.0, 2.5)[:, None]
    options = {"covariance": "VII", "search__max_components": 3, "random_state": 0}
    assert GaussianMixture("auto", search="bic").set_params(**options).fit(X).n_components_ == 2
    assert GaussianMixture("auto", search="icl").set_params(**options).fit(X).n_components_ == 1
    two = GaussianMixture(2, ["VII", "EII"], random_state=0).fit(X)
    record = two.search_[0]
    assert two.covariance_ == record["covariance"] == "VII"
    assert two.icl(X) == pytest.approx(record["icl"], rel=1e-9)
    assert record["icl"] > record["bic"] + 100


def test_a_list_of_structures_is_searched(clear):
    X, _ = clear
    mixture = GaussianMixture(3, ["EII", "EEE"], random_state=0).fit(X)
    assert mixture.covariance_ == "EEE" and [r["covariance"] for r in mixture.search_] == ["EII", "EEE"]
    assert GaussianMixture(3, "EII", random_state=0).fit(X).search_ == []


def test_the_search_counts_weights_as_rows(clear):
    X, _ = clear
    options = {"covariance": ["EII", "EEE"], "search__max_components": 3, "random_state": 0}
    weighted = GaussianMixture("auto").set_params(**options).fit(X, sample_weight=np.full(len(X), 2.0))
    record = weighted.search_[0]  # one component: nothing depends on the start
    twice = GaussianMixture("auto").set_params(**options).fit(np.repeat(X, 2, axis=0)).search_[0]
    assert record["bic"] == pytest.approx(twice["bic"], rel=1e-9)


def test_auto_tries_no_more_components_than_rows():
    X = np.arange(8.0).reshape(4, 2)
    mixture = GaussianMixture("auto", "EII", random_state=0).fit(X)
    assert max(r["n_components"] for r in mixture.search_) == 4


def test_progress_is_told_and_changes_nothing(clear, same):
    X, _ = clear
    told = []
    options = {"covariance": "EEE", "search__max_components": 2, "random_state": 0}
    mixture = GaussianMixture("auto", progress=lambda *what: told.append(what)).set_params(**options).fit(X)
    assert [t[:2] for t in told] == [(1, 2), (2, 2)] and "EEE with 1: bic" in told[0][2]
    same(mixture, GaussianMixture("auto").set_params(**options).fit(X), 0)
    told.clear()
    GaussianMixture(2, progress=lambda *what: told.append(what), random_state=0).fit(X)
    assert told and all(done <= total for done, total, _ in told)


def test_a_dropped_component_leaves_no_trace():
    """Neither its prior nor its pseudo-rows count any longer: the search tells the numbers of the model it returns."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=60), "b": np.round(rng.normal(size=60)), "c": rng.choice(list("xy"), 60)}
    )
    dropped = 0
    for prior in ("auto", None):
        model = GaussianMixture("auto", ["EEE", "VVV"], search="icl", prior=prior, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(frame)
            for record in model.search_:
                alone = GaussianMixture(record["n_components"], record["covariance"], prior=prior, random_state=0)
                alone.fit(frame)
                dropped += alone.n_components_ < record["n_components"]
                assert alone.bic(frame) == pytest.approx(record["bic"], rel=1e-9)
                stats = alone.run_.objective - alone.problem_.family.log_prior(alone.params_.components)
                assert stats == pytest.approx(alone.score_samples(frame).sum(), rel=1e-9)
    assert dropped


# --- warm start ------------------------------------------------------------------------------------------------------


def test_warm_start_goes_on_from_the_last_fit(draw):
    X, _ = draw(n=400, missing=0.1)
    mixture = GaussianMixture(3, tol=1e-9, warm_start=True, random_state=0).fit(X)
    objective, n_iter = mixture.run_.objective, mixture.n_iter_
    mixture.fit(X)
    assert mixture.n_iter_ <= 3 < n_iter
    assert mixture.run_.objective >= objective - 1e-9 * abs(objective)


def test_warm_start_with_another_size_starts_afresh(draw):
    X, _ = draw(n=200)
    mixture = GaussianMixture(3, "VVI", warm_start=True, random_state=0).fit(X)
    assert mixture.set_params(n_components=2).fit(X).means_.shape == (2, 3)
    assert mixture.set_params(covariance="VVV").fit(X).covariances_.shape == (2, 3, 3)
    assert mixture.set_params(covariance="EII").fit(X[:, :2]).means_.shape == (2, 2)


def test_warm_start_on_new_rows_begins_at_the_last_parameters(draw):
    """The first pass measures exactly the model as it was, wherever the new rows lie."""
    X, _ = draw(n=300, missing=0.1)
    mixture = GaussianMixture(3, prior=None, warm_start=True, random_state=0).fit(X[:200])
    new = np.concatenate([X[200:], X[200:] + 5.0])
    expected = mixture.score_samples(new).sum()
    mixture.fit(new)
    assert mixture.run_.trace[0].objective == pytest.approx(expected, rel=1e-9)


def test_warm_start_with_other_categories_starts_afresh():
    import pandas as pd

    frame = pd.DataFrame({"a": list("xyxyxyxy"), "b": np.arange(8.0)})
    mixture = GaussianMixture(2, "EII", warm_start=True, random_state=0).fit(frame)
    other = pd.DataFrame({"a": list("xyzxyzxy"), "b": np.arange(8.0)})
    assert mixture.fit(other).category_probabilities_["a"].shape == (2, 3)


def test_without_warm_start_a_second_fit_forgets_the_first(draw, same):
    X, _ = draw(n=200)
    mixture = GaussianMixture(3, random_state=0).fit(X[:100]).fit(X)
    same(mixture, GaussianMixture(3, random_state=0).fit(X), 0)


# --- answers ---------------------------------------------------------------------------------------------------------


def test_a_fit_on_samples_recovers_the_mixture(draw):
    X, _ = draw(n=400, gap=4.0)
    mixture = GaussianMixture(3, random_state=0).fit(X)
    sample, component = mixture.sample(20000, random_state=0)
    np.testing.assert_allclose(np.bincount(component) / 20000, mixture.weights_, atol=0.02)
    assert (mixture.predict(sample) == component).mean() > 0.9
    again = GaussianMixture(3, prior=None, random_state=0).fit(sample)
    np.testing.assert_allclose(again.means_, mixture.means_, atol=0.15)
    np.testing.assert_allclose(again.covariances_, mixture.covariances_, atol=0.3)


def test_predict_is_the_largest_responsibility(draw):
    X, _ = draw(missing=0.1)
    mixture = GaussianMixture(3, random_state=0)
    np.testing.assert_array_equal(mixture.fit_predict(X), mixture.predict_proba(X).argmax(axis=1))
    np.testing.assert_allclose(mixture.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)


def test_one_component_is_the_mean_and_covariance(draw):
    X, _ = draw()
    mixture = GaussianMixture(prior=None).fit(X)
    np.testing.assert_allclose(mixture.means_[0], X.mean(axis=0), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(mixture.covariances_[0], np.cov(X.T, bias=True), rtol=1e-10)


def test_the_prior_is_that_many_rows(draw):
    """One component: (n S + rows T) / (n + rows), T the shrunk covariance of the data, its variances those of S."""
    X, _ = draw()
    n, d, rows = len(X), 3, 40.0
    mixture = GaussianMixture(prior=rows, tol=1e-12).fit(X)
    S = np.cov(X.T, bias=True)
    w = d / (n + d)
    T = (1 - w) * S + w * np.diag(np.diag(S))
    T *= common_variances(rows, np.full((1, d), n - 1.0), X.var(axis=0, ddof=1)[None], X.var(axis=0))[0] / S[0, 0]
    np.testing.assert_allclose(mixture.covariances_[0], (n * S + rows * T) / (n + rows), rtol=1e-6, atol=1e-8)


def test_a_heavier_prior_pulls_harder(draw):
    X, _ = draw(n=60)
    spread = []
    for prior in (None, 1.0, 10.0, 1e6):
        covs = GaussianMixture(3, prior=prior, random_state=0, tol=1e-9).fit(X).covariances_
        spread.append(np.ptp(np.linalg.slogdet(covs)[1]))
    assert spread[-1] < 1e-3 < spread[0]


def test_float32_integers_and_lists_are_taken(draw, same):
    X, _ = draw()
    whole = np.rint(4 * X)
    mixture = GaussianMixture(3, random_state=0).fit(whole)
    for other in (
        whole.astype(int),
        whole.astype(np.int16),
        whole.astype(np.float32),
        whole.tolist(),
        np.asfortranarray(whole),
    ):
        same(mixture, GaussianMixture(3, random_state=0).fit(other), 1e-9)
    assert GaussianMixture(3, random_state=0).fit(X.astype(np.float32)).score(X) == pytest.approx(
        GaussianMixture(3, random_state=0).fit(X).score(X), abs=1e-4
    )


def test_the_input_is_left_alone(draw):
    X, _ = draw(missing=0.1)
    before = X.copy()
    X.setflags(write=False)
    GaussianMixture(3, random_state=0).fit(X).predict(X)
    np.testing.assert_array_equal(X, before)


def test_a_fit_that_broke_off_does_not_win_the_search():
    rng = np.random.default_rng(0)
    a = rng.normal(size=(100, 2))
    collinear = np.column_stack([a, a.sum(axis=1)])
    with pytest.warns(ConvergenceWarning):
        alone = GaussianMixture(2, "VVV", prior=None, random_state=0).fit(collinear)
    assert alone.run_.status.failed
    model = GaussianMixture(2, ["VVV", "VVI"], prior=None, random_state=0).fit(collinear)
    assert model.covariance_ == "VVI" and model.converged_


# --- scikit-learn's habits -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plain_em")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_one_iteration_at_a_time_is_one_long_run(draw, same):
    """`warm_start=True, max_iter=1` makes one update per call, as scikit-learn's loops expect."""
    X, _ = draw(n=200, gap=3.0)
    options = {"prior": None, "tol": 1e-4, "random_state": 0}
    steps = GaussianMixture(3, warm_start=True, max_iter=1, **options)
    bounds = []
    while not (bounds and steps.converged_):
        steps.fit(X)
        assert steps.n_iter_ == 1
        bounds.append(steps.lower_bound_)
    whole = GaussianMixture(3, **options).fit(X)
    assert whole.n_iter_ == len(bounds) > 5 and (np.diff(bounds) > 0).all()
    np.testing.assert_allclose(whole.lower_bounds_, bounds, rtol=1e-9)
    same(whole, steps, 1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("max_iter", [1, 7])
def test_a_few_iterations_at_a_time_end_at_the_same_prior(max_iter):
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(m, s, (n, 3)) for m, s, n in ((0, 1, 200), (1.5, 0.1, 200), (0, 5, 100))])
    whole = GaussianMixture(3, random_state=0).fit(X)
    steps = GaussianMixture(3, max_iter=max_iter, warm_start=True, random_state=0)
    for _ in range(300):
        if steps.fit(X).converged_ and steps.n_iter_ == 1:
            break
    np.testing.assert_allclose(steps.score(X), whole.score(X), rtol=1e-4)
    np.testing.assert_allclose(steps.covariances_, whole.covariances_, rtol=0.05, atol=0.02)


def test_lower_bounds_never_fall_and_end_at_the_lower_bound(draw):
    X, _ = draw(n=200, gap=1.0, missing=0.1)
    for prior in (None, "auto"):
        mixture = GaussianMixture(3, "EEE", prior=prior, n_init=2, random_state=0)
        mixture.fit(X, sample_weight=np.full(200, 0.5))
        assert len(mixture.lower_bounds_) == mixture.n_iter_ <= mixture.max_iter
        assert mixture.lower_bounds_[-1] == mixture.lower_bound_
        assert prior is not None or (np.diff(mixture.lower_bounds_) >= -1e-10).all()


@pytest.mark.filterwarnings("ignore::mixent.DataWarning")
@pytest.mark.parametrize("name", ["VII", "EEE", "VVV"])
def test_precisions_are_the_inverses_of_the_covariances(draw, name):
    X, _ = draw(n=100)
    constant = np.insert(X, 1, 5.0, axis=1)
    mixture = GaussianMixture(2, name, random_state=0).fit(X)
    product = mixture.precisions_ @ mixture.covariances_
    np.testing.assert_allclose(product, np.tile(np.eye(X.shape[1]), (2, 1, 1)), atol=1e-10)
    wider = GaussianMixture(2, name, random_state=0).fit(constant)
    assert np.isinf(wider.precisions_[:, 1, 1]).all()
    np.testing.assert_allclose(np.delete(np.delete(wider.precisions_, 1, 1), 1, 2), mixture.precisions_, rtol=1e-6)
