"""Numbers of crowd-kit (Dawid-Skene), QuaPy (EMQ) and StepMix (latent classes) on simulated data.

`pip install crowd-kit quapy stepmix` in an environment of its own, then `python tests/golden/peers_numbers.py` writes
peers.json. Tests only use the functions without these packages, which simulate the data.
"""

import json
import warnings
from pathlib import Path

import numpy as np


def votes():
    """(items, workers) labels 0, 1, 2 of 80 items by 5 workers of different accuracy; -1 where a worker is silent."""
    rng = np.random.default_rng(0)
    truth = rng.choice(3, 80, p=[0.5, 0.3, 0.2])
    right = rng.random((80, 5)) < [0.9, 0.8, 0.7, 0.6, 0.85]
    labels = np.where(right, truth[:, None], rng.integers(3, size=(80, 5)))
    return np.where(rng.random((80, 5)) < 0.2, -1, labels)


def posteriors():
    """Training priors (3,), and posteriors (300, 3) of a classifier on a batch with other class shares."""
    rng = np.random.default_rng(1)
    label = rng.choice(3, 300, p=[0.1, 0.2, 0.7])
    scores = rng.normal(size=(300, 3)) + 1.5 * np.eye(3)[label]
    prior = np.array([0.5, 0.3, 0.2])
    density = np.exp(1.5 * scores) * prior
    return prior, density / density.sum(axis=1, keepdims=True)


def answers():
    """(n, 4) answers 0, 1, 2 of two latent classes to four questions, and (n, 2) numbers; both with missing values."""
    rng = np.random.default_rng(2)
    label = rng.integers(2, size=250)
    tables = np.array([[[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]], [[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]]])
    codes = [[rng.choice(3, p=tables[j % 2, c]) for j in range(4)] for c in label]
    codes = np.where(rng.random((250, 4)) < 0.1, np.nan, np.array(codes, dtype=float))
    numbers = rng.normal(size=(250, 2)) * [1.0, 2.0] + 2.5 * label[:, None]
    return codes, np.where(rng.random((250, 2)) < 0.1, np.nan, numbers)


def dawid_skene():
    import pandas as pd
    from crowdkit.aggregation import DawidSkene

    labels = votes()
    item, worker = np.nonzero(labels >= 0)
    frame = pd.DataFrame({"task": item, "worker": worker, "label": labels[item, worker]})
    model = DawidSkene(n_iter=5000, tol=1e-13).fit(frame)
    confusion = [[[float(model.errors_.loc[(w, v), c]) for v in range(3)] for c in range(3)] for w in range(5)]
    probas = model.probas_.sort_index()[[0, 1, 2]]
    assert len(probas) == len(labels)  # every item has an answer
    return {
        "posterior": probas.to_numpy().tolist(),
        "prior": model.priors_.sort_index().tolist(),
        "confusion": confusion,
    }


def emq():
    from quapy.method.aggregative import EMQ

    prior, proba = posteriors()
    EMQ.MAX_ITER = 100_000
    shares, adjusted = EMQ.EM(prior, proba, epsilon=1e-14)
    return {"prior": np.asarray(shares).tolist(), "posterior": np.asarray(adjusted)[:10].tolist()}


def stepmix():
    from stepmix import StepMix

    codes, numbers = answers()
    options = {"n_components": 2, "n_init": 20, "abs_tol": 1e-13, "rel_tol": 0.0, "max_iter": 20_000, "random_state": 0}
    options |= {"progress_bar": 0}
    out = {}
    for name, X, kind in (("categorical", codes, "categorical_nan"), ("numeric", numbers, "gaussian_diag_nan")):
        model = StepMix(measurement=kind, **options).fit(X)
        out[name] = {
            "score": float(model.score(X)),
            "weights": np.sort(model.weights_).tolist(),
            "n_parameters": int(model.n_parameters),
            "bic": float(model.bic(X)),
        }
    both = {
        "questions": {"model": "categorical_nan", "n_columns": 4},
        "numbers": {"model": "gaussian_diag_nan", "n_columns": 2},
    }
    X = np.hstack([codes, numbers])
    model = StepMix(measurement=both, **options).fit(X)
    out["mixed"] = {"score": float(model.score(X)), "weights": np.sort(model.weights_).tolist()}
    return out


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    numbers = {"dawid_skene": dawid_skene(), "emq": emq(), "stepmix": stepmix()}
    (Path(__file__).parent / "peers.json").write_text(json.dumps(numbers) + "\n")
