"""The scikit-learn face."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.fixes import parse_version

from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.options import MinimumError, Search

# Before, `cross_validate` refuses to pass weights on to the score of any pipeline, also of scikit-learn's classifiers.
PIPELINES_SCORE = parse_version(sklearn.__version__) >= parse_version("1.8")


@pytest.mark.parametrize(
    ("estimator", "at_least"),
    [
        (GaussianMixture(), 46),
        (GaussianMixture(1, "VEV", prior=1.0), 46),
        (GaussianMixture(outliers="noise"), 46),
        (GaussianMixture(outliers="t"), 46),
        (GaussianMixture("auto", ["EII", "VVV"], search=Search(max_components=1)), 46),
        (MixtureClassifier(1), 60),
        (MixtureClassifier(1, "EEE", across_classes=True), 60),
        (MixtureClassifier(search=Search(max_components=1)), 60),
        pytest.param(MixtureClassifier(), 60, marks=pytest.mark.slow),
        pytest.param(MixtureClassifier(1, outliers="noise"), 60, marks=pytest.mark.slow),
        pytest.param(MixtureClassifier(1, outliers="t"), 60, marks=pytest.mark.slow),
        (MixtureClassifier(1, training="conditional"), 60),
        (MixtureClassifier(1, training=MinimumError(solver="lbfgs")), 60),
        (SharedMixtureClassifier(3), 60),
        pytest.param(SharedMixtureClassifier(3, training="conditional"), 60, marks=pytest.mark.slow),
        pytest.param(SharedMixtureClassifier(3, training="error"), 60, marks=pytest.mark.slow),
        pytest.param(SharedMixtureClassifier(), 60, marks=pytest.mark.slow),
        pytest.param(SharedMixtureClassifier(training="conditional"), 60, marks=pytest.mark.slow),
        pytest.param(MixtureClassifier(training="conditional"), 60, marks=pytest.mark.slow),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore")  # the checks feed one row, one column, all zeros: they are about errors
def test_every_check_of_scikit_learn_passes(estimator, at_least):
    results = check_estimator(estimator, on_fail=None)
    assert len(results) >= at_least
    assert [(r["check_name"], r["exception"]) for r in results if r["status"] not in ("passed", "skipped")] == []
    skipped = {r["check_name"]: str(r["exception"]) for r in results if r["status"] == "skipped"}
    assert set(skipped) <= {"check_array_api_input"}, skipped  # needs SCIPY_ARRAY_API in the environment
    assert len(results) - len(skipped) >= at_least - 1


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianMixture(2, "VEV", n_init=2),
        GaussianMixture("auto", ["EII", "VVV"], search=Search(max_components=2)),
        MixtureClassifier(2, "VVI"),
        pytest.param(SharedMixtureClassifier(3, outliers="noise"), marks=pytest.mark.slow),
        pytest.param(SharedMixtureClassifier(3, outliers="t"), marks=pytest.mark.slow),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore")
def test_with_several_components_every_check_passes_but_the_one_a_random_start_breaks(estimator):
    """k-means draws its centers row by row: shuffled or repeated rows start EM elsewhere."""
    results = check_estimator(estimator, on_fail=None)
    failed = {r["check_name"] for r in results if r["status"] == "failed"}
    assert failed <= {"check_sample_weight_equivalence_on_dense_data"}


@pytest.mark.parametrize(
    "estimator",
    [
        SharedMixtureClassifier(2),
        pytest.param(SharedMixtureClassifier(2, training="conditional"), marks=pytest.mark.slow),
        pytest.param(SharedMixtureClassifier(2, training="error"), marks=pytest.mark.slow),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore")
def test_two_shared_components_fail_only_where_three_clouds_are_to_be_told_apart(estimator):
    results = check_estimator(estimator, on_fail=None)
    assert len(results) >= 60
    # two starts of k-means in 15 rows of 30 columns: repeated rows are drawn otherwise than weighted ones
    few = "check_sample_weight_equivalence_on_dense_data"
    assert {r["check_name"] for r in results if r["status"] == "failed"} <= {"check_classifiers_train", few}


@pytest.fixture(
    params=[
        GaussianMixture(2, random_state=0),
        MixtureClassifier(2, "VVI", random_state=0),
        SharedMixtureClassifier(4, "VVI", random_state=0),
        SharedMixtureClassifier(4, "VVI", training="conditional", random_state=0),
    ],
    ids=["mixture", "classifier", "shared", "trained"],
)
def estimator(request):
    return clone(request.param)


@pytest.fixture
def table(draw):
    X, label = draw(n=150, missing=0.1)
    return pd.DataFrame(X, columns=["a", "b", "c"]), np.array(["x", "y", "z"])[label]


def test_tags(estimator):
    tags = get_tags(estimator)
    assert tags.input_tags.allow_nan
    assert is_classifier(estimator) == (not isinstance(estimator, GaussianMixture))
    assert tags.target_tags.required == (not isinstance(estimator, GaussianMixture))


def test_the_constructor_only_stores_and_clone_copies(estimator):
    odd = object()
    made = type(estimator)(n_components=odd, tol=odd)
    assert made.get_params()["n_components"] is odd and made.get_params()["tol"] is odd
    again = clone(estimator)
    assert again is not estimator and again.get_params() == estimator.get_params()
    assert estimator.set_params(tol=0.5) is estimator and estimator.get_params()["tol"] == 0.5
    with pytest.raises(ValueError, match="Invalid parameter 'tolerance'"):
        estimator.set_params(tolerance=1)


def test_fit_changes_no_parameter_and_returns_self(estimator, table):
    before = estimator.get_params()
    assert estimator.fit(*table) is estimator
    assert estimator.get_params() == before


@pytest.mark.parametrize("copy", ["pickle", "joblib"])
def test_round_trip(estimator, table, tmp_path, copy):
    estimator.fit(*table)
    if copy == "pickle":
        again = pickle.loads(pickle.dumps(estimator))
    else:
        joblib.dump(estimator, tmp_path / "model")
        again = joblib.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(table[0]), estimator.predict_proba(table[0]))
    assert again.run_.status is estimator.run_.status


def test_feature_names(estimator, table):
    X, y = table
    estimator.fit(X, y)
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c"] and estimator.n_features_in_ == 3
    with pytest.raises(ValueError, match="feature names"):
        estimator.predict(X[["b", "a", "c"]])
    with pytest.warns(UserWarning, match="feature names"):
        estimator.predict(X.to_numpy())
    with pytest.raises(ValueError, match="2 features"):
        type(estimator)(2, random_state=0).fit(X.to_numpy(), y).predict(X.to_numpy()[:, :2])
    assert not hasattr(type(estimator)(1, random_state=0).fit(X.to_numpy(), y), "feature_names_in_")


def test_in_a_pipeline(estimator, table):
    X, y = table
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), estimator).fit(X, y)
    assert pipe.predict_proba(X).shape[0] == len(X)
    assert pipe[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert np.isfinite(pipe.score(X, y))


def test_grid_search_over_structures_and_components(table):
    X, y = table
    grid = {"n_components": [1, 2], "covariance": ["EII", "VVV"], "prior": ["auto", 1.0]}
    search = GridSearchCV(MixtureClassifier(random_state=0), grid, cv=3, scoring="neg_log_loss").fit(X, y)
    assert search.best_score_ > -1.0 and search.best_estimator_.classes_.tolist() == ["x", "y", "z"]
    density = GridSearchCV(GaussianMixture(random_state=0), {"n_components": [1, 3]}, cv=3).fit(X)
    assert density.best_params_["n_components"] in (1, 3)


@pytest.mark.parametrize("estimator", [MixtureClassifier(1), SharedMixtureClassifier(4, "VVI")], ids=["own", "shared"])
def test_grid_search_over_what_is_trained_for(table, estimator):
    """A grid of objectives with the options that serve each; the winner is the best of what was tried."""
    X, y = table
    grid = [
        {"training": ["likelihood"]},
        {"training": ["conditional"], "training__blend": [0.5, 1.0], "training__anchor": ["auto", 20.0]},
        {"training": ["error"], "training__sharpness": [1.0, 2.0]},
    ]
    estimator = clone(estimator).set_params(random_state=0, max_iter=50, tol=1e-3)
    search = GridSearchCV(estimator, grid, cv=2, scoring="neg_log_loss", error_score="raise").fit(X, y)
    tried = search.cv_results_["mean_test_score"]
    assert len(tried) == 7 and np.isfinite(tried).all() and search.best_score_ == tried.max()
    assert len(set(tried.round(9))) > 5  # the options do something


def test_partial_fit_is_there_where_statistics_are_kept(table):
    X, y = table
    for estimator in (MixtureClassifier(1), SharedMixtureClassifier(2, random_state=0)):
        assert hasattr(estimator, "partial_fit")
        assert estimator.partial_fit(X, y, classes=["x", "y", "z"]) is estimator
        assert not hasattr(clone(estimator).set_params(training="error"), "partial_fit")


def test_cross_validation_in_two_processes_is_that_in_one(table):
    X, y = table
    for model in (
        MixtureClassifier(2, "VVI", random_state=0),
        SharedMixtureClassifier(4, "VVI", training="conditional", random_state=0),
    ):
        one, two = (cross_val_score(model, X, y, cv=4, n_jobs=jobs) for jobs in (1, 2))
        np.testing.assert_array_equal(one, two)
        assert one.mean() > 0.8


def test_sample_weight_is_routed(table):
    X, y = table
    weight = np.random.default_rng(0).integers(0, 3, size=len(X)).astype(float)
    with sklearn.config_context(enable_metadata_routing=True):
        model = MixtureClassifier(1, "VVV").set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipe = make_pipeline(StandardScaler(), model)
        pipe[0].set_fit_request(sample_weight=False)
        routed = pipe.fit(X, y, sample_weight=weight)
        whole = pipe if PIPELINES_SCORE else model
        scores = cross_validate(whole, X, y, params={"sample_weight": weight}, cv=3, error_score="raise")["test_score"]
        mixture = GaussianMixture(2, random_state=0).set_fit_request(sample_weight=True)
        mixture.set_score_request(sample_weight=True)
        cross_validate(mixture, X, params={"sample_weight": weight}, cv=3, error_score="raise")
    assert np.isfinite(scores).all()
    Z = StandardScaler().fit_transform(X)
    direct = MixtureClassifier(1, "VVV").fit(Z, y, sample_weight=weight)
    np.testing.assert_allclose(routed.predict_proba(X), direct.predict_proba(Z), rtol=1e-9, atol=1e-12)


def test_score_is_accuracy_for_a_classifier_and_mean_log_density_for_a_mixture(table):
    X, y = table
    model = MixtureClassifier(1).fit(X, y)
    assert model.score(X, y) == (model.predict(X) == y).mean()
    mixture = GaussianMixture(2, random_state=0).fit(X)
    assert mixture.score(X) == mixture.score_samples(X).mean()


def test_set_output_does_not_apply(estimator):
    """They transform nothing; scikit-learn offers set_output to transformers only."""
    assert not hasattr(estimator, "transform") and not hasattr(estimator, "set_output")


@pytest.mark.parametrize("cv", [3, [(np.arange(0, 100), np.arange(100, 150)), (np.arange(50, 150), np.arange(50))]])
def test_the_folds_of_auto_are_those_of_scikit_learn(table, cv):
    from sklearn.model_selection import StratifiedKFold

    X, y = table
    for folds in (cv, StratifiedKFold(2)):
        model = MixtureClassifier(search=Search(max_components=1, cv=folds), random_state=0).fit(X, y)
        assert model.search_ and np.isfinite(model.search_[0]["log_loss"])
