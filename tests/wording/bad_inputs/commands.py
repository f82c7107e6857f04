"""The command line: arguments, the status, and the one line that must come.

`{model}`, `{clusters}` and `{detector}` are good model files; `good.csv`, `new.csv` and the files of `FILES` lie in the
folder.
"""

from .files import BAD_MODELS, FITS, NO_FITS, NO_TABLES

FILES = {
    "new.csv": "x,c\n1,a\n,\n2,zz\n1e100,b\n",
    "text_for_number.csv": "x,c\nbig,a\n",
    "misspelt.csv": "xx,cc\n1,a\n",
    "clash.csv": "x,c,predicted\n1,a,p\n",
    "scored.csv": "x,c,score\n1,a,2\n",
    "zero_weights.csv": "x,w,y\n1,0,p\n2,0,q\n",
    "negative_weights.csv": "x,w,y\n1,1,p\n2,-1,q\n3,1,p\n4,1,q\n",
    "missing_weights.csv": "x,w,y\n1,,p\n2,1,q\n3,1,p\n4,1,q\n",
    "infinite_weights.csv": "x,w,y\n1,inf,p\n2,1,q\n3,1,p\n4,1,q\n",
    "unlabelled_weights.csv": "x,w,y\n1,0,p\n2,0,q\n3,1,\n4,1,\n",
    "zero_class.csv": "x,w,y\n1,0,p\n2,1,q\n3,0,p\n4,1,q\n",
    "costs.csv": "said,p,q\np,0,5\nq,1,0\n",
    "costs_negative.csv": "said,p,q\np,0,-1\nq,1,0\n",
    "costs_text.csv": "said,p,q\np,0,much\nq,1,0\n",
    "costs_gap.csv": "said,p,q\np,0,\nq,1,0\n",
    "costs_infinite.csv": "said,p,q\np,0,inf\nq,1,0\n",
    "costs_classes.csv": "said,p,z\np,0,1\nq,1,0\n",
    "costs_row.csv": "said,p,q\np,0,1\n",
    "costs_twice.csv": "said,p,q\np,0,1\np,1,0\n",
}

ONE = ["--set", "n_components=1"]
FIT = ["fit", "good.csv", "-t", "y", "-o", "m.mixent", *ONE]
NOVELTY = ["novelty", "good.csv", "-o", "m.mixent"]
PREDICT = ["predict", "{model}", "new.csv", "-o", "out.csv"]
COMPARE = ["compare", "good.csv", "-t", "y", "--method", "mixture", *ONE, "--no-baselines", "--jobs", "1"]


def fit(name, *more):
    return ["fit", name, "-t", "y", "-o", "m.mixent", *ONE, *more]


def of(kind, *more):
    return ["fit", "good.csv", "-t", "y", "-o", "m.mixent", "--model", kind, *more]


def weighted(name):
    return fit(name, "--weight", "w")


# name: arguments, status, message
REFUSED = {
    **{f"fit {name}": (fit(name), 1, message) for name, (_, message) in {**NO_TABLES, **NO_FITS}.items()},
    **{f"predict {name}": (["predict", "{model}", name, "-o", "out.csv"], 1, m) for name, (_, m) in NO_TABLES.items()},
    **{
        f"predict with {name}": (["predict", name, "new.csv", "-o", "out.csv"], 1, m)
        for name, (_, m) in BAD_MODELS.items()
    },
    **{f"info of {name}": (["info", name], 1, m) for name, (_, m) in BAD_MODELS.items()},
    "fit a missing file": (fit("none.csv"), 1, "no such file: none.csv"),
    "fit a misspelt file": (fit("goood.csv"), 1, "did you mean 'good.csv'"),
    "fit a folder": (fit("folder.csv"), 1, "folder.csv is a folder; give a file"),
    "fit no name": (fit(""), 1, "unknown kind of file"),
    "predict with a missing model": (
        ["predict", "none.mixent", "new.csv", "-o", "out.csv"],
        1,
        "none.mixent: No such file",
    ),
    "predict with a folder": (["predict", "folder.csv", "new.csv", "-o", "out.csv"], 1, "folder.csv: Is a directory"),
    "info of a table": (["info", "good.csv"], 1, "not a mixent file"),
    "info of a folder": (["info", "."], 1, "Is a directory"),
    # columns
    "no such target": (
        ["fit", "good.csv", "-t", "Y", "-o", "m.mixent"],
        1,
        "no column 'Y'; the columns are 'x', 'c', 'y'",
    ),
    "empty target": (["fit", "good.csv", "-t", "", "-o", "m.mixent"], 1, "no column ''"),
    "markup as target": (["fit", "good.csv", "-t", "[bold]", "-o", "m.mixent"], 1, r"no column '\[bold\]'"),
    "continuous target": (["fit", "good.csv", "-t", "x", "-o", "m.mixent"], 1, "Unknown label type: continuous"),
    "ignore no such column": ([*FIT, "--ignore", "z"], 1, "no column 'z'"),
    "ignore all": ([*FIT, "--ignore", "x", "--ignore", "c"], 1, "'y' is the only column"),
    "ignore the target": ([*FIT, "--ignore", "y"], 1, "cannot be given to --ignore too"),
    "the target as weight": ([*FIT, "--weight", "y"], 1, "cannot be given to --weight too"),
    "the target as category": ([*FIT, "--categorical", "y"], 1, "cannot be given to --categorical too"),
    "no such category": ([*FIT, "--categorical", "z"], 1, "no column 'z'"),
    "no such weight": ([*FIT, "--weight", "z"], 1, "no column 'z'"),
    "words as weights": ([*FIT, "--weight", "c"], 1, "column 'c' .--weight. must hold numbers; row 0 holds"),
    "weights of zero": (weighted("zero_weights.csv"), 1, "column 'w' .--weight.: .*non-zero"),
    "negative weights": (weighted("negative_weights.csv"), 1, "must be >= 0; row 1 has -1"),
    "missing weights": (weighted("missing_weights.csv"), 1, "must be finite; row 0 has nan"),
    "infinite weights": (weighted("infinite_weights.csv"), 1, "must be finite; row 0 has inf"),
    "weights on no label": (weighted("unlabelled_weights.csv"), 1, "every labelled row has sample_weight 0"),
    # predict
    "a column misspelt": (
        ["predict", "{model}", "misspelt.csv", "-o", "out.csv"],
        1,
        "no columns 'x', 'c'",
    ),
    "keep no such column": ([*PREDICT, "--keep", "z"], 1, "no column 'z'"),
    "keep what the output has": (
        ["predict", "{model}", "clash.csv", "-o", "out.csv", "--keep-all"],
        1,
        "has a column 'predicted' too",
    ),
    "costs from no file": ([*PREDICT, "--costs", "none.csv"], 1, "no such file: none.csv"),
    "costs in words": ([*PREDICT, "--costs", "costs_text.csv"], 1, "every cost must be a finite number"),
    "costs missing": ([*PREDICT, "--costs", "costs_gap.csv"], 1, "every cost must be a finite number"),
    "costs infinite": ([*PREDICT, "--costs", "costs_infinite.csv"], 1, "every cost must be a finite number"),
    "costs of other classes": (
        [*PREDICT, "--costs", "costs_classes.csv"],
        1,
        "needs one column for each class 'p', 'q'",
    ),
    "costs of one class": ([*PREDICT, "--costs", "costs_row.csv"], 1, "needs one row for each class 'p', 'q'; has 'p'"),
    "costs of a class twice": ([*PREDICT, "--costs", "costs_twice.csv"], 1, "needs one row for each class"),
    "reject nan": ([*PREDICT, "--reject", "nan"], 2, "--reject must be a finite cost; got nan"),
    "reject inf": ([*PREDICT, "--reject", "inf"], 2, "--reject must be a finite cost; got inf"),
    "reject a word": ([*PREDICT, "--reject", "x"], 2, "--reject"),
    "costs for clusters": (
        ["predict", "{clusters}", "new.csv", "-o", "out.csv", "--costs", "costs.csv"],
        2,
        "--costs is only used with models for classification",
    ),
    "priors of clusters": (
        ["predict", "{clusters}", "new.csv", "-o", "out.csv", "--adjust-priors"],
        2,
        "--adjust-priors is only used with models for classification",
    ),
    # outputs
    "write to a folder": (["fit", "good.csv", "-t", "y", "-o", "folder.csv"], 1, "it is a folder; give a file name"),
    "write to no name": (["fit", "good.csv", "-t", "y", "-o", ""], 1, "it is a folder; give a file name"),
    "write to a missing folder": (
        ["fit", "good.csv", "-t", "y", "-o", "no/m.mixent"],
        1,
        "folder 'no' does not exist; create it",
    ),
    "write below a file": (["fit", "good.csv", "-t", "y", "-o", "good.csv/m"], 1, "folder 'good.csv' does not exist"),
    "write over the input": (["fit", "good.csv", "-t", "y", "-o", "good.csv"], 1, "it is an input of this command"),
    "write over the model": (["predict", "{model}", "new.csv", "-o", "new.csv"], 1, "it is an input of this command"),
    "write an unknown kind": (["predict", "{model}", "new.csv", "-o", "out.xlsx"], 1, "unknown kind of file '.xlsx'"),
    "write to a pipe": (["fit", "good.csv", "-t", "y", "-o", "pipe"], 1, "it is a device or a pipe; give a file name"),
    "report of an unknown kind": ([*COMPARE, "--report", "r.pdf"], 1, "unknown kind of file '.pdf'; use one of .html"),
    "scores of an unknown kind": ([*COMPARE, "--scores", "scores.txt"], 1, "unknown kind of file '.txt'"),
    "demo of an unknown kind": (["demo", "--out", "d.pdf"], 1, "unknown kind of file '.pdf'"),
    "demo to a missing folder": (["demo", "--out", "no/d.html"], 1, "folder 'no' does not exist"),
    # settings
    **{
        f"n_components={v}": ([*FIT[:-1], f"n_components={v}"], 1, "n_components must be")
        for v in ("0", "-1", "1.5", "two", "''", "true", "none")
    },
    "n_components=999999999": ([*FIT[:-1], "n_components=999999999"], 1, "needs at least as many rows; X has 20"),
    "999 clusters": (
        ["fit", "good.csv", "-o", "m", "--set", "n_components=999"],
        1,
        "needs at least as many rows; X has 20",
    ),
    **{f"prior={v}": ([*FIT, "--set", f"prior={v}"], 1, "prior|strength") for v in ("0", "-1", "nan", "inf", "x")},
    **{f"covariance={v}": ([*FIT, "--set", f"covariance={v}"], 1, "covariance") for v in ("XYZ", "''", "3")},
    **{f"--set {v!r}": ([*FIT, "--set", v], 2, "--set must be KEY=VALUE") for v in ("", "=", "C", "=1", ".=1", "a.=1")},
    "a setting twice": ([*FIT, *ONE], 2, "--set n_components was given twice"),
    "a setting that is no literal": ([*FIT, "--set", "cv=[1, a]"], 2, "is not a Python literal"),
    "no such parameter": ([*FIT, "--set", "componets=2"], 2, "unknown parameter 'componets' of mixture; did you mean"),
    "no such group": (
        [*FIT, "--set", "serch.growth=x"],
        2,
        "unknown parameter 'serch' of mixture; did you mean 'search'",
    ),
    "a parameter of another's option": ([*FIT, "--set", "random_state=1"], 2, "--set random_state is not used: --seed"),
    **{
        f"--model {v!r}": ([*FIT, "--model", v], 2, f"unknown model '{v}'")
        for v in ("tree", "Stack", "boosting", "output-columns")
    },
    **{f"--seed {v}": ([*FIT, "--seed", v], 2, "--seed") for v in ("-1", "1.5", "x", "99999999999")},
    **{f"--jobs {v}": ([*FIT, "--jobs", v], 2, "--jobs") for v in ("0", "-1", "x")},
    **{f"--folds {v}": ([*COMPARE, "--folds", v], 2, "--folds") for v in ("1", "0", "x", "2.5")},
    "--folds 1000": ([*COMPARE, "--folds", "1000"], 1, "1000 folds need at least 1000 rows .*; lower folds"),
    **{f"--repeats {v}": ([*COMPARE, "--repeats", v], 2, "--repeats") for v in ("0", "-1", "x")},
    # models
    "an edge from no column": (
        of("med-bayes-net", "--set", "structure=z,c;"),
        1,
        "names a column 'z' that X does not have",
    ),
    "an edge to itself": (of("med-bayes-net", "--set", "structure=c,c;"), 1, "structure has a cycle"),
    "numbers and words in a sequence": (of("hmm"), 1, "all columns are steps of one variable"),
    **{
        f"bases {v!r}": (of("stack", "--set", f"estimators={v}"), 1, "estimators must be a list")
        for v in ("mixture", "joint", "[]")
    },
    "bases that do not exist": (of("stack", "--set", "estimators=z"), 2, "unknown model 'z'"),
    "bases that are no classifiers": (of("stack", "--set", "estimators=joint,mixture"), 2, "only classifiers"),
    "answers in no column": (of("stack", "--set", "estimators=[('v', 'z')]"), 1, "'z'"),
    "answers in the target": (of("stack", "--set", "estimators=[('v', 'y')]"), 1, "'y'"),
    "answers that are no probabilities": (
        of("stack", "--set", "estimators=[('v', ['x', 'c'])]"),
        1,
        "column 'c' must hold probabilities",
    ),
    **{f"a base {v!r}": (of("adaboost", "--set", f"estimator={v}"), 2, "unknown model") for v in ("''", "x")},
    "a stack without classes": (["fit", "good.csv", "-o", "m", "--model", "stack"], 2, "needs --target"),
    "a joint model with a target": (of("joint"), 2, "--target is only used with classifiers"),
    # novelty
    "novelty of a missing file": (["novelty", "none.csv", "-o", "m"], 1, "no such file: none.csv"),
    "novelty of no column": ([*NOVELTY, "--ignore", "x,c,y"], 1, "no column is left to fit; ignore fewer"),
    "novelty over its input": (["novelty", "good.csv", "-o", "good.csv"], 1, "it is an input of this command"),
    "novelty, a weight that is text": ([*NOVELTY, "--weight", "c"], 1, "must hold numbers"),
    **{f"novelty {n}": (["novelty", n, "-o", "m"], 1, m) for n, (_, m) in NO_TABLES.items()},
    **{
        f"novelty, contamination={v}": ([*NOVELTY, "--set", f"contamination={v}"], 1, "contamination must be")
        for v in ("-0.1", "0.6", "x")
    },
    **{f"novelty, C={v}": ([*NOVELTY, "--set", f"C={v}"], 1, "C must be") for v in ("0", "-1", "nan", "x", "''")},
    "novelty of sequences": ([*NOVELTY, "--set", "density=hmm"], 1, "all columns are steps of one variable"),
    "novelty twice": (["novelty", "good.csv", "good.csv", "-o", "m"], 2, "good.csv"),
    "score with costs": (
        ["predict", "{detector}", "new.csv", "-o", "out.csv", "--costs", "costs.csv"],
        2,
        "--costs is only used with models for classification",
    ),
    "score and keep what the output has": (
        ["predict", "{detector}", "scored.csv", "-o", "out.csv", "--keep-all"],
        1,
        "has a column 'score' too",
    ),
    "explain no such row of a detector": (["explain", "{detector}", "new.csv", "--row", "99"], 1, "got row 99"),
    "no such option": ([*FIT, "--nonsense"], 2, "--nonsense"),
    "no such command": (["nonsense"], 2, "nonsense"),
    "no data": (["fit", "-t", "y", "-o", "m"], 2, "DATA"),
    "no output": (["fit", "good.csv", "-t", "y"], 2, "--output"),
    "no target to compare by": (["compare", "good.csv"], 2, "--target"),
    "no model": (["info"], 2, "MODEL"),
    "two tables": (["fit", "good.csv", "good.csv", "-t", "y", "-o", "m"], 2, "good.csv"),
}

# name: arguments that write out.csv
PREDICTED = {
    "gaps, unseen and far out": PREDICT,
    "log density": [*PREDICT, "--density"],
    "priors of the table": [*PREDICT, "--adjust-priors"],
    "negative reject": [*PREDICT, "--reject", "-1"],
    "negative costs": [*PREDICT, "--costs", "costs_negative.csv"],
    "costs and reject": [*PREDICT, "--costs", "costs.csv", "--reject", "0.2"],
    "a column kept twice": [*PREDICT, "--keep", "x", "--keep", "x"],
    "columns the model does not know": ["predict", "{model}", "clash.csv", "-o", "out.csv"],
    "the training table": ["predict", "{model}", "good.csv", "-o", "out.csv"],
    "clusters": ["predict", "{clusters}", "new.csv", "-o", "out.csv"],
}

# name: arguments that write out.csv with scores
SCORED = {
    "a detector": ["predict", "{detector}", "new.csv", "-o", "out.csv"],
    "a detector that explains": ["predict", "{detector}", "new.csv", "-o", "out.csv", "--explain"],
    "a detector, all kept": ["predict", "{detector}", "new.csv", "-o", "out.csv", "--keep-all"],
    "columns the detector does not know": ["predict", "{detector}", "clash.csv", "-o", "out.csv", "--keep-all"],
}

# odd tables: fitted, then predicted
ROUND_TRIPS = {**{name: [] for name in FITS}, "zero_class.csv": ["--weight", "w"]}
