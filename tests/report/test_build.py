import importlib.util
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from mixent import Search
from mixent.evaluate import cross_validate
from mixent.report import classification, common, comparison_report, html, maps, mixture, scores, search

_spec = importlib.util.spec_from_file_location("html_checks", Path(__file__).with_name("test_html.py"))
_checks = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_checks)
read = _checks.read

X, CODES = load_iris(return_X_y=True)
Y = np.array(["setosa", "versicolor", "virginica"])[CODES]
NASTY = np.array(["<script>a</script>", "$b & c", "_d"])
METHODS = {
    "LDA": LinearDiscriminantAnalysis(),
    "naive <b>Bayes": GaussianNB(),
    "blind": DummyClassifier(strategy="prior"),
}


class Mixture(QuadraticDiscriminantAnalysis):
    """One Gaussian per class, with what a mixture classifier has."""

    def fit(self, X, y):
        super().fit(X, y)
        self.data_ = X, y
        self.covariances_ = np.array([np.cov(np.asarray(X)[y == c].T) for c in self.classes_])
        self.component_class_ = np.arange(len(self.classes_))
        self.weights_ = np.eye(len(self.classes_))
        steps = [(1, -9.0, "start"), (2, -5.0, "plain"), (3, -4.0, "proposal"), (4, -3.9, "plain")]
        trace = [SimpleNamespace(n_pass=n, objective=o, kind=k, accepted=True, segment=0) for n, o, k in steps]
        self.run_ = SimpleNamespace(trace=tuple(trace), message="the gain per row fell below tol")
        self.search_ = [{"n_components": k, "covariance": "<i>", "bic": 5.0 - k} for k in (1, 2)]
        return self

    def _group(self, name):
        return Search("bic")

    def marginal(self, columns):
        X, y = self.data_
        return Mixture().fit(X.iloc[:, list(columns)] if hasattr(X, "iloc") else X[:, list(columns)], y)


def headings(page):
    return [text for text in page.text if text in TITLES]


TITLES = [
    "What was done",
    "The columns",
    "Comparison of methods",
    "Which methods are told apart",
    "Errors, made and expected",
    "Calibration",
    "Classes found",
    "Errors of the leading method",
    "Map of two columns",
    "Map of the rows",
    "The mixture model",
    "How to reproduce",
]


@pytest.fixture(scope="module")
def cv():
    return cross_validate(METHODS, X, Y)


def test_the_whole_report(tmp_path):
    frame = pd.DataFrame(X, columns=["<script>x</script>", "$w", "_l", "p & q"])
    y = NASTY[CODES]
    methods = {"mix": Mixture(), **METHODS, "svc": LinearSVC()}
    cv = cross_validate(methods, frame, y)
    given = {"cv": cv, "models": {"mix": Mixture().fit(frame, y)}, "X": frame, "y": y, "commands": "mixent <demo>"}
    path = comparison_report(tmp_path / "r.html", title="<script>t</script>", data_notes=["<b>note"], **given)
    page = read(path)
    for title in TITLES:
        assert page.text.count(title) == 2  # in the contents and as a heading
    all_text = " ".join(page.text)
    for piece in (
        "<b>note",
        "svc failed: TypeError",
        "150 rows and 4 columns",
        "mixent <demo>",
        "seed of the folds: 0",
    ):
        assert piece in all_text
    for label in NASTY:
        assert label in all_text
    assert page.tags.count("img") == 10 and page.tags.count("table") == 6
    again = comparison_report(tmp_path / "2.html", title="<script>t</script>", data_notes=["<b>note"], **given)
    assert again.read_bytes() == path.read_bytes()


def test_missing_pieces_are_left_out(tmp_path, cv, monkeypatch):
    page = read(comparison_report(tmp_path / "r.html", title="t", cv=cv))
    of_rows = {"The columns", "Map of two columns", "Map of the rows", "The mixture model"}
    assert set(headings(page)) == set(TITLES) - of_rows
    models = {"LDA": LinearDiscriminantAnalysis().fit(X, Y)}
    page = read(comparison_report(tmp_path / "r.html", title="t", cv=cv, models=models, X=X, y=Y))
    assert "Map of two columns" not in page.text  # no marginal, four columns
    words = pd.DataFrame({"a": ["u"] * 150, "b": ["v"] * 150})
    page = read(comparison_report(tmp_path / "r.html", title="t", cv=cv, models=models, X=words, y=Y))
    assert "Map of two columns" not in page.text
    monkeypatch.setattr(common, "find_spec", lambda name: None)
    page = read(comparison_report(tmp_path / "r.html", title="t", cv=cv, models={"m": Mixture().fit(X, Y)}, X=X, y=Y))
    assert "img" not in page.tags
    without = {*TITLES[:3], "Errors, made and expected", "The mixture model", "How to reproduce"}
    assert set(headings(page)) == without


def test_leader_in_words(cv):
    told = scores.leader_in_words(cv)
    assert told.startswith("LDA has the lowest log-loss") and "naive <b>Bayes follows" in told
    two = cross_validate({"LDA": METHODS["LDA"], "blind": METHODS["blind"]}, X, Y)
    assert "exceeds the noise" in scores.leader_in_words(two)
    same = cross_validate({"one": GaussianNB(), "two": GaussianNB(var_smoothing=1e-10)}, X, Y)
    assert "within the noise" in scores.leader_in_words(same)
    one = cross_validate({"LDA": METHODS["LDA"], "svc": LinearSVC()}, X, Y)
    assert "only method that worked in every fold" in scores.leader_in_words(one)


def test_best_of_each_column_is_marked(tmp_path, cv):
    text = comparison_report(tmp_path / "r.html", title="t", cv=cv).read_text()
    for metric, (_, factor, digits) in scores.SHOWN.items():
        best = min(cv.values(m, metric).mean() for m in cv.methods)
        spread = "" if metric in scores.SECONDS else " ±"
        assert f"<strong>{factor * best:.{digits}f}{spread}" in text


def test_best_pair_makes_the_fewest_errors():
    from itertools import combinations

    model = Mixture().fit(X, Y)
    errors = {pair: np.sum(model.marginal(pair).predict(X[:, pair]) != Y) for pair in combinations(range(4), 2)}
    assert errors[maps.best_pair(model, X, Y)] == min(errors.values())
    with pytest.raises(ValueError, match="two columns of numbers"):
        maps.best_pair(model, np.zeros((150, 4)), Y)


def test_a_search_by_other_criteria_is_a_table(tmp_path, cv):
    model = Mixture().fit(X, Y)
    model.search_ = [
        {
            "log_loss": np.float64(0.25),
            "n_components": {"<a>": 2, "b": np.int64(1)},
            "covariance": ("VVV", "EEE"),
            "tied": True,
        }
    ] * 9
    page = read(comparison_report(tmp_path / "r.html", title="t", cv=cv, models={"m": model}, X=X, y=Y))
    for text in ("0.250", "<a>: 2, b: 1", "VVV, EEE", "yes"):
        assert page.text.count(text) == 1  # the nine predict the same
    assert any("(1 of 1, the chosen one first, then by held-out log-loss). Left out: 8" in text for text in page.text)


def test_the_chosen_model_heads_the_search_and_duplicates_are_left_out():
    losses = [0.1, 0.1 + 1e-15, 0.2, 0.3, 0.3]
    tried = [
        {"covariance": f"S{i}", "log_loss": loss, "error": 0.5, "temperature": 1.0, "across_classes": False}
        | {"chosen": i == 4}
        for i, loss in enumerate(losses)
    ]
    table = search.search_table(tried)
    assert list(table.header)[:3] == ["", "covariance", "log loss"]
    assert [row[:2] for row in table.rows] == [["chosen", "S4"], ["", "S0"], ["", "S2"]]
    assert "3 of 3, the chosen one first, then by held-out log-loss" in table.caption
    assert "across classes" not in table.header  # none of them: nothing to tell
    assert table.caption.endswith("The same in all: temperature 1")
    tried[0]["across_classes"] = True
    table = search.search_table(tried)
    assert "across classes" in table.header and "all classes share what the structure calls equal" in table.caption


def test_the_search_table_has_few_digits():
    one = {"n_components": [3, 3], "covariance": "VVV", "prior_rows": 0.8, "log_loss": 0.39642012, "log_loss_raw": 0.4}
    other = {"n_components": [3, 1], "covariance": ["VVV", "VVI"], "prior_rows": 12.3456, "log_loss": 0.5}
    table = search.search_table([one | {"chosen": True}, other])
    assert list(table.header) == ["", "n components", "covariance", "prior rows", "log loss"]
    cells = [[getattr(cell, "text", cell) for cell in row] for row in table.rows]
    assert cells == [["chosen", "3 each", "VVV", "0.8", "0.396"], ["", "3, 1", "VVV, VVI", "12.3", "0.500"]]


def test_a_mean_of_rounding_errors_is_zero():
    model = Mixture().fit(X, Y)
    model.means_ = np.array(model.means_, dtype=float)
    model.means_[0, 0] = 2.638e-13
    cell = next(c for c in mixture.components_table(model, X).rows[0] if "±" in getattr(c, "text", ""))
    assert cell.text.startswith("0 ± ")


def test_a_number_that_names_a_class_is_called_a_class():
    from mixent.displays import ConfusionDisplay

    told = classification.worst_pairs(ConfusionDisplay.from_predictions([1, 1, 2], [1, 2, 2])).text
    assert told == "Most frequent mistakes: class 1 taken for class 2 (1)."


def test_absent_labels_are_told(tmp_path):
    y = Y.astype(object)
    y[::10] = None
    cv = cross_validate({"LDA": METHODS["LDA"]}, X, y)
    text = " ".join(read(comparison_report(tmp_path / "r.html", title="t", cv=cv, X=X)).text)
    told = "15 rows without a label: always in training, never scored; left out by LDA, which cannot use them."
    assert told in text


def test_few_passes_are_told_and_not_drawn(tmp_path, cv):
    model = Mixture().fit(X, Y)
    model.run_.trace = model.run_.trace[:3]
    page = read(comparison_report(tmp_path / "r.html", title="t", cv=cv, models={"m": model}, X=X, y=Y))
    text = " ".join(page.text)
    assert "made 3 passes over the data; the gain per row fell below tol." in text
    assert not any("Objective of" in str(value) for _, name, value in page.attributes if name == "alt")
    model.run_.trace = model.run_.trace[:1]
    assert "made 1 pass over" in mixture.mixture_section("m", model, X)[0].text


def test_p_values_in_words():
    assert (scores.p_text(0.004), scores.p_text(0.25)) == ("< 0.01", "= 0.25")


def test_weights_are_told_and_errors_count_rows(tmp_path):
    weight = np.linspace(0.5, 1.5, 150)
    cv = cross_validate({"LDA": DummyClassifier(), "bayes": GaussianNB()}, X, Y, sample_weight=weight)
    text = " ".join(read(comparison_report(tmp_path / "r.html", title="t", cv=cv)).text)
    assert "Rows are weighted, in fitting and in every score." in text and "the weight of the rows" in text
    assert "Rows are counted here and below" in text
    counts = [int(n) for n in re.findall(r"taken for \w+ \(([^)]*)\)", text)]
    assert counts and sum(counts) <= int(np.sum(cv.classes[cv.proba["bayes"].argmax(axis=1)] != Y))


def test_components_are_readable_and_count_from_0():
    import mixent as mx

    rng, y = np.random.default_rng(0), np.arange(80) % 2
    frame = pd.DataFrame(20850 + 3000 * rng.normal(size=(80, 6)), columns=list("abcdef"))
    frame["colour"] = np.where(rng.random(80) < 0.9, np.where(y == 1, "red", "blue"), "green")
    table = mixture.components_table(mx.MixtureClassifier(1).fit(frame, y), frame)
    assert "first 5 of 6 numeric columns" in table.caption and "most probable value" in table.caption
    assert list(table.header) == ["component", "class", "weight", *"abcde", "colour"]
    assert [row[0] for row in table.rows] == ["0", "1"]
    assert table.rows[0][-1].startswith("blue (") and table.rows[1][-1].startswith("red (")
    assert "e+" not in table.html() and "± 3" in table.html()


@pytest.fixture(scope="module")
def orchestra():
    from mixent.datasets import make_orchestra

    return make_orchestra(200, random_state=0)


def test_shared_components_have_a_heat_map_and_their_whole_weight(tmp_path, orchestra):
    import mixent as mx

    X, y = orchestra.X, orchestra.y
    models = {
        "shared": mx.SharedMixtureClassifier(3, training="conditional", random_state=0),
        "own": mx.MixtureClassifier(2, random_state=0),
    }
    cv = cross_validate(models, X, y, folds=2)
    fitted = {name: model.fit(X, y) for name, model in models.items()}
    page = read(comparison_report(tmp_path / "r.html", title="t", cv=cv, models=fitted, X=X, y=y))
    assert page.text.count("The model: shared") == page.text.count("The model: own") == 2
    alts = [str(value) for tag, name, value in page.attributes if (tag, name) == ("img", "alt")]
    assert sum(alt.startswith("Which component mostly speaks for which class: 0 for ") for alt in alts) == 1
    text = " ".join(page.text)
    assert "trained to tell the classes apart (training conditional, blend 1)" in text
    table = mixture.components_table(fitted["shared"], X)
    assert table.header[1] == "mostly class"
    assert sum(float(row[2].text) for row in table.rows) == pytest.approx(1, abs=0.01)
    assert mixture.components_table(fitted["own"], X).header[1] == "class"
    assert not mixture.is_shared(fitted["own"]) and not mixture.is_shared(Mixture().fit(X, y))


def test_errors_made_and_expected_are_those_of_the_library(cv, tmp_path):
    from mixent.evaluate import error_bounds

    table, said, meanings = scores.bounds(cv)
    assert [row[0] for row in table.rows] == cv.ranking()
    for method, *cells in table.rows:
        q = error_bounds(cv.y, cv.proba[method], cv.classes).quantities
        expected = [f"{factor * q[name].value:.{digits}f}" for name, (_, factor, digits) in scores.BOUNDS.items()]
        assert [cell.text.split(" ± ")[0] for cell in cells] == expected
    assert "150 rows not used for fitting" in table.caption and "Labels cannot show the Bayes error" in said.text
    assert meanings.items[1].startswith("error it expects: mean of 1 - max q")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"search__criterion": "bic"}, "BIC against the number of components; chosen: VVI"),
        ({"search__criterion": "dic", "search__growth": "incremental"}, "DIC against the number of components"),
        ({"search__criterion": "cbic", "search__per_class": True}, "chosen: for metal VVI"),
        ({"search__criterion": "cv", "search__per_class": True}, "then by held-out log-loss"),
        ({"search__criterion": "cv", "training": "conditional"}, "by likelihood; the chosen one was then trained"),
        ({"search__criterion": "icl", "search__nested": 2}, "then by held-out error"),
    ],
)
def test_every_selection_is_shown(orchestra, options, told, monkeypatch):
    import mixent as mx

    model = mx.MixtureClassifier("auto", "VVI", search=mx.Search(max_components=2), random_state=0).set_params(
        **options
    )
    model.fit(orchestra.X, orchestra.y)
    content = mixture.mixture_section("m", model, orchestra.X)
    captions = [part.caption for part in content if isinstance(part, html.Table | html.Figure)]
    assert sum(told in caption for caption in captions) == 1
    assert any("added one at a time" in caption for caption in captions) == ("search__growth" in options)
    monkeypatch.setattr(common, "find_spec", lambda name: None)
    plain = [part for part in mixture.mixture_section("m", model, orchestra.X) if isinstance(part, html.Table)]
    assert any("What the search tried (" in part.caption for part in plain) and all(part.html() for part in plain)


def test_a_search_without_pictures_is_a_table(orchestra):
    import mixent as mx

    model = mx.GaussianMixture("auto", "VVI", search=mx.Search("cv", 2), random_state=0).fit(orchestra.X)
    assert (
        "2 of 2, the chosen one first, then by -2 x held-out log density"
        in search.search_table(model.search_, model._group("search").criterion).caption
    )
    model = mx.MixtureClassifier("auto", "VVI", search=mx.Search("bic", 2, per_class=True), random_state=0)
    table = search.search_table(model.fit(orchestra.X, orchestra.y).search_, "bic")
    assert "4 of 4, those chosen first, then by BIC, lower is better" in table.caption
    assert [row[0] for row in table.rows] == ["chosen", "chosen", "", ""]
