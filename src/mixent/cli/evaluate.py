"""`mixent evaluate`: cross-validation, beside simple baselines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mixent.cli import options as opt
from mixent.cli.console import Screen, grid, session, shown
from mixent.cli.data import check_output, read_data, write_table
from mixent.cli.models import ENTROPIES, MIXTURES, Choices, make_models, name_codes
from mixent.cli.models_ensemble import ENSEMBLES, answer_columns, taken
from mixent.cli.models_med import KERNELS, QUANTILES

COLUMNS = {  # metric: (heading, factor, decimals)
    "error": ("error\n%", 100, 1),
    "balanced_error": ("balanced\nerror %", 100, 1),
    "log_loss": ("log-loss\nnats", 1, 3),
    "brier": ("Brier\nscore", 1, 3),
    "calibration": ("calib.\nerror %", 100, 1),
}


def evaluate(
    ctx: typer.Context,
    data: opt.Data,
    target: opt.Target,
    folds: Annotated[
        int, typer.Option(metavar="N", min=2, help="Parts the rows are cut into; each is predicted from the others.")
    ] = 5,
    repeats: Annotated[int, typer.Option(metavar="N", min=1, help="Times the whole is repeated with other folds.")] = 1,
    baselines: Annotated[bool, typer.Option(help="Show logistic regression and naive Bayes beside the model.")] = True,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page with pictures.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the scores of every fold: .csv, .tsv or .parquet."),
    ] = None,
    model: opt.Models = ["mixture"],  # noqa: B006
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
    ignore: opt.Ignore = [],  # noqa: B006
    categorical: opt.Categorical = [],  # noqa: B006
    weight: opt.Weight = None,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Cross-validate: how good is it on rows it has not seen?

    \b
    Examples:
      mixent evaluate iris.csv --target species
      mixent evaluate data.csv -t class --folds 10 --report report.html
      mixent evaluate data.csv -t class -k 1 --covariance EEE --no-baselines
      mixent evaluate data.csv -t class --model mixture --model shared --model maxent
      mixent evaluate data.csv -t class --model med --model med-gaussian --kernel rbf
      mixent evaluate data.csv -t class --model med-tree --model med-bayes-net
      mixent evaluate data.csv -t class --model stack --bases mixture,med-tree --model boost
      mixent evaluate series.csv -t class --model hmm --states 4   (a sequence per row)
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        chosen = Choices.typed_in(ctx.params)
        made = make_models(model, chosen, target=target, categorical=categorical, seed=seed, jobs=jobs)
        _check_outputs(data, report, output)
        table = read_data(
            data,
            target,
            ignore=ignore,
            weight=weight,
            categorical=categorical,
            screen=screen,
            models=model,
            shares=answer_columns(outputs),
        )
        for estimator in made.values():
            name_codes(estimator, table.categorical, list(table.X.columns))  # as the columns are named
        if "joint" in made:
            from mixent.cli.joint import JointClassifier

            made["joint"] = JointClassifier(made["joint"], target)
        ours = {"mixent " + kind: estimator for kind, estimator in made.items()}
        notes = [*table.notes, *_two_meanings(model, chosen)]
        for note in notes[len(table.notes) :]:
            screen.say(shown(note))
        from mixent.cli.baselines import baselines as simple
        from mixent.evaluate import cross_validate

        methods = {**ours, **(simple(table.categorical or "auto") if baselines else {})}
        with screen.progress("cross-validation") as show:
            cv = cross_validate(
                methods,
                table.X,
                table.y,
                folds=folds,
                repeats=repeats,
                random_state=seed,
                sample_weight=table.weight,
                progress=show,
            )
        show_scores(screen, cv)
        if output is not None:
            write_scores(screen, cv, output)
            screen.say(f"Wrote [bold]{shown(output)}[/]")
        if report is not None:
            from mixent.report import Section, write_report
            from mixent.report.data import columns_section, problems_section
            from mixent.report.results import out_of_fold, result_sections
            from mixent.report.scores import bounds, methods_table
            from mixent.report.sections import reproduce

            sections = [Section("Scores", [methods_table(cv)]), Section("Observed and expected errors", bounds(cv))]
            sections += [Section("Columns", columns_section(table.X))]
            sections += [Section("Data problems", problems_section(table.X, None, notes))]
            sections += result_sections([out_of_fold(cv, name) for name in cv.ranking()])
            write_report(report, f"{target} in {data.name}", [*sections, reproduce(ctx.obj or "", cv.random_state)])
            screen.say(f"Wrote [bold]{shown(report)}[/]; open it in a browser")


def _two_meanings(models: list[str], chosen: Choices) -> list[str]:
    """A number is not the same thing for all models: say so where they are compared."""
    kinds, notes = set(models), []
    if chosen.components.lower() != "auto" and kinds >= set(MIXTURES):
        k = chosen.components
        notes.append(f"--components {k}: mixent mixture has {k} for each class, mixent shared {k} in all.")
    if chosen.components.lower() != "auto" and kinds & set(MIXTURES) and "med-tree" in kinds:
        notes.append(f"--components {chosen.components}: of mixtures, and trees of each class of mixent med-tree.")
    counted = {"a mixture": kinds & set(MIXTURES)}
    counted |= {f"mixent {kind}": kinds & {kind} for kind in (*QUANTILES, "hmm")}
    combined = [kind for kind in ENSEMBLES if kind in kinds and "--prior" in taken(kind, chosen)]
    multiplied = [kind for kind in dict.fromkeys(models) if kind in (*ENTROPIES, *combined)]
    if chosen.prior.lower() not in ("auto", "none") and any(counted.values()) and multiplied:
        rows = " and of ".join(name for name, there in counted.items() if there)
        others = " and ".join("mixent " + kind for kind in multiplied)
        notes.append(f"--prior {chosen.prior}: pseudo-rows of {rows}, the variance of the multipliers of {others}.")
    if chosen.latent is not None and "maxent" in kinds and combined:
        told = f"what numbers become in mixent maxent, and where a row lies for mixent {' and '.join(combined)}"
        notes.append(f"--latent {chosen.latent}: {told}.")
    asking = " and ".join("mixent " + kind for kind in QUANTILES if kind in kinds)
    if chosen.alpha is not None and chosen.objective == "conditional" and kinds & set(MIXTURES) and asking:
        told = f"what a mixture is trained for, and the quantile of the margins {asking} asks for"
        notes.append(f"--alpha {chosen.alpha:g}: {told}.")
    if chosen.n_features is not None and kinds >= set(KERNELS):
        notes.append(f"--n-features {chosen.n_features}: in place of the kernel, and components of the kernel's space.")
    if chosen.max_components is not None and kinds & set(MIXTURES) and kinds & set(ENTROPIES):
        notes.append(f"--max-components {chosen.max_components}: of a model of rows, and of each column's mixture.")
    return notes


def _check_outputs(data: Path, report: Path | None, output: Path | None) -> None:
    from mixent.data.files import ENDINGS

    if report is not None:
        check_output(report, [data], (".html", ".htm"))
    if output is not None:
        check_output(output, [data], ENDINGS)


def show_scores(screen: Screen, cv: Any) -> None:
    """Print the table of scores, best method first, and the failures."""
    repeats, folds = len(cv.folds), int(cv.folds.max()) + 1
    often = f", {repeats} times" if repeats > 1 else ""
    screen.say()
    screen.say(f"{folds}-fold cross-validation{often}: mean ± sd over the folds, lower is better")
    if cv.sample_weight is not None:
        screen.say("Rows are weighted, in fitting and in every score.")
    screen.say()
    means = {(entry["method"], entry["metric"]): entry for entry in cv.summary()}
    ranking = cv.ranking()
    best = {metric: min((means[m, metric]["mean"] for m in ranking), default=None) for metric in COLUMNS}
    table = grid("\nmethod", *(heading for heading, _, _ in COLUMNS.values()))
    for method in [*ranking, *(m for m in cv.methods if m not in ranking)]:
        table.add_row(shown(method), *(_score(means[method, metric], metric, best[metric]) for metric in COLUMNS))
    screen.show(table)
    screen.say()
    for method, message in cv.failures.items():
        screen.warn(f"{method} failed: {message}")


def _score(entry: dict[str, Any], metric: str, best: float | None) -> str:
    _, factor, digits = COLUMNS[metric]
    mean, sd = entry["mean"], entry["sd"]
    if mean != mean:
        return "failed"
    text = f"{factor * mean:.{digits}f}" + (f" ± {factor * sd:.{digits}f}" if sd == sd else "")
    return f"[bold green]{text}[/]" if mean == best else text


def write_scores(screen: Screen, cv: Any, path: Path) -> None:
    """Write one row per method, repeat and fold."""
    import pandas as pd

    write_table(screen, pd.DataFrame(cv.records), path)
