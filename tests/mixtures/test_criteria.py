"""Criteria of class densities: each is its formula, written out with scipy and loops."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm
from sklearn.mixture import GaussianMixture as SklearnMixture

from mixent import GaussianMixture, MixtureClassifier, SharedMixtureClassifier
from mixent.mixtures.criteria import FLOOR, class_criteria, conditional_bic
from mixent.options import Search

NAMES = ("bic", "icl", "dic", "dic_robust")
ROWS = (70, 50, 90)


@pytest.fixture(scope="module")
def table(draw):
    """Three classes of unequal size that overlap."""
    X, _ = draw(seed=3, n=sum(ROWS), d=2, K=4, gap=1.0)
    y = np.repeat(np.array(["a", "b", "c"]), ROWS)
    return X + 1.5 * (y == "b")[:, None], y


def grown(selection="dic", **options):
    options = {
        "search__growth": "incremental",
        "search__per_class": True,
        "search__max_components": 3,
        "random_state": 0,
        **options,
    }
    return MixtureClassifier("auto", ["VVV"], search=selection).set_params(**options)


def parts(stage):
    """Weights, means and covariances of a stage of growth."""
    family, params = stage.fitted.problem.family.gaussian, stage.fitted.params
    gaussian = params.components.gaussian
    weights = params.weights.sum(axis=0) / params.weights.sum()
    return weights, gaussian.means + family.center, gaussian.full_covs()


def log_joint(stage, X):
    """log p(x, component), (n, K), by scipy."""
    pairs = zip(*parts(stage))
    return np.stack([np.log(w) + multivariate_normal.logpdf(X, m, C) for w, m, C in pairs], axis=1)


def naive(stage, i, X, y, beta):
    """All criteria of class i: sums over classes and rows, in the letters of document 002."""
    classes = np.unique(y)
    M, K = len(classes), stage.n_free
    N = {j: np.sum(y == j) for j in classes}
    joint = log_joint(stage, X)
    log_p = logsumexp(joint, axis=1)
    L = {j: sum(log_p[n] for n in range(len(y)) if y[n] == j) for j in classes}
    others = [j for j in classes if j != i]
    bic = L[i] - K / 2 * np.log(N[i])
    resp = np.exp(joint - log_p[:, None])[y == i]
    entropy = -sum(r * np.log(r) for r in resp.ravel() if r > 0)
    evidence = {j: L[j] - K / 2 * np.log(N[j]) for j in classes}
    dic = evidence[i] - beta / (M - 1) * sum(evidence[j] for j in others)
    own = np.sort(log_p[y == i])
    floor = own[int(np.ceil(FLOOR * len(own))) - 1]
    robust = L[i] - beta / (M - 1) * np.sum(np.maximum(log_p[y != i], floor)) - K / 2 * np.log(N[i])
    printed = L[i] - sum(L[j] for j in others) / (M - 1) + K / (2 * (M - 1)) * sum(np.log(N[j] / N[i]) for j in others)
    return {
        "bic": -2 * bic,
        "icl": -2 * (bic - entropy),
        "dic": -2 * dic,
        "dic_robust": -2 * robust,
        "printed": -2 * printed,
    }


def stage_of(model, record):
    """The stage a line of the search is about."""
    c = model.classes_.tolist().index(record["class"])
    return next(s for s in model.path_[c] if s.n_components == record["n_components"])


@pytest.mark.parametrize("beta", [1.0, 0.4, 2.5])
def test_every_criterion_of_every_stage_is_its_formula(table, beta):
    X, y = table
    model = grown(search__dic_weight=beta).fit(X, y)
    assert len(model.search_) >= 7  # two poor stages end the growth of a class
    for record in model.search_:
        expected = naive(stage_of(model, record), record["class"], X, y, beta)
        for name in NAMES:
            assert record[name] == pytest.approx(expected[name], rel=1e-9), (name, record)
        same = record["dic"] == pytest.approx(expected["printed"], rel=1e-9)
        assert same == (beta == 1.0)  # equation (4) is the evidence at beta = 1 alone


def test_bic_is_that_of_scikit_learn_on_the_rows_of_the_class(table):
    X, y = table
    model = grown("bic", prior=None).fit(X, y)
    for record in model.search_:
        weights, means, covs = parts(stage_of(model, record))
        other = SklearnMixture(len(weights))
        other.weights_, other.means_, other.covariances_ = weights, means, covs
        other.precisions_cholesky_ = np.linalg.inv(np.linalg.cholesky(covs)).transpose(0, 2, 1)
        rows = X[y == record["class"]]
        assert record["bic"] == pytest.approx(other.bic(rows), rel=1e-9)
        assert record["log_likelihood"] == pytest.approx(other.score_samples(rows).sum(), rel=1e-9)
        if record["n_components"] == 1:
            ours = GaussianMixture(1, prior=None).fit(rows)
            assert record["bic"] == pytest.approx(ours.bic(rows), rel=1e-9)
            assert record["icl"] == pytest.approx(ours.icl(rows), rel=1e-9) == pytest.approx(record["bic"])


def test_plain_mixtures_have_the_criteria_their_methods_compute(table):
    X, _ = table
    model = GaussianMixture("auto", ["VVI", "EEE"], search=Search(max_components=3), random_state=0).fit(X)
    (chosen,) = (r for r in model.search_ if r["chosen"])
    for name in ("bic", "icl", "aic"):
        assert chosen[name] == pytest.approx(getattr(model, name)(X), rel=1e-9)


def densities(n=300, seed=0, sizes=(0.5, 0.3, 0.2)):
    """log p(x | class) (n, C), classes, and whole weights."""
    rng = np.random.default_rng(seed)
    return rng.normal(-5, 4, (n, 3)), rng.choice(3, n, p=sizes), rng.integers(1, 4, n).astype(float)


def criteria(density, c, codes, weight, n_free=7, entropy=0.0, beta=1.0):
    return class_criteria(density[:, [c]], (c,), codes, weight, n_free, entropy, beta, 3)


def test_dic_has_no_penalty_for_classes_of_equal_size():
    density, _, _ = densities()
    codes, weight = np.arange(300) % 3, np.ones(300)
    for c in range(3):
        few, many = (criteria(density, c, codes, weight, n_free) for n_free in (1, 10_000))
        assert few["dic"] == pytest.approx(many["dic"], rel=1e-9)
        assert many["dic_robust"] - few["dic_robust"] == pytest.approx(9999 * np.log(100), rel=1e-9)
        half = [criteria(density, c, codes, weight, n_free, beta=0.5)["dic"] for n_free in (1, 10_000)]
        assert half[1] - half[0] == pytest.approx(0.5 * 9999 * np.log(100), rel=1e-9)  # not at another beta
    codes[:30] = 0
    few, many = (criteria(density, 0, codes, weight, n_free)["dic"] for n_free in (1, 10_000))
    assert many > few + 1000  # and the largest class pays


def test_a_row_to_which_a_class_gives_no_density_moves_dic_without_bound_and_not_the_robust_one():
    rng = np.random.default_rng(0)
    x, codes = rng.normal(size=300), np.arange(300) % 3
    found = {}
    for far in (1e1, 1e3, 1e5):
        x[1] = far  # of class 1, seen from the density of class 0
        found[far] = criteria(np.tile(norm.logpdf(x)[:, None], 3), 0, codes, np.ones(300))
    # -2 x -1/2 x -(far^2)/2: the sum over rows of class 1, of M - 1 = 2
    assert found[1e5]["dic"] - found[1e1]["dic"] == pytest.approx(-0.5 * 1e10, rel=1e-3)
    assert found[1e1]["dic_robust"] == found[1e3]["dic_robust"] == found[1e5]["dic_robust"]
    assert found[1e1]["bic"] == found[1e5]["bic"]  # which knows of its own rows alone
    x[1] = 0.0
    near, far = (
        criteria(np.tile(norm.logpdf(x + gap * (codes != 0))[:, None], 3), 0, codes, np.ones(300)) for gap in (1e2, 1e4)
    )
    assert far["dic"] < 1000 * near["dic"] < 0  # nor do all the others' rows together
    assert far["dic_robust"] == near["dic_robust"]


def test_weight_two_is_the_row_twice():
    density, codes, weight = densities()
    again = [np.repeat(a, weight.astype(int), axis=0) for a in (density, codes)]
    ones = np.ones(int(weight.sum()))
    for c in range(3):
        once = criteria(density, c, codes, weight, beta=0.7)
        twice = criteria(again[0], c, again[1], ones, beta=0.7)
        assert once == pytest.approx(twice, rel=1e-12)
    assert conditional_bic(density, codes, weight, 9) == pytest.approx(conditional_bic(*again, ones, 9), rel=1e-12)


@pytest.mark.parametrize("selection", [*NAMES, "cbic"])
@pytest.mark.parametrize("estimator", [MixtureClassifier, SharedMixtureClassifier])
def test_fitted_to_a_weight_of_two_or_the_row_twice_all_criteria_are_the_same(table, selection, estimator):
    X, y = table
    weight = 1 + np.arange(len(y)) % 3
    options = {"search__criterion": selection, "search__max_components": 1, "covariance": ["VVV"], "random_state": 0}
    once = estimator().set_params(**options).fit(X, y, sample_weight=weight).search_
    twice = estimator().set_params(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).search_
    assert len(once) == len(twice) == 1 and selection in once[0]
    for name in {*NAMES, selection}:
        assert once[0][name] == pytest.approx(twice[0][name], rel=1e-8, abs=1e-6), name


def test_permuted_classes_have_permuted_criteria(table):
    density, codes, weight = densities()
    order = np.array([2, 0, 1])  # class c is called order[c]
    renamed = np.empty_like(density)
    renamed[:, order] = density
    for c in range(3):
        assert criteria(density, c, codes, weight) == pytest.approx(
            criteria(renamed, order[c], order[codes], weight), rel=1e-12
        )
    X, y = table
    names = dict(zip("abc", "cab"))
    one, other = grown().fit(X, y), grown().fit(X, np.array([names[label] for label in y]))
    theirs = {(r["class"], r["n_components"]): r for r in other.search_}
    assert len(theirs) == len(one.search_)
    for record in one.search_:
        match = theirs[names[record["class"]], record["n_components"]]
        assert record["chosen"] == match["chosen"]
        for name in NAMES:
            assert record[name] == pytest.approx(match[name], rel=1e-6)


def test_shared_components_sum_the_criteria_of_the_classes_they_serve():
    density, codes, weight = densities()
    together = class_criteria(density, (0, 1, 2), codes, weight, 12, 3.0, 0.7, 3)
    each = [criteria(density, c, codes, weight, 4, beta=0.7) for c in range(3)]  # a third of the parameters
    for name in ("dic", "dic_robust"):
        assert together[name] == pytest.approx(sum(e[name] for e in each), rel=1e-12)
    rows = np.bincount(codes, weight)
    own = sum(density[codes == c, c] @ weight[codes == c] for c in range(3)) + rows @ np.log(rows / rows.sum())
    assert together["bic"] == pytest.approx(-2 * own + 12 * np.log(weight.sum()), rel=1e-12)
    assert together["icl"] == pytest.approx(together["bic"] + 6.0, rel=1e-12)


def test_icl_of_shared_components_counts_the_doubt_that_is_left_when_the_class_is_known(table):
    X, y = table
    model = SharedMixtureClassifier("auto", ["VVI"], search=Search("icl", 4, growth="incremental"))
    model.fit(X, y)
    for record, stage in zip(model.search_, model.path_, strict=True):
        _, means, covs = parts(stage)
        log_f = np.stack([multivariate_normal.logpdf(X, m, C) for m, C in zip(means, covs)], axis=1)
        doubt = 0.0
        for f, label in zip(log_f, np.searchsorted(model.classes_, y)):
            weights = stage.fitted.params.weights[label]
            joint = f[weights > 0] + np.log(weights[weights > 0])
            share = np.exp(joint - logsumexp(joint))
            doubt -= np.sum(share[share > 0] * np.log(share[share > 0]))
        assert record["icl"] - record["bic"] == pytest.approx(2 * doubt, rel=1e-7, abs=1e-7)


def test_cbic_is_that_of_the_probabilities_the_model_gives(table):
    X, y = table
    models = [
        MixtureClassifier("auto", ["VVV"], search=Search("cbic", 1)),
        SharedMixtureClassifier("auto", ["VVI"], search=Search("cbic", 4), random_state=0),
        SharedMixtureClassifier("auto", ["EEE"], search=Search("cbic", 4, growth="incremental")),
    ]
    for model in models:
        model.fit(X, y)
        (chosen,) = (r for r in model.search_ if r["chosen"])
        log_p = model.predict_log_proba(X)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
        expected = -2 * log_p.sum() + chosen["n_free"] * np.log(len(y))
        assert chosen["cbic"] == pytest.approx(expected, rel=1e-6)


def test_conditional_bic_by_hand():
    density = np.log([[0.2, 0.4], [0.5, 0.5], [0.1, 0.3]])
    post = np.array([2 * 0.2 / (2 * 0.2 + 0.4), 2 / 3, 0.3 / (2 * 0.1 + 0.3)])  # shares 2 : 1
    expected = -2 * np.log(post).sum() + 5 * np.log(3)
    assert conditional_bic(density, np.array([0, 0, 1]), np.ones(3), 5) == pytest.approx(expected, rel=1e-12)


def test_a_class_without_weight_has_no_say():
    density, codes, weight = densities()
    lost = np.where(codes == 2, 0.0, weight)
    together = class_criteria(density, (0, 1, 2), codes, lost, 12, 3.0, 1.0, 3)
    seen = codes < 2
    two = class_criteria(density[seen], (0, 1), codes[seen], lost[seen], 8, 3.0, 1.0, 3)
    for name in ("dic", "dic_robust"):
        assert together[name] == pytest.approx(two[name], rel=1e-12)
    alone = class_criteria(density, (0,), codes, np.where(codes == 0, weight, 0.0), 4, 0.0, 1.0, 3)
    assert alone["dic"] == alone["dic_robust"] == pytest.approx(alone["bic"], rel=1e-12)
