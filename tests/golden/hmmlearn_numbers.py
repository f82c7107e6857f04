"""Make hmmlearn.json: hmmlearn's Baum-Welch after a few iterations from given starts.

    python -m pip install hmmlearn==0.3.3
    python tests/golden/hmmlearn_numbers.py > tests/golden/hmmlearn.json

`cases()` gives data and starts to tests, too; it needs numpy only. Priors are switched off on both sides: hmmlearn's
defaults for GaussianHMM pull variances towards 1e-2.
"""

import json

import numpy as np

N_ITER = 7
STATES = 3


def cases():
    """Data, lengths and starts, from one seed."""
    rng = np.random.default_rng(20)
    lengths = np.array([1, 17, 40, 2, 25, 9, 33])
    steps = int(lengths.sum())
    chain = np.array([[0.8, 0.15, 0.05], [0.1, 0.7, 0.2], [0.25, 0.05, 0.7]])
    states, begins = np.empty(steps, dtype=int), set((np.cumsum(lengths) - lengths).tolist())
    for t in range(steps):
        states[t] = rng.integers(STATES) if t in begins else rng.choice(STATES, p=chain[states[t - 1]])
    centers = np.array([[0.0, 0.0], [2.0, 1.0], [-1.0, 2.5]])
    X = centers[states] + rng.normal(size=(steps, 2)) @ np.array([[1.0, 0.3], [0.0, 0.7]])
    tables = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6]])
    symbols = np.array([rng.choice(4, p=tables[s]) for s in states])
    start = {
        "start": rng.dirichlet(np.full(STATES, 4.0)),
        "transitions": rng.dirichlet(np.full(STATES, 4.0), size=STATES),
    }
    means = centers + rng.normal(size=centers.shape)
    tables_start = rng.dirichlet(np.full(4, 5.0), size=STATES)
    counts = rng.poisson(np.array([[1.0, 8.0], [4.0, 2.0], [9.0, 5.0]])[states])
    return lengths, {
        "categorical": (symbols, start | {"tables": tables_start}),
        "diag": (X, start | {"means": means, "covariances": np.full((STATES, 2), 1.5)}),
        "full": (X, start | {"means": means, "covariances": np.tile([[1.5, 0.2], [0.2, 1.0]], (STATES, 1, 1))}),
        "poisson": (counts, start | {"means": np.array([[2.0, 6.0], [3.0, 3.0], [7.0, 4.0]])}),
    }


def main():
    import hmmlearn
    from hmmlearn import hmm

    lengths, data = cases()
    out = {"hmmlearn": hmmlearn.__version__, "n_iter": N_ITER, "models": {}}
    for name, (X, start) in data.items():
        options = {"n_components": STATES, "n_iter": N_ITER, "tol": -np.inf, "init_params": "", "implementation": "log"}
        if name == "categorical":
            model = hmm.CategoricalHMM(**options)
            model.emissionprob_ = start["tables"]
            table = X[:, None]
        elif name == "poisson":
            model = hmm.PoissonHMM(lambdas_prior=0.0, lambdas_weight=0.0, **options)
            model.lambdas_, table = start["means"], X
        else:
            plain = {"covars_prior": 0.0, "min_covar": 0.0, "means_weight": 0.0}
            # diag: (covars_prior + scatter) / (max(covars_weight - 1, 0) + n); full: covars_weight - d is added to n
            plain["covars_weight"] = 1.0 if name == "diag" else 2.0
            model = hmm.GaussianHMM(covariance_type=name, **plain, **options)
            model.means_, model.covars_, table = start["means"], start["covariances"], X
        model.startprob_, model.transmat_ = start["start"], start["transitions"]
        model.fit(table, lengths)
        first = np.cumsum(lengths) - lengths
        found = {
            "history": list(model.monitor_.history),
            "start": model.startprob_,
            "transitions": model.transmat_,
            "score_samples": [model.score(table[a : a + n]) for a, n in zip(first, lengths)],
            "posteriors": model.predict_proba(table, lengths),
            "path": model.decode(table, lengths)[1],
            "path_log_prob": model.decode(table, lengths)[0],
            "stationary": model.get_stationary_distribution(),
        }
        if name == "categorical":
            found["tables"] = model.emissionprob_
        elif name == "poisson":
            found["means"] = model.lambdas_
        else:
            found |= {"means": model.means_, "covariances": model.covars_}
        out["models"][name] = {
            key: np.asarray(value).tolist() if isinstance(value, np.ndarray) else value for key, value in found.items()
        }
    print(json.dumps(out, indent=1, default=float))


if __name__ == "__main__":
    main()
