"""Every error and warning of the estimators: what came, what was wanted, what to do."""

import re

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.base.params import check_calibration
from mixent.data import DataWarning
from mixent.options import Search

X = np.random.default_rng(0).normal(size=(40, 2))


Y = np.arange(40) % 2


STRUCTURE = "covariance must be one of EII, VII, "


BOTH = [
    ({"n_components": 0}, "n_components must be a whole number >= 1, or 'auto'; got 0"),
    ({"n_components": 2.0}, "n_components must be a whole number >= 1, or 'auto'; got 2.0"),
    ({"n_components": True}, "n_components must be a whole number >= 1, or 'auto'; got True"),
    ({"n_components": None}, "n_components must be a whole number >= 1, or 'auto'; got None"),
    ({"covariance": "VVW"}, "got 'VVW'. Did you mean 'VVV'?"),
    ({"covariance": "Full"}, "got 'Full'. Did you mean 'VVV'?"),
    ({"covariance": None}, STRUCTURE),
    ({"covariance": 3}, STRUCTURE),
    ({"n_components": "auto", "covariance": []}, "covariance is an empty list; name at least one structure"),
    ({"n_components": "auto", "covariance": ["VVV", "XXX"]}, STRUCTURE),
    ({"n_components": "auto", "covariance": None}, STRUCTURE),
    (
        {"n_components": "auto", "search__max_components": 0},
        "max_components must be a whole number >= 1, or None; got 0",
    ),
    ({"prior": 0}, "prior must be 'auto', None (maximum likelihood) or a positive number of pseudo-rows; got 0"),
    ({"prior": -1.0}, "prior must be 'auto', None"),
    ({"prior": np.inf}, "prior must be 'auto', None"),
    (
        {"prior": "none"},
        "prior must be 'auto', None (maximum likelihood) or a positive number of pseudo-rows; got 'none'",
    ),
    ({"prior": True}, "prior must be 'auto', None"),
    ({"prior": [1.0]}, "positive number of pseudo-rows, or a MixturePrior; got [1.0]"),
    ({"search": "aic"}, "search must be one of None, 'cv', 'bic', 'icl', 'dic', 'dic_robust', 'cbic', or a Search; "),
    ({"search": 5}, "search must be one of None, 'cv', 'bic'"),
    ({"search__per_class": "yes"}, "per_class"),
    (
        {"init": "k-means"},
        "init must be one of 'kmeans++', 'random', or ",
    ),
    ({"tol": -1e-3}, "tol must be a number >= 0; got -0.001"),
    ({"tol": np.nan}, "tol must be a number >= 0; got nan"),
    ({"tol": "small"}, "tol must be a number >= 0; got 'small'"),
    ({"max_iter": 0}, "max_iter must be a whole number >= 1; got 0"),
    ({"prior__smoothing": 0}, "smoothing must be a number > 0; got 0"),
    ({"prior__smoothing": np.inf}, "smoothing must be a number > 0; got inf"),
    ({"n_jobs": 0}, "n_jobs must be None, -1 or a positive number of threads; got 0"),
    ({"n_jobs": -2}, "n_jobs must be None, -1 or a positive number of threads; got -2"),
    ({"n_jobs": 1.5}, "n_jobs must be None, -1 or a positive number of threads; got 1.5"),
    ({"n_jobs": True}, "n_jobs must be None, -1 or a positive number of threads; got True"),
    ({"outliers": "yes"}, "outliers must be one of 'noise', 't', or None; got 'yes'"),
    ({"progress": "no"}, "progress must be True, False or a function of (done, total, text); got 'no'"),
    ({"progress": None}, "progress must be True, False or a function of (done, total, text); got None"),
]


MIXTURE = [
    ({"n_components": "many"}, "n_components must be a whole number >= 1, or 'auto'; got 'many'"),
    ({"covariance": []}, "covariance is an empty list; name at least one structure"),
    ({"search__criterion": "aic"}, "criterion must be one of 'bic', 'icl', 'cv', or None; got 'aic'"),
    ({"search": Search(nested=3)}, "nested=3 is not used by GaussianMixture; leave it at None"),
    ({"search": Search(dic_weight=2.0)}, "dic_weight=2.0 is not used by GaussianMixture; leave it at 1.0"),
    ({"n_init": 0}, "n_init must be a whole number >= 1; got 0"),
    ({"n_components": 41}, "n_components=41 needs at least as many rows; X has 40"),
    ({"init": np.ones((40, 3))}, "init must be 'kmeans++', 'random' or responsibilities of shape (40, 2); got (40, 3)"),
    ({"init": np.ones(40)}, "init must be 'kmeans++', 'random' or responsibilities of shape (40, 2); got (40,)"),
    ({"init": [["a", "b"]] * 40}, "init must be 'kmeans++', 'random' or a table of responsibilities; "),
    (
        {"init": np.ones((40, 2)), "n_components": "auto"},
        "init as responsibilities needs a fixed number of components; set n_components to their number",
    ),
    (
        {"init": {"mean": 0}},
        "init as a dict has one or more of the keys 'weights', 'means' and either 'covariances' or 'precisions'; "
        "got 'mean'",
    ),
    ({"init": {}}, "; got an empty dict"),
    ({"init": {"means": [[0.0]]}}, "init: means must be finite numbers of shape (2, 2); got shape (1, 1)"),
    ({"init": {"means": "x"}}, "init: means must be numbers of shape (2, 2); could not convert"),
    ({"init": {"weights": [1.0, 0.5]}}, "init: weights must be positive and sum to 1; got [1.0, 0.5]"),
    (
        {"init": {"covariances": np.zeros((2, 2, 2))}},
        "init: covariances must be positive definite; the smallest eigenvalue is 0",
    ),
    ({"init": {"precisions": np.full((2, 2), np.inf)}}, "init: precisions must be finite"),
    ({"init": {"precisions": [[[1, 5], [0, 1]]] * 2}}, "init: precisions must be symmetric matrices"),
    (
        {"init": {"means": np.zeros((2, 2))}, "n_init": 5},
        "n_init=5 is not used with initial means or responsibilities; leave it at 1",
    ),
    ({"init": [[1, 2], [1]]}, "init must be 'kmeans++', 'random' or a table of responsibilities; "),
    (
        {"init": {"means": np.zeros((2, 2))}, "n_components": "auto"},
        "init as initial parameters needs a fixed number of components",
    ),
    ({"init": np.zeros((40, 2))}, "init responsibilities must be finite, >= 0, with a positive sum in every row"),
    ({"init": -np.ones((40, 2))}, "init responsibilities must be finite, >= 0, with a positive sum in every row"),
    (
        {"init": np.full((40, 2), np.nan)},
        "init responsibilities must be finite, >= 0, with a positive sum in every row",
    ),
]


CLASSIFIER = [
    ({"n_components": "many"}, "n_components must be a whole number >= 1, or 'auto'; got 'many'"),
    ({"n_components": 41}, "n_components=41 needs at least as many rows; X has 40"),
    ({"n_components": {0: 1}}, "n_components: no entry for class 1; the classes are 0, 1"),
    ({"n_components": {0: 1, 1: 1, 2: 1}}, "n_components: unknown class 2; the classes are 0, 1"),
    ({"n_components": {0: 1, 1: 0}}, "n_components must be a whole number >= 1, or 'auto'; got 0"),
    ({"covariance": {0: "VVV", 5: "EII"}}, "covariance: unknown class 5; the classes are 0, 1"),
    ({"covariance": {0: "VVV", 1: "ABC"}}, STRUCTURE),
    (
        {"covariance": ["VVV", "EII"]},
        "a list of covariances needs n_components='auto'; set it, or pass one structure",
    ),
    (
        {"covariance": {0: "VVV", 1: "EII"}, "across_classes": True},
        "across_classes=True needs one covariance structure for all classes",
    ),
    (
        {"n_components": "auto", "covariance": {0: "VVV", 1: "EII"}},
        "covariance by class needs n_components by class or as a number, not 'auto'",
    ),
    ({"init": np.ones((40, 3))}, "init must be 'kmeans++', 'random' or responsibilities of shape (40, 2); got (40, 3)"),
    (
        {"init": np.repeat([[1.0, 0.0]], 40, axis=0)},
        ", but no responsibility for the components of this class, columns [1]",
    ),
    ({"init": {"means": 0}}, "init must be 'kmeans++', 'random' or responsibilities of shape (n, K); got a dict"),
    ({"search__cv": 1}, "cv must be a whole number >= 2, a splitter or a list of splits; got 1"),
    ({"search__cv": 2.5}, "cv must be a whole number >= 2, a splitter or a list of splits; got 2.5"),
    ({"class_prior": "flat"}, "class_prior must be 'empirical' or 2 positive numbers, one per class; got 'flat'"),
    ({"class_prior": [1.0]}, "class_prior must be 'empirical' or 2 positive numbers, one per class; got [1.0]"),
    (
        {"class_prior": [0.0, 1.0]},
        "class_prior must be 'empirical' or 2 positive numbers, one per class; got [0.0, 1.0]",
    ),
    ({"class_prior": {"a": 1.0}}, "class_prior has no probability for the class"),
    ({"class_prior": [np.nan, 1.0]}, "class_prior must be 'empirical' or 2 positive numbers, one per class"),
]


AUTO = {"n_components": "auto"}


FOLDS = "must be a whole number >= 2, a splitter or a list of splits; got"


SHARE = "forgetting must be a share, at least 0 and less than 1; got"


ALL_GROWN = [  # growth, selection, batches: the same for every estimator
    ({"search__growth": "slow"}, "growth must be one of 'restart', 'incremental'; got 'slow'"),
    ({"search__growth": None}, "growth must be one of 'restart', 'incremental'; got None"),
    ({"search__grow_by": "bic"}, "grow_by must be one of 'likelihood', 'criterion'; got 'bic'"),
    (
        {"search__grow_by": "criterion", "search__criterion": "bic"},
        "grow_by='criterion' is only used with growth='incremental'; got growth='restart'",
    ),
    (
        {"search__grow_by": "criterion", "search__growth": "incremental", "search__criterion": "cv"},
        "grow_by='criterion' needs criterion to be one of 'bic', 'icl'",
    ),
    ({"forgetting": 1}, f"{SHARE} 1"),
    ({"forgetting": "much"}, f"{SHARE} 'much'"),
    ({"search__cv": True}, f"cv {FOLDS} True"),
    ({"search__cv": "five"}, f"cv {FOLDS} 'five'"),
]


CLASSIFIERS_GROWN = [
    (
        {"search__criterion": "bic", "n_components": 2},
        "criterion='bic' is only used with n_components='auto'; got n_components=2",
    ),
    (
        {"search__nested": 3, "search__criterion": "bic", "n_components": 2},
        "nested=3 is only used with n_components='auto'; got n_components=2",
    ),
    (
        {"search__criterion": "aic"},
        "criterion must be one of 'cv', 'bic', 'icl', 'dic', 'dic_robust', 'cbic', or None; got 'aic'",
    ),
    ({"search__dic_weight": 0}, "dic_weight must be a number > 0; got 0"),
    ({"search__dic_weight": 2.0}, "dic_weight=2.0 is only used with criterion 'dic' or 'dic_robust'; got 'cv'"),
    (
        {"search__dic_weight": 2.0, "search__criterion": "bic"},
        "dic_weight=2.0 is only used with criterion 'dic' or 'dic_robust'; got 'bic'",
    ),
    (
        {"search__nested": 1, "search__criterion": "bic"},
        "nested must be a whole number >= 2, a splitter or a list of splits, or None; got 1",
    ),
    (
        {"search__nested": 3},
        "nested is only used with one of the criteria 'bic', 'icl', 'dic', 'dic_robust', 'cbic'; got 'cv'",
    ),
    ({"class_prior": "flat"}, "class_prior must be 'empirical' or 2 positive numbers, one per class; got 'flat'"),
    ({"class_prior": [1.0]}, "class_prior must be 'empirical' or 2 positive numbers, one per class; got [1.0]"),
]


MIXTURE_GROWN = [
    (
        {"search__growth": "incremental", "warm_start": True},
        "warm_start=True is only used with growth='restart'; got growth='incremental'",
    ),
    (
        {"search__growth": "incremental", "init": np.ones((40, 2))},
        "init as responsibilities is only used with growth='restart'; got growth='incremental'",
    ),
]


APART = (
    "across_classes=True needs a search that fits all classes together; set growth='restart', criterion='cv' and "
    "per_class=False"
)


CLASSIFIER_GROWN = [
    ({"across_classes": True, "search__growth": "incremental"}, APART),
    ({**AUTO, "across_classes": True, "search__criterion": "bic"}, APART),
    ({**AUTO, "across_classes": True, "search__per_class": True}, APART),
]


SHARED = [
    ({"n_components": "many"}, "n_components must be a whole number >= 1, or 'auto'; got 'many'"),
    ({"n_components": 41}, "n_components=41 needs at least as many rows; X has 40"),
    ({"n_components": {0: 1, 1: 1}}, "n_components must be a whole number >= 1, or 'auto'; got {0: 1, 1: 1}"),
    ({"n_init": 0}, "n_init must be a whole number >= 1; got 0"),
    (
        {"covariance": {0: "VVV", 1: "EII"}},
        "covariance must be one structure, since all classes share the components; got a dict",
    ),
    ({**AUTO, "covariance": {0: "VVV", 1: "EII"}}, "covariance by class needs n_components by class or as a number"),
    (
        {"covariance": ["VVV", "EII"]},
        "a list of covariances needs n_components='auto'; set it, or pass one structure",
    ),
    ({"init": np.ones((40, 3))}, "init must be 'kmeans++', 'random' or responsibilities of shape (40, 2); got (40, 3)"),
    ({"search": Search(per_class=True)}, "per_class=True is not used by SharedMixtureClassifier; leave it at False"),
]


@pytest.mark.parametrize(("options", "message"), [*BOTH, *SHARED, *ALL_GROWN, *CLASSIFIERS_GROWN])
def test_options_a_classifier_of_shared_components_refuses(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        SharedMixtureClassifier().set_params(**{"n_components": 2, **options}).fit(X, Y)


@pytest.mark.parametrize(("options", "message"), [*ALL_GROWN, *CLASSIFIERS_GROWN, *CLASSIFIER_GROWN])
def test_ways_of_growing_and_choosing_a_classifier_refuses(options, message):
    rows, labels = np.concatenate([X, X + 1, X - 1]), np.tile(Y, 3)  # enough for folds
    with pytest.raises(ValueError, match=re.escape(message)):
        MixtureClassifier().set_params(**{"n_components": 1, "search__max_components": 2, **options}).fit(rows, labels)


@pytest.mark.parametrize(("options", "message"), [*ALL_GROWN, *MIXTURE_GROWN])
def test_ways_of_growing_and_choosing_a_mixture_refuses(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        GaussianMixture().set_params(**{"n_components": 2, **options}).fit(X)


def test_a_subclass_without_its_part_says_so():
    from mixent.mixtures.bayes import BayesMixture

    with pytest.raises(AttributeError, match="BayesMixture must define _fit_plan"):
        BayesMixture()._fit_plan(None, None, None, None)


def test_coordinates_of_a_collapsed_component_are_refused():
    from dataclasses import replace

    from mixent.core.driver import OutsideDomainError
    from mixent.mixtures.chart import MixtureChart

    model = GaussianMixture(2, prior=None, random_state=0).fit(X)
    gaussian = replace(model.params_.components.gaussian, covs=1e-13 * model.params_.components.gaussian.covs)
    params = replace(model.params_, components=replace(model.params_.components, gaussian=gaussian))
    chart = MixtureChart(model.problem_, model.params_)
    with pytest.raises(OutsideDomainError, match="a component collapsed onto too few distinct rows"):
        chart.params(chart.vector(params))


@pytest.mark.parametrize("estimator", [MixtureClassifier(1), SharedMixtureClassifier(2)])
def test_labels_that_tell_no_class_from_another(estimator):
    message = "y has no row with a label that favors a class; label some rows of each class"
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, np.full((40, 2), 0.5))


@pytest.mark.parametrize(("options", "message"), [*BOTH, *MIXTURE])
def test_options_a_mixture_refuses(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        GaussianMixture().set_params(**{"n_components": 2, **options}).fit(X)


@pytest.mark.parametrize(("options", "message"), [*BOTH, *CLASSIFIER])
def test_options_a_classifier_refuses(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        MixtureClassifier().set_params(**{"n_components": 1, **options}).fit(X, Y)


@pytest.mark.parametrize(
    ("cv", "message"),
    [
        ([(np.arange(100), np.arange(200, 300))], "cv must give pairs (train, test) of the 120 labelled rows; "),
        ([1, 2], "cv must give pairs (train, test) of the 120 labelled rows; "),
        ([], "cv gives no split, or one that holds out no row; give at least one row to each test part"),
        ([(np.arange(120), np.arange(0))], "cv gives no split, or one that holds out no row"),
    ],
)
def test_folds_a_search_refuses(cv, message):
    rows = np.concatenate([X, X + 1, X - 1])
    with pytest.raises(ValueError, match=re.escape(message)):
        MixtureClassifier(search=Search(max_components=1, cv=cv)).fit(rows, np.tile(Y, 3))


@pytest.mark.parametrize("estimator", [GaussianMixture, MixtureClassifier, SharedMixtureClassifier])
def test_a_misspelt_option_is_an_error(estimator):
    with pytest.raises(TypeError, match="unexpected keyword argument 'tolerance'"):
        estimator(tolerance=1)


def test_a_class_too_small_for_maximum_likelihood_is_named():
    y = np.where(np.arange(40) == 0, "only", np.array(["a", "b"])[Y])
    message = (
        r"'only'.* has 1 row\(s\), too few to estimate a covariance by maximum likelihood; "
        "use prior='auto' or across_classes=True"
    )
    single = "^class 'only' has one row only; kept$"
    with pytest.warns(DataWarning, match=single), pytest.raises(ValueError, match=message):
        MixtureClassifier(1, "VVV", prior=None).fit(X, y)
    for model in (MixtureClassifier(1, "VVV"), MixtureClassifier(1, "EEE", prior=None, across_classes=True)):
        with pytest.warns(DataWarning, match=single):
            model.fit(X, y)
        assert model.predict_proba(X).shape == (40, 3)


@pytest.mark.parametrize("n_samples", [0, -1, 2.5, "3"])
def test_a_sample_has_a_whole_number_of_rows(n_samples):
    with pytest.raises(ValueError, match="n_samples must be a whole number >= 1; got"):
        GaussianMixture().fit(X).sample(n_samples)


@pytest.mark.parametrize("column", ["height", 2, -3, True, 0.0])
def test_a_marginal_over_columns_that_are_not_there(column):
    with pytest.raises(ValueError, match=f"unknown column {column!r}; the columns are x0, x1"):
        GaussianMixture().fit(X).marginal([column])


@pytest.mark.parametrize("columns", [[], [0, 0], ["x1", 1]])
def test_a_marginal_over_no_column_or_one_twice(columns):
    with pytest.raises(ValueError, match="columns must contain at least one column, and none twice; got"):
        GaussianMixture().fit(X).marginal(columns)


@pytest.mark.parametrize("columns", ["x0", 0, None])
def test_a_marginal_over_something_else(columns):
    with pytest.raises(ValueError, match="columns must be a list of column names or positions; got"):
        GaussianMixture().fit(X).marginal(columns)


def test_labelled_rows_must_weigh_something():
    y = np.where(np.arange(40) < 20, Y.astype(float), np.nan)
    message = "every labelled row has sample_weight 0; give some labelled rows of each class a weight"
    with pytest.raises(ValueError, match=message):
        MixtureClassifier(1).fit(X, y, sample_weight=np.isnan(y).astype(float))


def test_a_run_cut_short_says_so():
    with pytest.warns(
        ConvergenceWarning,
        match="GaussianMixture did not converge: max_iter was reached first; raise it, or loosen tol",
    ):
        mixture = GaussianMixture(2, max_iter=2, random_state=0).fit(X)
    assert not mixture.converged_ and mixture.n_iter_ == 2
    with pytest.warns(ConvergenceWarning, match="MixtureClassifier did not converge: max_iter was reached first"):
        MixtureClassifier(2, max_iter=2, random_state=0).fit(X, Y)


def test_a_starved_component_of_a_classifier_is_named():
    Z = np.concatenate([X, np.full((20, 2), 9.0)])
    y = np.r_[Y, np.zeros(20, dtype=int)]
    with pytest.warns(
        ConvergenceWarning, match="MixtureClassifier: component . (starved|collapsed onto too few distinct rows); "
    ):
        MixtureClassifier({0: 2, 1: 1}, "VVV", prior=None, random_state=0).fit(Z, y)


@pytest.mark.parametrize("estimator", [GaussianMixture(), MixtureClassifier(1), SharedMixtureClassifier(2)])
def test_bad_rows_are_refused_by_the_door(estimator):
    for bad, message in (
        (np.full((40, 2), np.inf), "no column of X can be used: 'x0', 'x1' have no values"),
        (np.ones(40), "Expected 2D array, got 1D array"),
        (np.empty((0, 2)), "0 sample"),
    ):
        with pytest.raises(ValueError, match=message):
            estimator.fit(bad, Y[: len(bad)])
    with pytest.raises(ValueError, match="sample_weight must be >= 0; row 3 has -1"):
        estimator.fit(X, Y, sample_weight=np.where(np.arange(40) == 3, -1.0, 1.0))


def test_a_calibration_is_one_of_its_words_or_none():
    for value in ("none", True, ("temperature",)):
        with pytest.raises(ValueError, match="calibration must be one of 'temperature', 'affine', or None; got"):
            check_calibration(value, ("temperature", "affine"))
    assert check_calibration(None, ()) is None and check_calibration("affine", ("affine",)) is None


def test_bad_labels_are_refused_by_the_door():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        MixtureClassifier().fit(X, None)
    with pytest.raises(ValueError, match="every label in y is absent"):
        MixtureClassifier().fit(X, [None] * 40)
    with pytest.raises(ValueError, match="a classifier needs at least 2 classes; y has 1 class: 'a'"):
        MixtureClassifier().fit(X, ["a"] * 40)
    with pytest.raises(ValueError, match="row 0 .* does not sum to 1; divide each row by its sum"):
        MixtureClassifier().fit(X, np.full((40, 2), 0.4))


def test_nothing_the_estimators_can_say_is_untested():
    """Every literal message under mixtures/ is quoted in a test, unless it is raised only to be caught."""
    import ast
    from pathlib import Path

    import mixent

    wording = Path(__file__).parents[1]
    quoted = "".join(
        p.read_text() for folder in ("mixtures", "base", "bad_inputs") for p in (wording / folder).glob("*.py")
    )
    quoted = quoted.replace("\\", "")
    said = []
    for path in (Path(mixent.__file__).parent / "mixtures").glob("*.py"):
        tree = ast.parse(path.read_text())
        caught = {n for t in ast.walk(tree) if isinstance(t, ast.Try) for line in t.body for n in ast.walk(line)}
        for node in set(ast.walk(tree)) - caught:
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                values = [n.value for n in ast.walk(node.exc.args[0]) if isinstance(n, ast.Constant)]
                said.append((path.name, node.lineno, max((v for v in values if isinstance(v, str)), key=len)))
    assert len(said) > 15
    clauses = [(*where, max(text.split(";"), key=len).strip(" :")) for *where, text in said]
    untested = [c for c in clauses if c[-1] not in quoted]
    assert untested == [], untested
