"""Batches of stated priors have them exactly; M is zero only where priors agree; methods meet the same batches."""

import numpy as np
import pytest
from scipy.stats import chi2

from mixent.evaluate import log_loss
from mixent.studies import prior_mismatch, prior_shift_study, resample_priors, with_copies, without_class

RNG = np.random.default_rng(0)
Y = RNG.permutation(np.repeat(["a", "b", "c"], [50, 30, 20]))
ON_TRUTH = np.eye(3)[np.searchsorted(["a", "b", "c"], Y)]  # certain and right


class Even:
    """The same probability for all classes; notes every call."""

    calls = []

    def __call__(self, rows):
        Even.calls.append(len(rows))
        return np.full((len(rows), 3), 1 / 3)


def shares(y, rows):
    return [float(np.mean(y[rows] == label)) for label in ("a", "b", "c")]


@pytest.mark.parametrize("priors", [[0.2, 0.5, 0.3], [0.29, 0.0, 0.71], [1.0, 0.0, 0.0], [1 / 4, 1 / 4, 1 / 2]])
def test_shares_are_exact(priors):
    rows = resample_priors(Y, priors)
    assert rows.shape == (100,) and shares(Y, rows) == pytest.approx(priors, abs=1e-12)
    named = dict(zip("cab", [priors[2], *priors[:2]]))
    np.testing.assert_array_equal(rows, resample_priors(Y, named))
    np.testing.assert_array_equal(rows, resample_priors(Y, {k: v for k, v in named.items() if v} | {"never": 0.0}))


@pytest.mark.parametrize("size", [1, 2, 7, 50, 1000])
def test_counts_are_rounded_by_largest_remainder(size):
    for seed in range(20):
        priors = np.random.default_rng(seed).dirichlet([0.5, 1, 2])
        count = np.array(shares(Y, resample_priors(Y, priors, size))) * size
        assert count.sum() == pytest.approx(size)
        off = count - size * priors
        assert (np.abs(off) < 1).all()
        # no other whole numbers within one of the quotas are nearer: those rounded up have the largest remainders
        up = off > 0
        if up.any() and not up.all():
            quota = size * priors
            assert (quota % 1)[up].min() >= (quota % 1)[~up].max() - 1e-9


def test_a_remainder_that_is_shared_goes_to_the_first_class():
    assert shares(Y, resample_priors(Y, [1 / 3, 1 / 3, 1 / 3], 100)) == [0.34, 0.33, 0.33]


def test_rows_of_a_class_are_drawn_alike_with_replacement_and_in_random_order():
    rows = resample_priors(Y, [0.5, 0.3, 0.2], 20_000)
    for label in "abc":
        mine = np.flatnonzero(label == Y)
        seen = np.bincount(rows, minlength=100)[mine]
        expected = (np.array(Y[rows]) == label).sum() / len(mine)
        assert 1e-4 < chi2.sf(((seen - expected) ** 2 / expected).sum(), len(mine) - 1) < 1 - 1e-4
    half = shares(Y, rows[:10_000])
    assert half == pytest.approx([0.5, 0.3, 0.2], abs=0.02) and half != [0.5, 0.3, 0.2]
    assert resample_priors(Y, [0, 0, 1], 5, random_state=3).tolist() == resample_priors(Y, [0, 0, 1], 5, 3).tolist()
    assert resample_priors(Y, [0, 0, 1], 5, 3).tolist() != resample_priors(Y, [0, 0, 1], 5, 4).tolist()


def test_a_series_is_read_by_its_index():
    pandas = pytest.importorskip("pandas")
    priors = pandas.Series([0.7, 0.2, 0.1], index=["c", "a", "b"])
    assert shares(Y, resample_priors(Y, priors)) == pytest.approx([0.2, 0.1, 0.7])
    table = pandas.DataFrame([[0.5, 0.5], [0.3, 0.7]], columns=["a", "b"])
    assert prior_mismatch(table, [0.2, 0.8]) == prior_mismatch(table.to_numpy(), [0.2, 0.8])


def test_rows_without_a_label_are_never_drawn():
    some = Y.astype(object)
    some[::2] = None
    rows = resample_priors(some, [0.2, 0.3, 0.5])
    assert len(rows) == 50 and (rows % 2 == 1).all()


def test_the_index_is_the_sum_of_divergences():
    sources, test = RNG.dirichlet([1, 1, 1], 4), RNG.dirichlet([1, 1, 1])
    by_hand = sum(p * np.log(p / q) for row in sources for p, q in zip(row, test))
    assert prior_mismatch(sources, test) == pytest.approx(by_hand, rel=1e-12)
    assert prior_mismatch(list(sources), test) == pytest.approx(by_hand, rel=1e-12)
    assert prior_mismatch([list(row) for row in sources], list(test)) == pytest.approx(by_hand, rel=1e-12)
    assert prior_mismatch(dict(zip("wxyz", sources)), test) == pytest.approx(by_hand, rel=1e-12)
    one = prior_mismatch(sources[0], test)
    assert prior_mismatch(sources[0].tolist(), test) == one > 0
    assert prior_mismatch([sources[0]] * 5, test) == pytest.approx(5 * one, rel=1e-12)  # as the columns of table 4.5
    order = [2, 0, 1]
    assert prior_mismatch(sources[:, order], test[order]) == pytest.approx(by_hand, rel=1e-12)


def test_the_index_is_zero_only_where_priors_agree():
    for seed in range(50):
        p, q = np.random.default_rng(seed).dirichlet([1, 1, 1], 2)
        assert prior_mismatch([p, p], p) == 0 < prior_mismatch([p, q], p)


def test_a_class_that_the_batch_lacks_makes_it_infinite():
    assert prior_mismatch([[0.5, 0.5]], [1, 0]) == np.inf
    assert prior_mismatch([[1, 0]], [0.5, 0.5]) == pytest.approx(np.log(2))
    assert prior_mismatch([[1, 0]], [1, 0]) == 0


def test_a_class_is_left_out():
    some = Y.astype(object)
    some[:10] = None
    rows = without_class(some, "b")
    np.testing.assert_array_equal(rows, [i for i in range(10, 100) if Y[i] != "b"])
    assert without_class(np.array([0, 1, 1, 2]), np.int8(1)).tolist() == [0, 3]
    with pytest.raises(ValueError, match="label"):
        without_class(Y, "z")
    with pytest.raises(ValueError, match="another class"):
        without_class([1, 1], 1)


def test_copies_are_the_source_under_other_names():
    answers = {"x": np.arange(3), "y": np.ones((3, 2))}
    more = with_copies(answers, "x", 2)
    assert list(more) == ["x", "y", "x copy 1", "x copy 2"] and list(answers) == ["x", "y"]
    assert more["x copy 2"] is answers["x"] and with_copies(answers, "y", 0) == answers
    with pytest.raises(ValueError, match="'z'"):
        with_copies(answers, "z", 1)
    with pytest.raises(ValueError, match="'x copy 1'"):
        with_copies(more, "x", 1)
    for k in (-1, 1.5, True):
        with pytest.raises(ValueError, match="k"):
            with_copies(answers, "x", k)


def test_methods_meet_the_same_batches_and_the_scores_are_theirs():
    met, soft = [], 0.7 * ON_TRUTH + 0.1

    def noted(rows):
        met.append(rows)
        return soft[rows]

    def other(rows):
        assert rows.tolist() == met[-1].tolist()
        rows[:] = 0  # its own copy
        return np.full((len(rows), 3), 1 / 3)

    priors = [[0.2, 0.3, 0.5], {"a": 1.0}]
    study = prior_shift_study(
        {"soft": noted, "none": other}, Y, priors, n_repeats=3, size=40, source_priors=[[0.5, 0.3, 0.2]] * 2
    )
    assert len(met) == 6 and len(study.records) == 12 and study.methods == ["soft", "none"]
    for s, rows in enumerate([met[:3], met[3:]]):
        for r, batch in enumerate(rows):
            assert shares(Y, batch) == pytest.approx(study.priors[s])
            loss = log_loss(Y[batch], soft[batch], ["a", "b", "c"])
            assert study.values("soft", "log_loss")[s, r] == pytest.approx(loss, rel=1e-12)
    assert len({tuple(batch) for batch in met}) == 6
    assert study.mismatch[0] == pytest.approx(prior_mismatch([[0.5, 0.3, 0.2]] * 2, [0.2, 0.3, 0.5]))
    assert study.mismatch[1] == np.inf and study.size == 40 and not study.failures
    # found prior: the mean posterior
    np.testing.assert_allclose(study.records[0]["estimated_prior"], soft[met[0]].mean(axis=0))
    by_hand = [sum(abs(np.array(p) - 1 / 3)) / 2 for p in study.priors]
    np.testing.assert_allclose(study.mean("none", "prior_error"), by_hand)


def test_means_and_standard_errors_are_over_repeats():
    noise = np.random.default_rng(1).dirichlet([1, 1, 1], 100)
    methods = {"noise": lambda rows: noise[rows], "right": lambda rows: ON_TRUTH[rows]}
    study = prior_shift_study(methods, Y, [[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]], n_repeats=7)
    values = study.values("noise", "brier")
    assert values.shape == (2, 7)
    np.testing.assert_allclose(study.mean("noise", "brier"), values.mean(axis=1))
    np.testing.assert_allclose(study.std_error("noise", "brier"), values.std(axis=1, ddof=1) / np.sqrt(7))
    gap, spread = study.difference("noise", "right")
    np.testing.assert_allclose(gap, study.mean("noise"))
    np.testing.assert_allclose(spread, study.std_error("noise"))
    rows = study.frame().to_dict("records")
    assert [(row["method"], row["prior"][0]) for row in rows] == [
        ("noise", 0.2), ("right", 0.2), ("noise", 0.5), ("right", 0.5)
    ]  # fmt: skip
    assert rows[2]["brier"] == pytest.approx(values[1].mean()) and rows[0]["repeats"] == 7
    assert rows[1]["error"] == rows[1]["error_se"] == 0 and np.isnan(rows[0]["mismatch"])
    again = prior_shift_study(methods, Y, [[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]], n_repeats=7)
    assert again.frame()["log_loss"][0] == rows[0]["log_loss"]
    once = prior_shift_study(methods, Y, [[0.2, 0.3, 0.5]], n_repeats=1)
    assert np.isnan(once.std_error("noise")).all() and "Mean over 1 batch of 100 rows" in str(once)


def test_it_reads_as_a_table():
    uniform = {"even": lambda rows: np.full((len(rows), 3), 1 / 3), "right": lambda rows: ON_TRUTH[rows]}
    study = prior_shift_study(
        uniform, Y, [[0.2, 0.3, 0.5], [0.25, 0.75, 0]], n_repeats=2, source_priors=[[0.2, 0.3, 0.5]]
    )
    lines = str(study).splitlines()
    assert lines[1].split() == ["error,", "%", "M", "even", "right"]
    assert lines[2] == "  prior 0.2 0.3 0.5  0.00  80.0 (0.0)  0.0 (0.0)"
    assert lines[3].split() == ["prior", "0.25", "0.75", "0", "inf", "75.0", "(0.0)", "0.0", "(0.0)"]
    assert lines[4].startswith("log-loss, nats") and "1.099 (0.000)" in lines[5]
    many = np.arange(8)
    text = str(prior_shift_study({"x": lambda rows: np.eye(8)[many[rows]]}, many, [np.full(8, 1 / 8)], n_repeats=1))
    assert "prior 0.125 0.125 0.125 0.125 0.125 0.125 …  -  0.0 (-)" in text
    assert len(repr(study)) < 200


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_stopped_and_resumed_is_one_run(tmp_path, n_jobs):
    path, methods = tmp_path / "batches.jsonl", {"right": lambda rows: ON_TRUTH[rows], "even": Even()}
    priors = [[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]
    options = {"n_repeats": 3, "source_priors": [[0.5, 0.3, 0.2]]}
    whole = prior_shift_study(methods, Y, priors, **options)

    def stop(done, total, text):
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prior_shift_study(methods, Y, priors, **options, journal=path, n_jobs=n_jobs, progress=stop)
    assert len(path.read_text().splitlines()) == 1 + 5
    again = prior_shift_study(methods, Y, priors, **options, journal=path, n_jobs=n_jobs)
    assert again.records == whole.records and len(path.read_text().splitlines()) == 1 + 12
    Even.calls.clear()
    assert prior_shift_study(methods, Y, priors, **options, journal=path).records == whole.records
    assert Even.calls == []
