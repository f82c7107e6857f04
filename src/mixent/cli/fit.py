"""`mixent fit`: a table in, a model file out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import Screen, grid, named, session, shown
from mixent.cli.data import Data, check_output, gathered, parts, read_data
from mixent.cli.models import Choices, make_models, name_codes
from mixent.cli.models_ensemble import BASELINES, ENSEMBLES, answer_columns, bases_of, check_can_save
from mixent.cli.summary import describe, show_model


def fit(
    ctx: typer.Context,
    data: opt.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Model file to write.", show_default=False)
    ],
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="COL",
            help="Column of class labels; without it, clusters are fitted. Not for --model joint.",
        ),
    ] = None,
    model: opt.Model = "mixture",
    components: opt.Components = "auto",
    covariance: opt.Covariance = "auto",
    prior: opt.PriorRows = "auto",
    objective: opt.Objective = None,
    alpha: opt.Alpha = None,
    validation: opt.Validation = None,
    growth: opt.Growth = "restart",
    select: opt.Select = None,
    max_components: opt.MaxComponents = None,
    per_class: opt.PerClass = False,
    latent: opt.Latent = None,
    bins: opt.Bins = None,
    n_bins: opt.NumberOfBins = None,
    no_means: opt.NoMeans = False,
    groups: opt.Groups = None,
    pairs: opt.Pairs = None,
    selection: opt.Selection = None,
    solver: opt.Solver = None,
    probabilistic: opt.Probabilistic = [],  # noqa: B006
    kernel: opt.Kernel = None,
    c: opt.Bound = None,
    margin: opt.Margin = None,
    bias: opt.Bias = None,
    gamma: opt.Gamma = None,
    degree: opt.Degree = None,
    calibration: opt.CalibrationName = None,
    n_features: opt.NumberOfFeatures = None,
    bandwidth: opt.Bandwidth = None,
    shrinkage: opt.Shrinkage = None,
    structure: opt.Structure = None,
    tables: opt.Tables = None,
    numbers: opt.Numbers = None,
    states: opt.States = None,
    topology: opt.Topology = None,
    transitions: opt.Transitions = None,
    bases: opt.Bases = None,
    outputs: opt.Outputs = [],  # noqa: B006
    base: opt.Base = None,
    stages: opt.Stages = None,
    combine: opt.Combine = None,
    constraints: opt.ConstraintsName = None,
    decisions: opt.Decisions = None,
    sequence: opt.Sequence = None,
    ignore: opt.Ignore = [],  # noqa: B006  (typer reads it, nobody writes it)
    categorical: opt.Categorical = [],  # noqa: B006
    weight: opt.Weight = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Fit a classifier to a table and save it. To find rows that are unlike the others: mixent novelty.

    Text columns are categories; empty cells, NA and ? are missing and need no filling in. Rows whose target cell is
    blank are used as unlabelled rows.

    \b
    Examples:
      mixent fit iris.csv --target species -o iris.mixent
      mixent fit data.csv -t class -o m.mixent --ignore id --categorical zip
      mixent fit data.csv -t class -o m.mixent -k 1 --covariance VVV   (QDA)
      mixent fit data.csv -t class -o m.mixent --model shared -k 6 --objective conditional
      mixent fit data.csv -t class -o m.mixent --model maxent --select forward
      mixent fit data.csv -t class -o m.mixent --model med --kernel rbf
      mixent fit data.csv -t class -o m.mixent --model kernel-fisher
      mixent fit data.csv -t class -o m.mixent --model med-tree --tables integrated
      mixent fit data.csv -t class -o m.mixent --model med-bayes-net --structure "age,dose;sex,dose"
      mixent fit data.csv -t class -o m.mixent --model stack --bases mixture,maxent,med-tree
      mixent fit data.csv -t class -o m.mixent --model stack --outputs "vendor=p_no,p_yes" --bases mixture
      mixent fit data.csv -t class -o m.mixent --model boost --stages 20
      mixent fit series.csv -t class -o m.mixent --model hmm --states 4   (a sequence per row)
      mixent fit steps.csv -t class -o m.mixent --model hmm --sequence id  (a step per row)
      mixent fit data.csv -o clusters.mixent             (no target: clusters)
      mixent fit data.csv -o table.mixent --model joint  (any column from the others)
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        chosen = Choices.typed_in(ctx.params)
        if model == "joint" and target is not None:
            raise typer.BadParameter(
                "--target has no effect with --model joint, which predicts any column: give it to `mixent predict`"
            )
        if model == "novelty":
            raise typer.BadParameter("--model novelty is a command of its own: mixent novelty DATA -o FILE")
        if sequence is not None and model != "hmm":
            raise typer.BadParameter(f"--sequence has no effect with --model {model}; it serves --model hmm")
        estimator = make_models([model], chosen, target=target, categorical=categorical, seed=seed, jobs=jobs)[model]
        if model in ENSEMBLES:
            check_can_save(bases_of(model, chosen))
        check_output(output, [data])
        table = read_data(
            data,
            target,
            ignore=ignore,
            weight=weight,
            categorical=categorical,
            screen=screen,
            models=[model],
            text=[] if sequence is None else [sequence],
            shares=[
                *(name for text in probabilistic for name in parts(text.partition("=")[2])),
                *answer_columns(outputs),
            ],
        )
        codes = [name for name in table.categorical if name != sequence]  # as the columns are named
        name_codes(estimator, codes, list(table.X.columns))
        for hint in table.hints:
            screen.say(shown(hint))
        if target is None and model != "joint":
            screen.say("No --target: fitting clusters (a mixture without classes).")
        if sequence is not None:
            table = gathered(data, table, sequence, str(target))
            screen.say(f"{count(len(table.y), 'sequence')}: rows with the same {shown(sequence)}")
        seconds = fit_with_bar(screen, estimator, table)
        from mixent import save

        save(estimator, output, foreign="skops" if set(bases_of(model, chosen)) & set(BASELINES) else None)
        screen.say(f"Fitted {type(estimator).__name__} in {seconds:.1f} s")
        screen.say()
        show_model(screen, describe(estimator), _class_rows(table))
        _say_search(screen, estimator)
        if target is not None:
            _say_training(screen, estimator, table)
        if model == "joint":
            _say_columns(screen, estimator, table)
        screen.say(f"Wrote [bold]{shown(output)}[/] ({output.stat().st_size / 1000:.0f} kB)")


def fit_with_bar(screen: Screen, estimator: Any, table: Data) -> float:
    """Fit under a progress bar; the seconds it took."""
    began = time.perf_counter()
    X, y, weight = table.X, table.y, table.weight
    more = {} if table.groups is None else {"groups": table.groups}
    if y is not None and type(estimator).__name__ == "HMMClassifier":  # it needs the label of every row
        from mixent.evaluate import labelled_rows

        known = labelled_rows(y)
        steps = known if table.groups is None else table.y_of_steps(known)
        X, y, weight = X[steps], y[known], None if weight is None else weight[known]
        more = {} if table.groups is None else {"groups": table.groups[steps]}
    with screen.progress("fitting") as show:
        estimator.set_params(progress=show)
        estimator.fit(X, y, sample_weight=weight, **more)
    estimator.set_params(progress=False)  # a model file holds no screens
    return time.perf_counter() - began


def _class_rows(table: Data) -> dict[Any, float] | None:
    if table.y is None:
        return None
    counts: dict[Any, float] = {}
    for value in table.y.dropna().tolist():
        counts[value] = counts.get(value, 0) + 1
    return counts


def _say_search(screen: Screen, estimator: Any) -> None:
    from mixent.mixtures.options import by_likelihood

    search = getattr(estimator, "search_", None)
    if not search:
        return
    by = estimator._group("search").criterion if hasattr(estimator, "search") else "cv"
    best = [entry for entry in search if entry.get("chosen")] or search[:1]
    tried, first = count(len(search), "model"), best[0]
    if "log_loss" in first:
        text = f"Chosen among {tried} by cross-validation inside the training rows"
        if hasattr(estimator, "search") and estimator._group("search").nested is not None:
            text = (
                f"Chosen among {tried} that {by.upper()} picked in {count(first['folds'], 'fold')}, by held-out error"
            )
        text += f": log-loss {first['log_loss']:.3f} nats, error {first['error']:.1%}"
    elif "class" in first:
        taken = ", ".join(f"{named(e['class'])}: {e['n_components']} {e['covariance']}" for e in best)
        text = f"Chosen for each class, among {tried} in all, by {by.upper()} (lower is better): {taken}"
    else:
        name = "-2 x held-out log density" if by == "cv" else by.upper()
        text = f"Chosen among {tried} by {name} ({first[by]:.6g}; lower is better)"
    if not by_likelihood(getattr(estimator, "training", "likelihood")) and not _scored_as_trained(estimator):
        text += "; this was before the training that followed"
    screen.say(text)


def _scored_as_trained(estimator: Any) -> bool:
    """Cross-validation trains shared components in every fold; all else chooses likelihood solutions."""
    return estimator._group("search").criterion == "cv" and isinstance(estimator.covariance_, str)


def _say_training(screen: Screen, estimator: Any, table: Data) -> None:
    from mixent.evaluate import labelled_rows, score_table

    known = labelled_rows(table.y)
    more = {} if table.groups is None else {"groups": table.groups}
    proba = estimator.predict_proba(table.X, **more)[known]
    weight = None if table.weight is None else table.weight[known]
    if weight is not None and not weight.sum() > 0:
        return
    score = score_table(table.y[known], proba, estimator.classes_, weight)
    screen.say(
        f"On the training rows (too rosy; see mixent evaluate): log-loss {score['log_loss']:.3f} nats, "
        f"error {score['error']:.1%}"
    )


def _say_columns(screen: Screen, estimator: Any, table: Data, most: int = 30) -> None:
    """How well each column is predicted from the others, on the training rows."""
    found = estimator.accuracy_by_column(table.X)
    rows = grid("column", "known", "error %", "variance explained %")
    for name, score in list(found.items())[:most]:
        error = "" if score.error is None else f"{100 * score.error:.1f}"
        explained = "" if score.r2 is None else f"{100 * score.r2:.1f}"
        rows.add_row(shown(name), str(score.n_rows), error, explained)
    screen.say()
    screen.say("Each column from all others, on the training rows (too rosy):")
    screen.show(rows)
    if len(found) > most:
        screen.say(f"... and {len(found) - most} more")
