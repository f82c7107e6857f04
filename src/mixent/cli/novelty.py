"""`mixent novelty`: a table of typical rows in, a detector of others out; what it says of new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import Screen, grid, session, shown
from mixent.cli.data import check_output, read_data
from mixent.cli.fit import fit_with_bar
from mixent.cli.models import name_codes
from mixent.cli.parsing import one_of, read_prior, refuse_idle
from mixent.cli.summary import describe, show_model

MODELS = ("auto", "product", "tree", "gaussian", "mixture", "hmm")
MARGINS = ("exponential", "laplace", "gaussian")
MOST_ROWS, MOST_LOUD, MOST_PARTS = 10, 2, 15


def novelty(
    ctx: typer.Context,
    data: opt.Data,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="Model file to write.", show_default=False)
    ],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            metavar="NAME",
            help="What typical rows are: product (columns independent), tree (all trees at once), gaussian (numbers "
            "jointly), mixture (of such), hmm (each row is a sequence); auto: tree where all columns are categories, "
            "else gaussian.",
        ),
    ] = "auto",
    components: Annotated[
        int | None,
        typer.Option("--components", "-k", metavar="N", min=1, help="For mixture: its components; 3 unless given."),
    ] = None,
    states: Annotated[
        int | None, typer.Option("--states", metavar="N", min=1, help="For hmm: its states; 3 unless given.")
    ] = None,
    contamination: Annotated[
        float,
        typer.Option(metavar="SHARE", min=0.0, max=0.5, help="Share of the training rows that are called outliers."),
    ] = 0.05,
    objective: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="margin: the level set of typical rows; bayes: the Bayesian fit, to compare."
        ),
    ] = "margin",
    margin: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Prior of the margins: exponential (so unless given), laplace or gaussian."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            min=0.0,
            max=1.0,
            help="Every row is to be as probable as this quantile of the rows; 0.5 unless given.",
        ),
    ] = None,
    c: Annotated[
        str | None, typer.Option("--c", metavar="X", help="How often a row may count at most; 1 unless given.")
    ] = None,
    prior: Annotated[
        str, typer.Option("--prior", metavar="auto|X", help="Strength of the prior, in pseudo-rows; auto is 1.")
    ] = "auto",
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write an HTML page with pictures.")] = None,
    ignore: opt.Ignore = [],  # noqa: B006
    categorical: opt.Categorical = [],  # noqa: B006
    weight: opt.Weight = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Learn what typical rows look like, to find those that are not.

    No class is needed; rows of a table may be incomplete. `mixent predict` scores new rows: a low score is unlike
    what was seen, and below the threshold a row is called an outlier. `mixent explain` says which columns make it so.

    \b
    Examples:
      mixent novelty normal.csv -o detector.mixent
      mixent novelty normal.csv -o detector.mixent --model mixture -k 4 --report page.html
      mixent predict detector.mixent new.csv -o scored.csv
      mixent explain detector.mixent new.csv --row 0
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug) as screen:
        estimator = _detector(
            model, components, states, contamination, objective, margin, alpha, c, prior, list(categorical)
        )
        check_output(output, [data])
        if report is not None:
            check_output(report, [data, output], (".html", ".htm"))
        table = read_data(
            data, None, ignore=ignore, weight=weight, categorical=categorical, screen=screen, models=["novelty"]
        )
        name_codes(estimator, table.categorical, list(table.X.columns))  # as the columns are named
        for hint in table.hints:
            screen.say(shown(hint))
        seconds = fit_with_bar(screen, estimator, table)
        from mixent import save

        save(estimator, output)
        screen.say(f"Fitted {type(estimator).__name__} in {seconds:.1f} s")
        screen.say()
        show_model(screen, describe(estimator))
        _show_unusual(screen, estimator, table.X)
        screen.say(f"Wrote [bold]{shown(output)}[/] ({output.stat().st_size / 1000:.0f} kB)")
        if report is not None:
            from mixent.report import model_report

            model_report(
                report,
                estimator,
                table.X,
                title=f"Novelty in {data.name}",
                data_notes=table.notes,
                commands=ctx.obj or "",
            )
            screen.say(f"Wrote [bold]{shown(report)}[/]; open it in a browser")


def _detector(
    model: str,
    components: int | None,
    states: int | None,
    contamination: float,
    objective: str,
    margin: str | None,
    alpha: float | None,
    c: str | None,
    prior: str,
    categorical: list[str],
) -> Any:
    """The unfitted detector; what would have no effect is refused."""
    from mixent import MEDNoveltyDetector

    one_of("--model", model, MODELS)
    one_of("--objective", objective, ("margin", "bayes"))
    if margin is not None:
        one_of("--margin", margin, MARGINS)
    idle = "has no effect with --objective bayes; it serves --objective margin"
    bayes = objective == "bayes"
    refuse_idle(
        (
            components is not None and model != "mixture",
            f"--components has no effect with --model {model}; it serves --model mixture",
        ),
        (states is not None and model != "hmm", f"--states has no effect with --model {model}; it serves --model hmm"),
        (bayes and margin is not None, f"--margin {idle}"),
        (bayes and alpha is not None, f"--alpha {idle}"),
        (bayes and c is not None, f"--c {idle}"),
        (prior.lower() == "none", "--prior none cannot be: a table needs some rows; take auto or a number > 0"),
    )
    rows = read_prior(prior)
    options: dict[str, Any] = {
        "n_hidden": components or states,
        "margin": margin,
        "margin__quantile": alpha,
        "C": None if c is None else _often(c),
        "ess": None if rows == "auto" else rows,
    }
    options = {name: value for name, value in options.items() if value is not None}  # else the estimator's own
    detector = MEDNoveltyDetector(
        model, objective=objective, contamination=contamination, categorical=categorical or "auto"
    )
    return detector.set_params(**options)


def _often(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"--c must be a number > 0; got {text!r}")
    return value


def _show_unusual(screen: Screen, estimator: Any, X: Any) -> None:
    from mixent.med.describe_novelty import unusual_rows

    found = unusual_rows(estimator, X, MOST_ROWS)
    table = grid("row", "score")
    table.add_column("mostly by (column, its value, nats below the usual)", overflow="fold")
    for entry in found:
        table.add_row(str(entry["row"]), f"{entry['score']:.2f}", shown(_loudest(entry["columns"])))
    screen.say()
    screen.say("The most unusual training rows, numbered from 0:")
    screen.show(table)
    screen.say()


def _loudest(columns: list[dict[str, Any]]) -> str:
    told = [f"{c['column']} {c['value']} {c['below']:.1f}" for c in columns[:MOST_LOUD] if c["below"] > 0]
    return ", ".join(told) or "nothing by itself"


# --- new rows -------------------------------------------------------------------------------------------------------


def scored(fitted: Any, X: Any, *, explain: bool) -> dict[str, Any]:
    """Output columns by name."""
    import numpy as np

    score = fitted.score_samples(X)
    decision = score - fitted.offset_
    found = {"score": score, "decision": decision, "outlier": decision < 0}
    if explain:
        parts = fitted.contributions(X)
        names = np.array([column.name for column in fitted.schema_.columns], dtype=object)
        found |= {"feature": names[parts.argmin(axis=1)], "feature_part": parts.min(axis=1)}
    return found


def say_scored(screen: Screen, fitted: Any, found: dict[str, Any]) -> None:
    """How many rows lie outside."""
    score, outside = found["score"], int(found["outlier"].sum())
    screen.say(
        f"{count(len(score), 'row')}; {count(outside, 'outlier')} (score below {fitted.offset_:.4g}); "
        f"scores {score.min():.4g} to {score.max():.4g}, mean {score.mean():.4g}"
    )


def explain_scores(screen: Screen, fitted: Any, X: Any, rows: list[int], in_full: bool) -> list[dict[str, Any]]:
    """Print why rows score as they do; returns one entry for each row and column."""
    from mixent.base.text import row_texts

    found, parts, values = scored(fitted, X, explain=False), fitted.contributions(X), row_texts(X)
    names = [column.name for column in fitted.schema_.columns]
    if not in_full:
        say_scored(screen, fitted, found)
        screen.say("Choose a row with --row to see what each column adds, or write all with -o.")
    lines: list[dict[str, Any]] = []
    for i, n in enumerate(rows):
        head = {"row": n, "score": float(found["score"][i]), "outlier": bool(found["outlier"][i])}
        order = parts[i].argsort(kind="stable")
        lines += [head | {"column": names[j], "value": values[i][j], "part": float(parts[i, j])} for j in order]
        if not in_full:
            continue
        word = "an outlier" if head["outlier"] else "typical"
        above = f"{abs(found['decision'][i]):.3f} nats {'below' if head['outlier'] else 'above'} the threshold"
        screen.say(f"[bold]Row {n}: {word}[/], score {head['score']:.3f}, {above}")
        table = grid("column", "adds\nnats")
        table.add_column("value", overflow="fold")
        for j in order[:MOST_PARTS]:
            table.add_row(shown(names[j]), f"{parts[i, j]:+.3f}", shown(values[i][j]))
        if len(order) > MOST_PARTS:
            table.add_row(count(len(order) - MOST_PARTS, "other"), "", "")
        screen.show(table)
        screen.say()
    return lines
