"""Stated probabilities: their scale, and the tests whether they are calibrated."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from mixent.evaluate import log_loss
from mixent.fusion import Calibration, Fuser, Source, load_calibrations, save_calibrations
from mixent.fusion.batch_priors import all_marginals
from mixent.fusion.rules import ml_product
from mixent.fusion.stated import Stated, reliability_of_sums


def softmax(logits):
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def stated(rng, y, power=1.0, prior=(0.5, 0.3, 0.2), distance=1.5):
    """Posteriors of a Gaussian class model at these priors, to a power: calibrated for a power of one."""
    prior = np.array(prior)
    u = rng.normal(size=(len(y), len(prior))) + distance * np.eye(len(prior))[y]
    return softmax(power * (distance * u + np.log(prior)))


def rows(rng, n, prior=(0.5, 0.3, 0.2)):
    return rng.choice(len(prior), n, p=prior)


def example(seed=0, n=80, power=2.0):
    rng = np.random.default_rng(seed)
    y = rows(rng, n)
    return Stated.of(stated(rng, y, power), y, np.bincount(y) / n)


def test_the_fit_is_the_maximum_that_another_optimizer_finds():
    one = example()
    for stds in [(0.5, 0.1), (1.0, 1.0), (100.0, 100.0)]:
        precision = 1 / np.array([stds[0], *[stds[1]] * 3]) ** 2

        def loss(x, precision=precision):
            return 0.5 * precision @ (x - one.center) ** 2 - one.posterior(x)[0]

        other = minimize(loss, one.center, method="BFGS", options={"gtol": 1e-9})
        x, evidence = one.fitted(*stds)
        assert loss(x) <= other.fun + 1e-9
        # Laplace: the integral of exp(-loss) times the prior's normalization, by the curvature of finite differences
        h, eye = 1e-4, np.eye(4)
        steps = [[loss(x + h * (a + b)) - loss(x + h * (a - b)) for b in eye] for a in eye]
        back = [[loss(x - h * (a - b)) - loss(x - h * (a + b)) for b in eye] for a in eye]
        hessian = (np.array(steps) - np.array(back)) / (4 * h**2)
        expected = -loss(x) + 0.5 * (np.log(precision).sum() - np.linalg.slogdet(hessian)[1])
        assert evidence == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("power", [0.5, 3.0])
def test_many_rows_determine_the_scale(power):
    rng = np.random.default_rng(1)
    y = rows(rng, 4000)
    scale = np.array(Calibration.from_predictions(y, stated(rng, y, power)).scale)
    assert scale[0] == pytest.approx(1 / power, rel=0.1)
    contrast = scale[1:] - scale[1]  # p^power holds the priors to this power
    np.testing.assert_allclose(contrast, np.log(0.5) - np.log([0.5, 0.3, 0.2]), atol=0.15)


def test_calibrated_probabilities_and_few_rows_change_little():
    rng = np.random.default_rng(2)
    batch = rows(rng, 4000)
    answers = stated(rng, batch)
    for n, most in [(25, 0.008), (100, 0.002), (2000, 0.0002)]:
        losses = []
        for _ in range(20):
            y = rows(rng, n)
            made = Calibration.from_predictions(y, stated(rng, y), priors=[0.5, 0.3, 0.2])
            joint = made.scale[0] * np.log(answers) + made.scale[1:] + np.log([0.5, 0.3, 0.2])
            losses.append(log_loss(batch, softmax(joint)))
        assert np.mean(losses) < log_loss(batch, answers) + most


def test_without_rows_of_a_class_the_others_are_scaled():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 400)
    answers = stated(rng, y, 3.0, (0.4, 0.4, 0.2))
    truth = np.array([*y.tolist(), 2])
    made = Calibration.from_predictions(truth, np.vstack([answers, [np.nan] * 3]))  # the only row of class 2: no answer
    assert made.n_rows[2] == 0 and made.scale[0] < 0.6 and np.isfinite(made.scale).all()
    one = Calibration.from_predictions(["a", "a", "b"], [[0.3, 0.7], [0.6, 0.4], [np.nan] * 2])
    assert one.scale is None and one.reliability is None


def test_the_order_of_the_symbols_changes_nothing():
    rng = np.random.default_rng(4)
    y = np.array(list("abc"))[rows(rng, 100)]
    answers = stated(rng, np.searchsorted(list("abc"), y), 3.0)
    batch = stated(rng, rows(rng, 40), 3.0)
    one = Calibration.from_predictions(y, answers, symbols=list("abc"))
    other = Calibration.from_predictions(y, answers[:, [2, 0, 1]], symbols=list("cab"))
    np.testing.assert_allclose(other.scale, np.array(one.scale)[[0, 3, 1, 2]], rtol=1e-9)
    np.testing.assert_allclose(
        Fuser({"x": one}, method="product").fit({"x": batch}).posterior_,
        Fuser({"x": other}, method="product").fit({"x": batch[:, [2, 0, 1]]}).posterior_,
        rtol=1e-9,
        atol=1e-12,
    )


def test_what_is_not_scaled():
    rng = np.random.default_rng(5)
    y = rows(rng, 60)
    answers = stated(rng, y)
    labels = np.eye(3)[answers.argmax(axis=1)]  # labels as columns of ones
    for made in (
        Calibration.from_predictions(y, labels),
        Calibration.from_predictions(y, answers.argmax(axis=1)),
        Calibration.from_predictions(y, answers, symbols=["x", "y", "z"]),
        Calibration.from_predictions(y, answers, cells=["day", "night"] * 30),
        Calibration.from_scores(y, answers[:, 0]),
    ):
        assert made.scale is None and made.reliability is None
    plain = Calibration.from_predictions(y, answers, scaled=False)
    assert plain.scale is None and plain.reliability == Calibration.from_predictions(y, answers).reliability
    posterior = Fuser({"x": plain}, method="product", class_prior=plain.class_prior).fit({"x": answers}).posterior_
    np.testing.assert_allclose(posterior, answers, rtol=1e-9)  # as stated


def test_as_is_false_uses_the_confusion_matrix_alone():
    rng = np.random.default_rng(6)
    y = rows(rng, 60)
    made = Calibration.from_predictions(y, stated(rng, y, 2.0))
    answers = {"x": stated(rng, y, 2.0)}
    one, other = (Fuser({"x": Source(c, as_is=False)}).fit(answers) for c in (made, replace(made, scale=None)))
    np.testing.assert_array_equal(one.posterior_, other.posterior_)


def test_the_p_value_is_uniform_for_calibrated_probabilities_and_small_for_others():
    rng = np.random.default_rng(7)
    p_values = []
    for _ in range(300):
        y = rows(rng, 200)
        p_values.append(Stated.of(stated(rng, y), y, np.bincount(y) / 200).reliability([0, 1, 2]).p_value)
    assert 0.005 < np.mean(np.array(p_values) < 0.05) < 0.1
    assert 0.4 < np.median(p_values) < 0.6
    assert example(power=3.0).reliability([0, 1, 2]).p_value < 1e-3


def test_the_largest_deviation_is_named():
    rng = np.random.default_rng(8)
    y = rng.integers(0, 2, 500)
    right = rng.random(500) < 0.7
    confident = rng.uniform(0.85, 0.97, 500)
    high = np.where(right == (y == 1), confident, 1 - confident)
    test = Calibration.from_predictions(y, np.column_stack([1 - high, high])).reliability
    assert test.subject is None and test.p_value < 1e-6
    assert test.stated == pytest.approx(confident.mean()) and test.observed == pytest.approx(right.mean())
    other = stated(rng, y, prior=(0.9, 0.1))  # of other class priors than the rows
    test = Calibration.from_predictions(y, other).reliability
    assert test.subject in (0, 1) and test.p_value < 1e-6
    assert test.stated == pytest.approx(other[:, test.subject].mean())
    assert test.observed == pytest.approx((y == test.subject).mean())
    assert Calibration.from_predictions(y, other, priors=[0.9, 0.1]).reliability.p_value > 0.01


def test_sums_of_calibrated_probabilities_are_those_of_the_classes():
    rng = np.random.default_rng(9)
    p_values = []
    for _ in range(300):
        y = rows(rng, 200)
        p_values.append(reliability_of_sums(np.eye(3)[y].T @ stated(rng, y), (0, 1, 2)).p_value)
    assert 0.005 < np.mean(np.array(p_values) < 0.05) < 0.1
    y = rows(rng, 200)
    other = reliability_of_sums(np.eye(3)[y].T @ stated(rng, y, prior=(0.1, 0.3, 0.6)), (0, 1, 2))
    assert other.p_value < 1e-4 and other.subject in (0, 2)
    assert reliability_of_sums(np.diag([5.0, 0.0, 3.0]), (0, 1, 2)) is None


def test_files_with_and_without_scale(tmp_path):
    rng = np.random.default_rng(10)
    y = rows(rng, 60)
    made = {"x": Calibration.from_predictions(y, stated(rng, y, 3.0))}
    save_calibrations(made, tmp_path / "c.json")
    assert load_calibrations(tmp_path / "c.json") == made
    entries = json.loads(Path(tmp_path / "c.json").read_text())
    for field in ("scale", "reliability"):  # as files of earlier versions
        del entries["x"][field]
    Path(tmp_path / "old.json").write_text(json.dumps(entries))
    old = load_calibrations(tmp_path / "old.json")["x"]
    assert old == replace(made["x"], scale=None, reliability=None)
    assert Fuser({"x": old}, method="product").fit({"x": stated(rng, y)}).posterior_.shape == (60, 3)


def test_labels_add_to_the_counts_and_keep_the_scale():
    rng = np.random.default_rng(11)
    y = rows(rng, 60)
    made = Calibration.from_predictions(y, stated(rng, y, 3.0))
    batch = rows(rng, 40)
    fuser = Fuser({"x": made}).fit({"x": stated(rng, batch, 3.0)}, [int(batch[0]), int(batch[1]), *[None] * 38])
    fitted = fuser._fitted_layout.calibrations[0]
    assert fitted.scale == made.scale and fitted.counts.sum() == pytest.approx(62)


def understating(rng, y, common):
    """Sources with common errors, which understate class 0: their likelihood ratios are not those of their answers."""
    out = []
    for _ in range(5):
        u = 1.2 * np.eye(3)[y] + 0.9 * common + 0.44 * rng.normal(size=(len(y), 3))
        out.append(softmax(3 * u - [4, 0, 0]))
    return {f"s{j}": p for j, p in enumerate(out)}


def test_a_class_is_not_starved_by_evidence_that_the_histograms_contradict():
    """EM with such likelihood ratios finds no items of class 0; the means of the probabilities show that there are."""
    rng = np.random.default_rng(12)
    own, batch = rows(rng, 600, [1 / 3] * 3), rows(rng, 400, [1 / 3] * 3)
    made = understating(rng, own, rng.normal(size=(600, 3)))
    sources = {name: Calibration.from_predictions(own, p, scaled=False) for name, p in made.items()}
    answers = understating(rng, batch, rng.normal(size=(400, 3)))
    fuser = Fuser(sources, method="discounted").fit(answers)
    assert (fuser.prior_ > 0.2).all()
    members = np.mean([(p.argmax(axis=1) != batch).mean() for p in answers.values()])
    assert (fuser.labels_ != batch).mean() < members


def test_the_histograms_have_the_last_word_only_if_they_are_precise():
    """Wald tests: another prior counts as contradicted if it is far away, and the reference is not farther."""
    rng = np.random.default_rng(13)
    y = rows(rng, 400)
    sources = {name: Calibration.from_predictions(y, stated(rng, y)) for name in "ab"}
    fuser = Fuser(sources, method="product").fit({name: stated(rng, y) for name in "ab"})
    marginals = all_marginals(fuser._batch)
    near, far = marginals.prior, np.array([0.02, 0.28, 0.7])
    precise, vague = 1e-4 * (np.eye(3) - 1 / 3), 10 * (np.eye(3) - 1 / 3)
    assert marginals.prefers(near, far, precise)
    assert not marginals.prefers(far, near, precise)
    assert not marginals.prefers(near, far, vague)
    ratio, weight = marginals.pseudo_items(precise)
    q = ml_product(ratio, weight, np.full(3, 1 / 3), tol=1e-12).prior
    np.testing.assert_allclose(q, marginals.prior, atol=1e-5)  # their maximum is the estimate itself
