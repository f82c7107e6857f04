"""Classifiers by maximum entropy discrimination in plain values and in words: for tables, pages and files."""

from __future__ import annotations

from typing import Any

import numpy as np

from mixent.base.kernels import RBF, Linear, Nystrom, Polynomial
from mixent.base.text import class_name
from mixent.hmm import HiddenMarkovModel, HMMClassifier
from mixent.med import FisherKernel, MEDClassifier

SURE = 0.9  # of a label that was in doubt
MOST_CLASSES = 30


def describe_discrimination(model: Any) -> dict[str, Any]:
    """Classes, kernel, choice of c, margins, support, gap and calibration of a fitted classifier, in plain values.

    Parameters
    ----------
    model : fitted MEDClassifier or MEDGaussianClassifier

    Returns
    -------
    dict that JSON can hold
    """
    margin = {"prior": type(model.margin_).__name__.lower(), "about": float(model.margin_.at)}
    quantile = model._quantile_in_use()
    if quantile is not None:
        margin["quantile"] = quantile
    return {**margin_facts(model, margin), "kernel": what_kernel(model)}


def margin_facts(model: Any, margin: dict[str, Any]) -> dict[str, Any]:
    """What all classifiers with margins tell: of kernels, Gaussians, trees and nets."""
    posterior = model.label_posterior_
    certain = posterior.max(axis=1)
    doubtful = certain[certain < 1.0]
    owner = np.bincount(posterior[model.support_].argmax(axis=1), minlength=len(model.classes_))
    about: dict[str, Any] = {
        "classes": [
            {"class": c, "prior": float(p), "support": int(n)}
            for c, p, n in zip(model.classes_.tolist(), model.class_prior_, owner)
        ],
        "c": _bound(model),
        "margin": margin,
        "bias": model.bias if isinstance(model.bias, str) else float(model.bias),
        "support": {
            "rows": len(model.support_),
            "of": int((~np.isnan(certain)).sum()),
            "leave_one_out": float(model.loo_estimate_),
        },
        "gap": None if model.gap_ is None else float(model.gap_),
        "calibration": {
            "kind": model.calibration,
            "slope": float(model.calibration_.slope),
            "offset": [float(o) for o in model.calibration_.offset],
        },
    }
    if len(doubtful):
        about["in_doubt"] = {"rows": len(doubtful), "sure": int((doubtful >= SURE).sum())}
    return about


def _bound(model: Any) -> dict[str, Any]:
    tried = [{"c": float(entry["C"]), "log_loss": float(entry["log_loss"])} for entry in model.C_tried_]
    if model.C_ is None:
        how = "none"  # the margin needs none
    elif not isinstance(model.C, str):
        how = "given"
    else:
        how = "cross-validation" if tried else "too few labels to choose"
    return {"value": None if model.C_ is None else float(model.C_), "how": how, "tried": tried}


def in_words(about: dict[str, Any], *, see: str) -> list[str]:
    """What `describe_discrimination` found, a sentence each without its full stop; `see`: where errors are told."""
    told = (_c_in_words(about["c"]), _margin_in_words(about), _support(about, see), _doubt(about), _certificate(about))
    return [text for text in (*told, _calibration(about)) if text]


def _c_in_words(bound: dict[str, Any]) -> str:
    if bound["how"] == "none":
        return ""
    text = f"C {bound['value']:g}"
    if bound["how"] == "given":
        return f"{text}, as given"
    if bound["how"] != "cross-validation":
        return f"{text}, the usual one: too few labelled rows to choose"
    best = min(entry["log_loss"] for entry in bound["tried"])
    return f"{text}, chosen among {len(bound['tried'])} by cross-validation: log-loss {best:.3f} nats"


def _margin_in_words(about: dict[str, Any]) -> str:
    margin, bias = about["margin"], about["bias"]
    at = f"{margin['about']:.3g}"
    if "quantile" in margin:
        at += f", the {margin['quantile']:g} quantile of the margins before discrimination"
    text = f"Margin prior {margin['prior']}, about {at}"
    if margin["prior"] == "fixed":
        text = f"Every row keeps a margin of {at}"
    return f"{text}; prior of the bias " + ("flat" if bias == "flat" else f"of variance {bias:g}")


def _support(about: dict[str, Any], see: str) -> str:
    support = about["support"]
    if support["rows"] == 0:
        return "No row asks for more than the margins the prior gives: discrimination changed nothing"
    # a prior that was learned from the rows changes with every one of them
    why = "the prior too is of these rows" if "quantile" in about["margin"] else "as a rule far too high"
    return (
        f"{support['rows']} of {_count(support['of'], 'row')} support the boundary; leave-one-out estimate of the "
        f"error {support['leave_one_out']:.1%} (their share: crude, {why}; {see})"
    )


def _doubt(about: dict[str, Any]) -> str:
    if "in_doubt" not in about:
        return ""
    n, sure = about["in_doubt"]["rows"], about["in_doubt"]["sure"]
    return f"{_count(n, 'row')} without a certain label took part; {sure} now have one at least {SURE:.0%} certain"


def _certificate(about: dict[str, Any]) -> str:
    if about["gap"] is None:
        return "Certificate: no bound of the optimum is known"
    labels = " for these labels" if "in_doubt" in about else ""
    return f"Certificate: at most {about['gap']:.1g} nats from the optimum{labels}"


def _calibration(about: dict[str, Any]) -> str:
    found = about["calibration"]
    kind, slope = found["kind"], found["slope"]
    if kind is None:
        return "Probabilities: a softmax of the scores as they are"
    if kind == "predictive":
        return "Probabilities: Bayes' rule with the predictive density of each class"
    if slope == 1.0 and not any(found["offset"]):
        return "Probabilities: a softmax of the scores as they are: too few labelled rows to calibrate"
    text = f"Probabilities: a softmax of {slope:.3g} times the scores ({kind}, fitted to rows held out)"
    if kind == "affine":
        names = [class_name(entry["class"]) for entry in about["classes"][:MOST_CLASSES]]
        text += "; moved by " + ", ".join(f"{c}: {o:+.2f}" for c, o in zip(names, found["offset"]))
    return text


def what_kernel(model: Any) -> dict[str, Any]:
    """The kernel of a fitted classifier by maximum entropy discrimination, in plain values.

    Parameters
    ----------
    model : fitted MEDClassifier or MEDGaussianClassifier

    Returns
    -------
    dict: name, words (a sentence without its full stop), and what the kernel has: gamma, degree, coef0, landmarks
    """
    if isinstance(model, MEDClassifier):
        return _of_planes(model)
    found = _kernel(None if model.components_ is None else model.components_.nystrom.kernel)
    n = len(model.ensemble_.classes[0].mean)
    if model.components_ is None:
        return {"name": None, "words": f"Gaussians of {_count(n, 'encoded column')}"}
    return found | {"components": n, "words": f"Gaussians of {_count(n, 'component')} of the {found['words']}"}


def _of_planes(model: Any) -> dict[str, Any]:
    if isinstance(model.map_, FisherKernel):
        inner, rank = model.map_.model_, model.map_.rank_
        chain = isinstance(inner, (HiddenMarkovModel, HMMClassifier))
        n = int(inner.n_states if chain else inner.params_.weights.shape[-1])
        what = f"hidden Markov model of {_count(n, 'state')}" if chain else f"mixture of {_count(n, 'component')}"
        words = f"Fisher kernel of a {what}: {_count(rank, 'feature')}"
        return {"name": "fisher", "words": words, "components": n, "features": rank}
    if model.map_ is not None and not isinstance(model.map_, Nystrom):
        name = type(model.map_).__name__
        return {"name": name, "words": f"Kernel of the features of a {name}"}
    if model.encoder_ is None:
        return {"name": "precomputed", "words": "Kernel given as a matrix"}
    if isinstance(model.kernel_, Linear):
        n = len(model.feature_names_)
        return {"name": "linear", "words": f"Linear discriminant in {_count(n, 'encoded column')}"}
    found = _kernel(model.kernel_)
    words = found["words"][0].upper() + found["words"][1:]
    if model.map_ is None:
        return found | {"words": words}
    n = len(model.map_.landmarks)
    return found | {"landmarks": n, "words": f"{words}, through {_count(n, 'landmark')}"}


def _kernel(kernel: Any) -> dict[str, Any]:
    if isinstance(kernel, RBF):
        return {"name": "rbf", "gamma": kernel.gamma, "words": f"kernel rbf, gamma {kernel.gamma:.3g}"}
    if isinstance(kernel, Polynomial):
        words = f"kernel poly of degree {kernel.degree}, gamma {kernel.gamma:.3g}, coef0 {kernel.coef0:.3g}"
        return {
            "name": "poly",
            "degree": kernel.degree,
            "gamma": kernel.gamma,
            "coef0": kernel.coef0,
            "words": words,
        }
    return {"name": "function", "words": "kernel of a function"}


def strongest_columns(model: Any, most: int = 8) -> list[dict[str, Any]]:
    """The encoded columns with the largest coefficients of a linear discriminant; none where there is no such thing.

    Parameters
    ----------
    model : fitted MEDClassifier or MEDGaussianClassifier
    most : int

    Returns
    -------
    list of dict: column, size (of the coefficient; of more than two classes, of the class for which more of the column
    speaks most, less the classes' mean), class (for which more of it speaks)
    """
    if not isinstance(model, MEDClassifier) or not isinstance(model.kernel_, Linear):
        return []
    weights = model.function_.weights  # (r, C)
    says = weights - weights[:, ::-1] if weights.shape[1] == 2 else weights - weights.mean(axis=1, keepdims=True)
    size, who = says.max(axis=1), says.argmax(axis=1)
    order = np.argsort(-size, kind="stable")[:most]
    classes = model.classes_.tolist()
    return [{"column": model.feature_names_[j], "size": float(size[j]), "class": classes[who[j]]} for j in order]


def _count(n: int, one: str) -> str:
    return f"{n} {one}" if n == 1 else f"{n} {one}s"
