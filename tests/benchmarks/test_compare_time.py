"""The script that times comparisons, on a small table."""

from benchmarks import compare_time


def test_a_line_has_the_seconds_and_what_was_stopped(monkeypatch):
    monkeypatch.setattr(compare_time, "names_without", lambda X, y, left_out: ["naive Bayes", "logistic regression"])
    line = compare_time.time_line("60x6", *compare_time.simulated("60x6"), n_jobs=1, folds=2)
    assert 0 < line["seconds"] < 60 and line["late"] == []
    assert set(line["fit_seconds"]) == {"naive Bayes", "logistic regression"}


def test_slow_methods_are_left_out():
    X, y = compare_time.simulated("60x6")
    names = compare_time.names_without(X, y, compare_time.SLOW)
    assert "random forest" in names and not set(names) & set(compare_time.SLOW)
