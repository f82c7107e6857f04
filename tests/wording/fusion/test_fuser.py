"""Wording of fusion, fuser."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mixent.fusion import Calibration, Fuser

from ...fusion.test_fuser import GOOD, pair, say


def test_a_source_that_answers_few_items():
    labels = ["no", "yes"] * 50
    one = Calibration.from_predictions(labels, labels)
    fuser = Fuser({"a": one, "b": one, "silent": one}).fit({"a": labels, "b": labels})
    assert any(warning.startswith("source 'silent' answered only 0\u00a0% of the items") for warning in fuser.warnings_)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "best"}, "method must be one of 'auto', 'majority', .*; got 'best'"),
        ({"method": None}, "method must be one of 'auto', .*; got None"),
        ({"method": "min-divergence", "missing_class_safe": 1}, "missing_class_safe must be True or False; got 1"),
        (
            {"missing_class_safe": False},
            "missing_class_safe=False is only used with method 'min-divergence'; got method='auto'",
        ),
        ({"trim": 0.1, "method": "sum"}, "trim=0.1 is only used with method 'trimmed-mean'; got method='sum'"),
        ({"tol": 1e-3, "method": "pool"}, "tol=0.001 is only used with method 'min-divergence'; got method='pool'"),
        (
            {"trim": 0.5, "method": "trimmed-mean"},
            "trim must be less than 0.5, because it is removed at both ends; got 0.5",
        ),
        ({"trim": -1}, "trim must be a share, at least 0 and less than 1; got -1"),
        ({"confidence": 0}, "confidence must be more than 0; got 0"),
        ({"confidence": 1}, "confidence must be a share, at least 0 and less than 1; got 1"),
        ({"tol": 0}, "tol must be a number > 0; got 0"),
        ({"max_iter": 0}, "max_iter must be a whole number >= 1; got 0"),
        ({"class_prior": [1, 2, 3]}, r"class_prior must be 'training', 'uniform' or 2 positive numbers, one per class"),
        ({"class_prior": [1, 0]}, r"one per class; got \[1, 0\]"),
        ({"class_prior": "even"}, "one per class; got 'even'"),
        ({"class_prior": [1, None]}, r"one per class; got \[1, None\]"),
        ({"sources": {}}, "sources must be a non-empty dict of name -> Calibration or Source; got {}"),
        ({"sources": {1: GOOD.sources["s0"]}}, "the name of a source must be a non-empty string; got 1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Fuser(**{"sources": GOOD.sources, **options}).fit(GOOD.answers)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.fit({"s0": [], "s1": []}), "must contain at least one item; got none"),
        (lambda f: f.fit(GOOD.answers).predict_proba({"s0": []}), "must contain at least one item; got none"),
        (lambda f: f.fit(GOOD.answers, ["z", *[None] * 59]), "y holds the label 'z', which is none of the classes"),
        (lambda f: f.fit(GOOD.answers, np.full((60, 2), 0.5)), "blank for unlabelled items; got probabilit"),
        (lambda f: f.fit(GOOD.answers, ["a"]), "inconsistent numbers of samples"),
        (lambda f: f.fit(GOOD.answers, sample_weight=[-1] * 60), "[Nn]egative|>= 0"),
        (lambda f: f.fit(GOOD.answers, sample_weight=[1]), "sample_weight"),
        (lambda f: Fuser().fit([["a", "b"]]), "without sources the answers must be a DataFrame, a dict or LongAnswers"),
        (lambda f: Fuser().fit({"x": np.full((3, 2), 0.5)}), "'x' gives probabilities, which need a calibration"),
        (lambda f: Fuser().fit({"x": {"a": [0.5]}}), "without calibrations, the answers must be labels"),
        (lambda f: Fuser().fit({"x": ["a", "a"]}), r"must contain at least two different labels; got \['a'\]"),
    ],
)
def test_data_that_make_no_sense_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(Fuser(GOOD.sources))


def test_a_search_that_is_cut_short_says_so():
    with pytest.warns(
        ConvergenceWarning, match="within .* nats per item of its minimum after 2 passes, not within tol=1e-08"
    ):
        fuser = Fuser(GOOD.sources, method="min-divergence", max_iter=2).fit(GOOD.answers)
    assert "This is more than tol=1e-08: the fit did not converge" in str(fuser.summary())
    assert "did not converge" not in str(Fuser(GOOD.sources, method="min-divergence").fit(GOOD.answers).summary())


def test_every_warning_has_its_case():
    calm = pair()
    holes = {name: [*v[:-7], *[None] * 7] for name, v in calm["answers"].items()}
    say("no source answered 7 items; the class priors are used as posteriors", sources=calm["sources"], answers=holes)
    half = {**calm["answers"], "s0": [None if i % 3 else v for i, v in enumerate(calm["answers"]["s0"])]}
    say("source 's0' answered only 34\u00a0% of the items", sources=calm["sources"], answers=half)
    big = pair(600)
    worn = {**big["answers"], "s0": ["a"] * 500 + big["answers"]["s0"][500:]}
    say(
        "source 's0' contradicts the other sources: its answers look as if its threshold had been",
        sources=big["sources"],
        answers=worn,
    )
    twins = {**big["answers"], "s1": big["answers"]["s0"]}
    say("'s0' and 's1' agree more often than their confusion matrices imply", sources=big["sources"], answers=twins)
    triplets = dict.fromkeys(big["answers"], big["answers"]["s0"])
    found = say("as do 2 other pairs", sources=big["sources"], answers=triplets)
    assert any("If a source is a copy of another, declare it with copy_of" in w for w in found)
    few = {name: [v for i, v in enumerate(said) if i % 2 == 0 or i % 10 == 1] for name, said in big["answers"].items()}
    say("differ significantly from those of the training sets (p = ", sources=big["sources"], answers=few)
    say("differ significantly from class_prior (p = ", sources=big["sources"], answers=few, class_prior=[1, 1])
    none = {name: [v for i, v in enumerate(said) if i % 2 == 0] for name, said in pair(4000)["answers"].items()}
    sure = {name: Calibration.from_rates([[0.89, 0.11], [0.1, 0.9]], 10_000, ["a", "b"]) for name in none}
    say("class 'b' is rare or absent in this batch (at most", sources=sure, answers=none)
    blind = {name: Calibration.from_counts([[26, 24], [24, 26]], ["a", "b"]) for name in calm["sources"]}
    say("the prior of class 'a' is uncertain (", sources=blind, answers=calm["answers"])
    lacking = {**calm["sources"], "s2": Calibration.from_counts([[20, 5], [0, 0]], ["a", "b"])}
    say("'s2' has no calibration rows of class b, so that", sources=lacking, answers=calm["answers"])
    thin = {**calm["sources"], "s2": Calibration.from_counts([[30, 5], [2, 8]], ["a", "b"])}
    say("'s2' was calibrated on few rows of class b (10)", sources=thin, answers=calm["answers"])
    many = {f"s{j}": Calibration.from_counts([[8, 2], [2, 8]], ["a", "b"]) for j in range(7)}
    say("3 more calibrations have few rows, or none, of a class", sources=many, answers={"s0": ["a", "b"] * 40})
    short = {name: v[:20] for name, v in calm["answers"].items()}
    say("the batch has only 20 items, so that class priors", sources=calm["sources"], answers=short)
    say("shares of votes are not probabilities of the classes", **calm, method="majority")
    say("ml-sum is the sum rule as printed, which adds ratios on different scales", **calm, method="ml-sum")


def test_sources_whose_probabilities_are_not_calibrated_are_named():
    rng = np.random.default_rng(0)

    def stated(y, power):
        x = rng.normal(2 * y - 1)
        high = 1 / (1 + np.exp(-power * (2 * x + np.log(3))))
        return np.column_stack([1 - high, high])

    def text(sources):
        fuser = Fuser(sources, method="product").fit({name: stated(new, 3.0) for name in sources})
        return [warning for warning in fuser.warnings_ if "probabilities" in warning]

    own, new = (rng.random(400) < 0.75).astype(int), rng.integers(0, 2, 100)
    one = Calibration.from_predictions(own, stated(own, 3.0))
    assert text({"x": one}) == [f"source 'x' {one.reliability}; its probabilities are rescaled"]
    plain = Calibration.from_predictions(own, stated(own, 3.0), scaled=False)
    assert text({"x": plain})[0].endswith("; its probabilities are used as stated")
    many = {f"s{j}": Calibration.from_predictions(own, stated(own, 3.0)) for j in range(5)}
    assert text(many)[0].startswith(
        "5 of 5 sources state probabilities that are not calibrated; they are rescaled. Source 's"
    )
    assert "2 of them are rescaled" in text(dict(zip("abcd", (one, one, plain, plain))))[0]
    assert not text({"x": Calibration.from_predictions(own, stated(own, 1.0))})
    even = rng.integers(0, 2, 400)  # the probabilities contain the priors 1 : 3
    sums = Calibration.from_counts(np.eye(2)[even].T @ stated(even, 1.0), [0, 1])
    assert "because its calibration has only their sums; calibrate it on rows" in text({"x": sums})[0]
    assert text({"x": Calibration.from_counts(np.eye(2)[own].T @ stated(own, 1.0), [0, 1])}) == []
