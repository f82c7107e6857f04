"""Does the speed benchmark run? What it measures is not judged here."""

import json

import pytest
from benchmarks.speed.__main__ import main
from benchmarks.speed.discriminative import RATIO
from benchmarks.speed.fusion import MILLISECONDS, SAME, SECONDS
from benchmarks.speed.fusion import RATIO as FUSION_RATIO
from benchmarks.speed.fusion import REACHED as REACHED_R
from benchmarks.speed.growth import COST, COST_ALL, GROWN, LOG_LIK, ONCE
from benchmarks.speed.maxent import GAP, REACHED
from benchmarks.speed.records import FASTER, Record

KEYS = {"set", "method", "metric", "mean", "sd", "folds", "printed", "source"}


def test_quick_run_prints_every_row_and_writes_records(tmp_path, capsys):
    main(["--quick", "--json", str(tmp_path / "speed.json")])
    printed = capsys.readouterr().out
    for row in (
        "2000x3 K=3",
        "5000x10 K=4",
        "seconds per pass",
        FASTER,
        "30 % missing",
        "peak memory",
        "offset 1e8",
        "separation 1e4 sigma",
        "import mixent",
    ):
        assert row in printed
    records = json.loads((tmp_path / "speed.json").read_text())
    assert all(set(record) == KEYS for record in records)
    by_metric = {(r["set"], r["method"], r["metric"]): r["mean"] for r in records}
    for size in ("2000x3 K=3", "5000x10 K=4"):  # the same mathematics, or speeds mean nothing
        assert by_metric[size, "scikit-learn", "log-likelihood, relative difference"] < 1e-10
    for hard in ("offset 1e8", "separation 1e4 sigma"):
        assert by_metric[hard, "mixent", "covariances, relative error"] < 1e-8


def test_training_is_measured_beside_em():
    records = main(["--case", "discriminative", "--quick"])
    ratios = {(r.set, r.method): r.mean for r in records if r.metric == RATIO}
    assert len(ratios) == 4 and all(ratio > 0 for ratio in ratios.values())
    assert {method for _, method in ratios} == {"shared, conditional", "per class, conditional"}


def test_maximum_entropy_is_measured_beside_logistic_regression_at_the_same_gap():
    records = main(["--case", "maxent", "--quick"])
    gaps = {(r.set, r.method): r.mean for r in records if r.metric == REACHED}
    methods = {"mixent, auto", "mixent, bohning", "scikit-learn"}
    assert {method for _, method in gaps} == methods and len(gaps) == 9
    assert all(-1e-9 <= gap <= GAP for gap in gaps.values())
    assert sum(r.metric == FASTER and r.mean > 0 for r in records) == 6


def test_fusion_is_measured_beside_numpy_with_the_same_posteriors():
    records = main(["--case", "fusion", "--quick"])
    results = {(r.metric, r.method): r.mean for r in records}
    assert results[SAME, "dawid-skene"] < 1e-9  # the same mathematics, or speeds mean nothing
    assert all(results[SECONDS, method] > 0 for method in ("auto", "ml-product", "min-divergence"))
    assert results[FUSION_RATIO, "min-divergence"] > 0 and results[MILLISECONDS, "fuse_one"] > 0
    assert 0 <= results[REACHED_R, "min-divergence"] < 0.01 and results[REACHED_R, "numpy"] < 0.1
    assert all(r.printed is None for r in records)  # a smoke test judges nothing


def test_growth_is_laid_out_beside_restarts(capsys):
    records = main(["--case", "growth", "--quick"])
    results = {(r.set, r.method, r.metric): r.mean for r in records}
    name = "generated 300x5, VVV, K="
    item = [results[name + "1", method, LOG_LIK] for method in (GROWN, ONCE)]
    assert item[0] == pytest.approx(item[1], rel=1e-6)  # one component: nothing to choose
    for k in "23":
        assert results[name + k, GROWN, LOG_LIK] > results[name + str(int(k) - 1), GROWN, LOG_LIK]
        assert results[name + k, GROWN, COST] == results[name + k, GROWN, COST_ALL]
        assert results[name + k, ONCE, COST] < results[name + k, ONCE, COST_ALL]
    printed = capsys.readouterr().out
    assert "generated 300x5, VVI" in printed and f"{item[0]:.4f}" in printed


@pytest.mark.parametrize(
    ("mean", "at_least", "verdict"),
    [(13.0, True, "ok"), (11.0, True, "missed"), (11.0, False, "ok"), (13.0, False, "missed")],
)
def test_a_target_is_a_floor_or_a_ceiling(mean, at_least, verdict):
    record = Record("a", "b", "c", mean, printed=12.0, at_least=at_least)
    assert record.verdict == verdict and verdict in record.line()


def test_a_size_that_is_none_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--sizes", "10000"])
    assert "'10000' is not rows x columns x components" in capsys.readouterr().err
