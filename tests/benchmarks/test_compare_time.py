"""The script that times comparisons, on a small table."""

from benchmarks import compare_time


def test_a_line_has_the_seconds_and_what_was_stopped(monkeypatch):
    monkeypatch.setattr(compare_time, "names_without", lambda X, y, left_out: ["naive Bayes", "logistic regression"])
    line = compare_time.time_line("60x6", *compare_time.simulated("60x6"), n_jobs=1, folds=2)
    assert 0 < line["seconds"] < 60 and line["late"] == []
    assert set(line["fit_seconds"]) == {"naive Bayes", "logistic regression"} and line["goal"] is None


def test_goals_with_and_without_slow_methods(monkeypatch):
    monkeypatch.setattr(compare_time, "names_without", lambda X, y, left_out: ["naive Bayes"])
    table = "1000x12", *compare_time.simulated("60x6")
    goals = [compare_time.time_line(*table, left_out=names, n_jobs=1)["goal"] for names in (compare_time.SLOW, ())]
    assert goals == [45, 90]


def test_slow_methods_are_left_out():
    X, y = compare_time.simulated("60x6")
    names = compare_time.names_without(X, y, compare_time.SLOW)
    assert "random forest" in names and not set(names) & set(compare_time.SLOW)


def test_measured_methods_have_samples_and_two_folds(monkeypatch):
    chosen = compare_time.candidates
    monkeypatch.setattr(compare_time, "candidates", lambda shape: chosen(shape, names=["naive Bayes"], baselines=False))
    methods = compare_time.measured("60x6", *compare_time.simulated("60x6"), jobs=1)["methods"]
    assert [line[:3] for line in methods["naive Bayes"]] == [[48, None, 0], [48, None, 1]]
    assert all(line[3] > 0 and 0 < line[4] < 5 for line in methods["naive Bayes"])
