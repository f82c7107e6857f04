"""Pages in a headless Chromium: nothing is too wide, nothing is asked of the network, every figure is there."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.naive_bayes import GaussianNB

import mixent as mx
from mixent.report import Code, Figure, Paragraph, Section, Table, model_report, write_report

_spec = importlib.util.spec_from_file_location("browser", Path(__file__).with_name("browser.py"))
browser = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(browser)

pytestmark = browser.needs_chromium

WINE = load_wine(as_frame=True)
X, Y = WINE.data, np.array(["barolo", "grignolino", "barbera"])[WINE.target]
LONG = "a_name_without_any_place_to_break_it_" * 3


def mixed(n=150, seed=0):
    """Numbers, categories, gaps, and a name that no phone has room for."""
    rng = np.random.default_rng(seed)
    y = np.array(["no", "yes", LONG])[rng.integers(3, size=n)]
    frame = pd.DataFrame({f"x{j}": rng.normal(size=n) + (y == "yes") * (j < 2) for j in range(4)})
    frame[LONG] = rng.choice(["red", "green", f"{LONG} blue"], n)
    frame["x0"] = frame["x0"].where(rng.random(n) > 0.2)
    return frame, y


@pytest.fixture(scope="module")
def comparison():
    methods = {"naive Bayes": GaussianNB(), "forest": RandomForestClassifier(20, random_state=0)}
    return mx.compare(X, Y, methods=methods, baselines=False, folds=3, n_jobs=1)


def test_the_page_of_a_comparison(tmp_path, comparison):
    path = comparison.report(tmp_path / "page.html", title="Wine", commands="mixent compare wine.csv -t class")
    phone, desk = browser.check(path, tmp_path)
    assert {"Recommendation", "Scores", "Calibration", "Map of the rows", "The model"} <= set(desk.headings)
    assert len(desk.pictures) == len(phone.pictures) == path.read_text().count("<figure>") >= 6
    assert phone.height > desk.height  # the same, in a narrower column
    pdf = browser.printed(path, tmp_path)
    assert pdf.startswith(b"%PDF") and 4 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 30


def test_a_model_of_a_mixed_table_with_gaps(tmp_path):
    frame, y = mixed()
    model = mx.MixtureClassifier(1, random_state=0).fit(frame[:100], y[:100])
    path = model_report(tmp_path / "page.html", model, frame[100:], y[100:], title=LONG, commands=f"mixent {LONG}")
    _, desk = browser.check(path, tmp_path)
    assert "Explained rows" in desk.headings and len(desk.marks) > 10


def test_what_is_too_wide_is_seen(tmp_path):
    """The checks can fail: a page as wide as its longest word, a dead link, a broken picture, a request, an error."""
    bad = '<p style="width:900px">wide</p><a href="#nowhere">x</a><img src="data:image/png;base64,AAAA" alt="broken">'
    bad += '<img src="http://example.invalid/x.png" alt="far"><script>console.error("told")</script>'
    path = write_report(tmp_path / "page.html", "t", [Section("s", [Paragraph("p")])])
    path.write_text(path.read_text().replace("</main>", f"{bad}</main>"))
    phone, desk = browser.look(path, tmp_path)
    assert phone.width > 360 >= desk.width - 840 and phone.outside and not desk.outside
    assert phone.broken == ["#nowhere"] and not any(p["loaded"] for p in phone.pictures)
    assert phone.requests == ["http://example.invalid/x.png"] and phone.scripts == 1
    assert any("told" in line for line in phone.console)


def test_captions_of_wide_tables_stay_when_these_are_scrolled(tmp_path):
    wide = Table("A caption of many words, " * 8, [f"column {j}" for j in range(12)], [["a name", *range(11)]] * 3)
    path = write_report(tmp_path / "page.html", "t", [Section("s", [wide]), Section("r", [wide])])
    phone, desk = browser.check(path, tmp_path)
    assert phone.scrolled == 2 and desk.scrolled == 0
    path.write_text(path.read_text().replace("<caption>", '<caption style="position:static">'))
    phone, desk = browser.look(path, tmp_path)
    assert len(phone.lost) == 2 and desk.lost == []  # seen where it is so


def test_paper_is_white_and_tables_break_between_rows(tmp_path):
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(9, 12))
    canvas.subplots().plot([0, 1])
    rows = [[f"row {i}", i, "words " * 8] for i in range(120)]
    parts = [
        Paragraph("lead", lead=True),
        Table("long", ["a", "b", "c"], rows),
        Code("x" * 300),
        Figure(canvas, "tall"),
    ]
    path = write_report(tmp_path / "page.html", "t", [Section("one", parts), Section("two", [Paragraph("p")])])
    assert len(re.findall(rb"/Type\s*/Page\b", browser.printed(path, tmp_path))) >= 4
    dark = browser.photographed(
        path, tmp_path, 400, 300, "--force-dark-mode", "--blink-settings=preferredColorScheme=0"
    )
    from matplotlib.image import imread

    assert imread(dark).shape[:2] == (300, 400) and np.median(imread(dark)[..., :3]) < 0.3  # by night: light on dark
    light = browser.photographed(path, tmp_path, 400, 300)
    assert np.median(imread(light)[..., :3]) == 1.0


def fuser():
    rng = np.random.default_rng(0)
    y = rng.choice(["ill", "well"], size=200, p=[0.3, 0.7])
    said = {name: np.where(rng.random(200) < p, y, np.where(y == "ill", "well", "ill")) for name, p in VOTERS.items()}
    return mx.Fuser().fit(pd.DataFrame(said)), pd.DataFrame(said), y


VOTERS = {"lab A": 0.9, "lab B": 0.8, LONG: 0.75}
CODED = ("tree", "net")
FAMILIES = {
    "shared": lambda: mx.SharedMixtureClassifier(4, training="conditional", random_state=0),
    "maxent": lambda: mx.MaxEntClassifier(),
    "med": lambda: mx.MEDClassifier(kernel="rbf"),
    "gaussian": lambda: mx.MEDGaussianClassifier(),
    "tree": lambda: mx.MEDTreeClassifier(),
    "net": lambda: mx.MEDBayesNetClassifier(),
    "hmm": lambda: mx.HMMClassifier(2, random_state=0),
    "boost": lambda: mx.AdaBoostM1Classifier(n_estimators=4),
    "stack": lambda: mx.MaxEntStackingClassifier([("a", mx.MixtureClassifier(1)), ("b", GaussianNB())]),
    "forest": lambda: RandomForestClassifier(20, random_state=0),
}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_the_page_of_each_family(tmp_path, family):
    rows = X.iloc[:, :5] if family == "gaussian" else X
    rows = (X.iloc[:, :4] > X.iloc[:, :4].median()).replace({True: "high", False: "low"}) if family in CODED else rows
    model = FAMILIES[family]().fit(rows, Y)
    for y in (Y, None):
        path = model_report(tmp_path / "page.html", model, rows, y, title=family, commands=f"mixent report {family}")
        pages = browser.check(path, tmp_path)
        assert all(len(page.pictures) == path.read_text().count("<figure>") > 0 for page in pages)


@pytest.mark.slow
def test_the_pages_of_models_without_classes(tmp_path):
    frame, _ = mixed()
    browser.check(model_report(tmp_path / "1.html", mx.GaussianMixture(2, random_state=0).fit(X), X), tmp_path)
    browser.check(model_report(tmp_path / "2.html", mx.MaxEntJoint().fit(frame), frame), tmp_path)
    detector = mx.MEDNoveltyDetector().fit(X[:120])
    browser.check(model_report(tmp_path / "3.html", detector, X[:120]), tmp_path)
    browser.check(model_report(tmp_path / "4.html", detector, X[100:]), tmp_path)


@pytest.mark.slow
def test_the_pages_of_a_fusion(tmp_path):
    fitted, answers, y = fuser()
    browser.check(model_report(tmp_path / "1.html", fitted, title="Labs"), tmp_path)
    browser.check(model_report(tmp_path / "2.html", fitted, answers, y), tmp_path)
