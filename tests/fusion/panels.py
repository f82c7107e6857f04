"""Panels of sources drawn from the model, and the formulas of the document written out for a few items."""

from dataclasses import dataclass, replace

import numpy as np

from mixent.fusion import Calibration, Source
from mixent.fusion.methods import METHODS as BY_NAME

METHODS = tuple(BY_NAME)
SEARCHED = ("pool", "discounted", "stacking")  # their line searches end where rounding says


@dataclass(frozen=True)
class Drawn:
    sources: dict
    answers: dict  # labels as lists with None, pmfs as arrays with rows of NaN
    truth: np.ndarray  # labels


def tables(rng, K, J, right=0.65):
    """(K, K) confusion matrices of J sources."""
    out = []
    for _ in range(J):
        table = rng.dirichlet(np.full(K, 5.0), K) * (1 - right) + right * np.eye(K)
        out.append(table / table.sum(axis=1, keepdims=True))
    return out


def said_of(rng, table, codes, soft):
    """Codes (n,), or pmfs (n, K) about such a code."""
    drawn = (rng.random((len(codes), 1)) > np.cumsum(table, axis=1)[codes, :-1]).sum(axis=1)
    if not soft:
        return drawn
    pmfs = rng.gamma(0.7 + 4.0 * np.eye(len(table))[drawn]) + 1e-9
    return pmfs / pmfs.sum(axis=1, keepdims=True)


def panel(seed=0, n=120, K=3, J=4, prior=None, kind="hard", gaps=0.0, rows=60, labels="abcdefgh"):
    """Sources calibrated on rows of their own, as many of each class, ever more; answers at `prior`."""
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(K, 4.0)) if prior is None else np.asarray(prior)
    truth = rng.choice(K, n, p=prior)
    classes = list(labels[:K])
    sources, answers = {}, {}
    for j, table in enumerate(tables(rng, K, J)):
        soft = kind == "soft" or (kind == "mixed" and j % 2 == 1)
        own = np.repeat(np.arange(K), rows + 10 * j)
        told, said = said_of(rng, table, own, soft), said_of(rng, table, truth, soft)
        silent = rng.random(n) < gaps
        values = told if soft else np.array(classes, dtype=object)[told]
        names = np.array(classes, dtype=object)[own]
        sources[f"s{j}"] = Calibration.from_predictions(names, values, symbols=classes)
        if soft:
            answers[f"s{j}"] = np.where(silent[:, None], np.nan, said)
        else:
            answers[f"s{j}"] = [None if gone else classes[v] for v, gone in zip(said, silent)]
    return Drawn(sources, answers, np.array(classes, dtype=object)[truth])


def taken(answers, rows):
    """Some of the items."""
    return {name: v[rows] if isinstance(v, np.ndarray) else [v[i] for i in rows] for name, v in answers.items()}


def chained(first, second):
    return {
        name: np.concatenate([v, second[name]]) if isinstance(v, np.ndarray) else [*v, *second[name]]
        for name, v in first.items()
    }


def with_copies(drawn, copies):
    """The first source once more, so often, declared."""
    first = next(iter(drawn.sources))
    copy = replace(calibration(drawn.sources[first]), copy_of=first)
    more = {f"copy {i}": copy for i in range(copies)}
    said = dict.fromkeys(more, drawn.answers[first])
    return Drawn({**drawn.sources, **more}, {**drawn.answers, **said}, drawn.truth)


def calibration(source):
    return source.calibration if isinstance(source, Source) else source


def dense(value, symbols):
    """(n, V) what was said, zero where silent."""
    if isinstance(value, np.ndarray) and value.ndim == 2:
        return np.nan_to_num(value)
    return np.array([[float(v == s) for s in symbols] for v in value])


def divergences(q, said, rates, weight=None):
    """(K,) D(B(. | k) || A(. | k)) and (K,) mass of one source: said (n, V), rates (K, V), posteriors q (n, K)."""
    weight = np.ones(len(q)) if weight is None else weight
    counts = (q * weight[:, None]).T @ said  # (K, V)
    mass = counts.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = counts / mass[:, None]
        terms = np.where(share > 0, share * np.log(share / rates), 0.0)
    return terms.sum(axis=1), mass


def printed_R(q, drawn, rates=None, share=None, weight=None, free=None, weighted=True):
    """R of (4.13), or R~ of (4.11): posteriors (n, K) of classes in sorted order."""
    value = 0.0
    for j, (name, source) in enumerate(drawn.sources.items()):
        one = calibration(source)
        table = one.confusion if rates is None else rates[j]
        D, mass = divergences(q, dense(drawn.answers[name], one.symbols), table, weight)
        kept = np.ones(len(D), dtype=bool) if free is None else ~free[j]
        terms = D * mass if weighted else np.where(mass > 0, D, 0.0)
        value += (1.0 if share is None else share[j]) * np.where(kept, terms, 0.0).sum()
    return value


def risen(history):
    """The objectives of accepted passes."""
    return np.array([step.objective for step in history if step.accepted])
