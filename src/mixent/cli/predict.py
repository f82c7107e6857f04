"""`mixent predict`: a model and a table in, probabilities out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mixent.base.text import count
from mixent.cli import options as opt
from mixent.cli.console import Screen, named, session, shown
from mixent.cli.data import (
    STDOUT,
    check_output,
    harmless,
    listed,
    names_of,
    need_columns,
    read_for,
    read_table,
    schema_of,
    write_table,
)


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="Model file written by `mixent fit`, `novelty` or `fuse`.", show_default=False
        ),
    ],
    data: opt.Data,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Table to write: .csv, .tsv or .parquet; - prints CSV." + opt.ESCAPED,
            show_default=False,
        ),
    ],
    keep: Annotated[
        list[str],
        typer.Option(
            "--keep",
            metavar="COL",
            help="Input column to copy to the output, or several as A,B; repeat for more.",
            show_default=False,
        ),
    ] = [],  # noqa: B006
    keep_all: Annotated[bool, typer.Option("--keep-all", help="Copy all input columns.")] = False,
    proba: Annotated[bool, typer.Option(help="Write a probability per class.")] = True,
    costs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Table of costs: a row per decision (named in the first column), a column per true class.",
        ),
    ] = None,
    reject: Annotated[
        float | None,
        typer.Option(metavar="COST", help="Cost of not deciding; rows that would cost more are left undecided."),
    ] = None,
    adjust_priors: Annotated[
        bool, typer.Option("--adjust-priors", help="Estimate the class priors of this table first.")
    ] = False,
    density: Annotated[
        bool, typer.Option("--density", help="Write the log density: low is unlike anything in training.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Write the strongest other class (rival), the log-odds against it in nats, the component (or feature) "
            "that speaks loudest for the predicted class, and its part of the log-odds. Of a novelty detector: the "
            "column that lowers the score most, and by how much. Of a fusion: the source that speaks loudest. More: "
            "mixent explain.",
        ),
    ] = False,
    target: Annotated[
        str | None,
        typer.Option(
            "--target", "-t", metavar="COL", help="For a model of --model joint: the column to predict; else its last."
        ),
    ] = None,
    sequence: opt.Sequence = None,
    quiet: opt.Quiet = False,
    debug: opt.Debug = False,
) -> None:
    """Predict classes and probabilities for new rows; with a model of `mixent novelty`, find those that are unlike it.

    Columns are found by name; those the model does not know are ignored. Missing cells and categories never seen in
    training are fine.

    \b
    Examples:
      mixent predict iris.mixent new.csv -o out.csv
      mixent predict m.mixent new.csv -o out.parquet --keep id --density
      mixent predict m.mixent new.csv -o out.csv --costs costs.csv --reject 0.2
      mixent predict m.mixent new.csv -o - | head
      mixent predict table.mixent new.csv -o out.csv --target colour   (a model of --model joint)
      mixent predict detector.mixent new.csv -o scored.csv --explain   (a model of mixent novelty)
      mixent predict fusion.mixent votes.csv -o out.csv                (a model of mixent fuse)

    A novelty detector writes three columns: score (the expected log-probability, nats), decision (the score less the
    threshold) and outlier (whether that is negative).

    With --costs or --reject the table has two answers: `predicted` is the most probable class; `decision` is the class
    whose expected cost is lowest, blank where not deciding is cheaper (`rejected` is true there).

    \b
    costs.csv:   said,benign,malignant
                 benign,0,10
                 malignant,1,0
    """  # noqa: D301  (typer needs the backspace itself)
    with session(quiet=quiet, debug=debug, to_stderr=output == STDOUT) as screen:
        from mixent import load
        from mixent.data.files import ENDINGS

        if reject is not None and not abs(reject) < float("inf"):
            raise typer.BadParameter(f"--reject must be a finite cost; got {reject}")
        if output != STDOUT:
            check_output(output, [model, data], ENDINGS)
        fitted = load(model)
        given: dict[str, Any] = {"--costs": costs, "--reject": reject, "--adjust-priors": adjust_priors or None}
        given |= {"--density": density or None, "--explain": explain or None, "--target": target}
        given |= {"--sequence": sequence, "--no-proba": None if proba else True}
        if hasattr(fitted, "offset_"):
            idle = {name: value for name, value in given.items() if name != "--explain"}
            _refuse(f"has no effect: {model} holds a novelty detector, which writes a score for each row", idle)
            _score_rows(screen, fitted, data, output, None if keep_all else keep, explain)
            return
        if hasattr(fitted, "rule_"):
            idle = {name: given[name] for name in ("--costs", "--reject", "--density", "--target", "--sequence")}
            _refuse(f"has no effect: {model} holds a fusion of sources", idle)
            _fuse_rows(screen, fitted, data, output, None if keep_all else keep, proba, adjust_priors, explain)
            return
        _check_serves(fitted, model, given)
        joint, steps = hasattr(fitted, "terms_"), not getattr(fitted, "by_row_", True)
        frame = read_for(fitted, data, [str(sequence)] if steps else [])
        keep = names_of(keep, frame.columns)
        need_columns(data, frame.columns, keep)
        if joint:
            target = _wanted(fitted, target, model)
        X = model_columns(fitted, frame, data, absent=target)
        if steps:
            need_columns(data, frame.columns, [str(sequence)])
            fitted, X, frame = _of_sequences(fitted, X, frame, str(sequence))
            _refuse(
                "cannot be with --sequence, where a line is a sequence; name columns by --keep",
                {"--keep-all": keep_all or None},
            )
            keep = [*dict.fromkeys([str(sequence), *keep])]
        if adjust_priors:
            fitted = fitted.adjust_priors(X)
            _say_priors(screen, fitted.classes_, fitted.class_prior_)
        cost_table = None if costs is None else _read_costs(costs, fitted.classes_)
        found = (
            _of_column(fitted, X, target, proba)
            if joint
            else _predictions(
                fitted,
                X,
                proba=proba,
                costs=cost_table,
                reject=reject,
                decide=costs is not None or reject is not None,
                density=density,
                explain=explain,
            )
        )
        kept = frame[keep] if steps else _kept(frame, data, output, None if keep_all else keep)
        _check_clash(data, found, kept)
        _write(screen, kept, found, output, fitted.values(target) if joint else getattr(fitted, "classes_", ()))
        _say(screen, found, output)


def _check_serves(fitted: Any, model: Path, given: dict[str, Any]) -> None:
    """Refuse a model that predicts no classes, and options it has no use for."""
    kind, joint = type(fitted).__name__, hasattr(fitted, "terms_")
    if not hasattr(fitted, "predict_proba"):
        raise ValueError(
            f"{model} holds a {kind}, which predicts nothing by itself; fit a classifier with it: "
            "--model med --kernel fisher"
        )
    if hasattr(fitted, "chain_"):
        raise ValueError(
            f"{model} holds a {kind}, which has no classes to predict; fit a classifier of "
            "sequences: give `mixent fit` --model hmm and a --target"
        )

    def refuse(told: str, *names: str) -> None:
        _refuse(told, {name: given[name] for name in names})

    if not hasattr(fitted, "classes_"):
        told = f"needs a classifier; {model} holds {'a joint model' if joint else 'clusters'}"
        refuse(told, "--costs", "--reject", "--adjust-priors", "--explain")
    if joint or not hasattr(fitted, "score_samples"):
        refuse(f"needs a mixture; {model} holds a {kind}, which has no density", "--density")
    if not hasattr(fitted, "explain"):
        refuse(f"needs a mixture, --model maxent or stack; {model} holds a {kind}, which explains nothing", "--explain")
    if not joint:
        refuse(f"has no effect: {model} predicts one thing; it serves --model joint", "--target")
    if getattr(fitted, "by_row_", True):
        refuse(f"has no effect: {model} was fitted without --sequence", "--sequence")
    elif given["--sequence"] is None:
        raise typer.BadParameter(f"--sequence is needed: {model} was fitted to a row for each step of a sequence")


def _score_rows(screen: Screen, fitted: Any, data: Path, output: Path, keep: list[str] | None, explain: bool) -> None:
    """The table of a novelty detector; `keep` None: all columns."""
    from mixent.cli.novelty import say_scored, scored

    frame = read_for(fitted, data)
    if keep is not None:
        keep = names_of(keep, frame.columns)
        need_columns(data, frame.columns, keep)
    found = scored(fitted, model_columns(fitted, frame, data), explain=explain)
    kept = _kept(frame, data, output, keep)
    _check_clash(data, found, kept)
    _write(screen, kept, found, output, ())
    say_scored(screen, fitted, found)
    if output != STDOUT:
        screen.say(f"Wrote [bold]{shown(output)}[/]")


def _say_priors(screen: Screen, classes: Any, priors: Any) -> None:
    told = ", ".join(f"{named(c)}: {p:.3f}" for c, p in zip(classes, priors))
    screen.say(f"Class priors of this table: {told}")


def _fuse_rows(
    screen: Screen,
    fitted: Any,
    data: Path,
    output: Path,
    keep: list[str] | None,
    proba: bool,
    adjust: bool,
    explain: bool,
) -> None:
    """The table of a fusion: answers of the sources in columns, the class and its probabilities out."""
    from mixent.cli.answers import need_sources, read_wide
    from mixent.cli.fuse import fused_columns

    layout = fitted._fitted_layout
    calibrations = dict(zip(layout.names, layout.calibrations))
    frame = read_wide(data, calibrations)
    if keep is not None:
        keep = names_of(keep, frame.columns)
        need_columns(data, frame.columns, keep)
    if all(source.columns is None for source in layout.sources):
        need_sources(data, list(frame.columns), calibrations, "; one that was silent needs a blank column")
    if adjust:
        fitted.update_prior(frame)
        _say_priors(screen, fitted.classes_, fitted.prior_)
    found = fused_columns(fitted, fitted.predict_proba(frame))
    if not proba:
        found = {"predicted": found["predicted"]}
    if explain:
        found |= _loudest_source(fitted, frame)
    kept = _kept(frame, data, output, keep)
    _check_clash(data, found, kept)
    _write(screen, kept, found, output, fitted.classes_)
    _say(screen, found, output)


def _loudest_source(fitted: Any, frame: Any) -> dict[str, Any]:
    """The strongest other class, the log-odds against it, and the source that speaks loudest for the class."""
    import numpy as np

    parts = fitted.explain(frame)  # (n, J + 1, K)
    log_p = parts.sum(axis=1)
    order = np.argsort(-log_p, axis=1, kind="stable")
    row = np.arange(len(parts))
    odds = parts[row, :, order[:, 0]] - parts[row, :, order[:, 1]]  # (n, J + 1)
    names = np.array([*fitted._fitted_layout.names, "priors"], dtype=object)
    loudest = odds.argmax(axis=1)
    labels = fitted.classes_.astype(object)
    return {
        "rival": labels[order[:, 1]],
        "log_odds": odds.sum(axis=1),
        "source": names[loudest],
        "source_part": odds[row, loudest],
    }


def _of_sequences(fitted: Any, X: Any, frame: Any, name: str) -> tuple[Any, Any, Any]:
    """The model as one of whole sequences, the sequences, and the first step of each, in the order they appear."""
    import numpy as np
    import pandas as pd

    from mixent.cli.data import sequence_ids

    groups = sequence_ids(frame[name], name)
    first = np.unique(pd.factorize(groups)[0], return_index=True)[1]
    return Whole(fitted, groups), X, frame.iloc[first]


class Whole:
    """A model of sequences that is asked about the sequences of one table."""

    def __init__(self, model: Any, groups: Any) -> None:
        self.model, self.groups = model, groups
        self.classes_, self.class_prior_ = model.classes_, model.class_prior_

    def predict_proba(self, X: Any) -> Any:
        return self.model.predict_proba(X, groups=self.groups)

    def score_samples(self, X: Any) -> Any:
        return self.model.score_samples(X, groups=self.groups)

    def decision(self, X: Any, costs: Any, *, reject: float | None) -> Any:
        return self.model.decision(X, costs, reject=reject, groups=self.groups)

    def adjust_priors(self, X: Any) -> Whole:
        return Whole(self.model.adjust_priors(X, groups=self.groups), self.groups)


def _check_clash(data: Path, found: dict[str, Any], kept: Any) -> None:
    clash = [name for name in found if name in kept.columns]
    if clash:
        raise ValueError(f"{data} has a column {clash[0]!r} too, as the output has; rename it, or do not keep it")


def _refuse(why: str, given: dict[str, Any]) -> None:
    option = next((name for name, value in given.items() if value is not None), None)
    if option:
        raise typer.BadParameter(f"{option} {why}")


def _wanted(fitted: Any, target: str | None, model: Path) -> str:
    """The column a joint model is to predict."""
    names = list(fitted.schema_.names)
    if target is None:
        return names[-1]
    need_columns(model, names, [target])
    return target


def _of_column(fitted: Any, X: Any, target: str | None, proba: bool) -> dict[str, Any]:
    """Output columns by name: the target's most probable (or expected) value, and probabilities of its values."""
    found = {"predicted": fitted.predict(X, target=target)}
    if proba:
        values = fitted.values(target).tolist()
        names = [f"p({v:.4g})" if isinstance(v, float) else f"p({v})" for v in values]
        found |= dict(zip(names, fitted.predict_proba(X, target=target).T))
    return found


def model_columns(fitted: Any, frame: Any, path: Path, absent: str | None = None) -> Any:
    """The columns of the model, in its order; `absent` may be missing from the table: it is not looked at."""
    schema = schema_of(fitted)
    names = list(schema.names)
    if absent is not None and absent not in frame.columns:
        frame = frame.assign(**{absent: None})
    need_columns(path, frame.columns, names)
    X = frame[names]
    return X if schema.named else X.to_numpy(dtype=object if schema.categorical else float, na_value=float("nan"))


def _read_costs(path: Path, classes: Any) -> Any:
    """The matrix costs[said, true] in the model's order of classes."""
    import numpy as np

    table = read_table(path)
    names = [str(c) for c in classes]
    said = [str(value) for value in table.iloc[:, 0]]
    for what, have in (("row", said), ("column", list(table.columns[1:]))):
        if sorted(have) != sorted(names):
            raise ValueError(f"{path}: needs one {what} for each class {listed(names)}; has {listed(have)}")
    try:
        values = table[names].to_numpy(dtype=float, na_value=float("nan"))
    except (TypeError, ValueError):
        values = np.full((1, 1), np.nan)
    if not np.isfinite(values).all():
        raise ValueError(f"{path}: every cost must be a finite number")
    return values[[said.index(name) for name in names]]


def _predictions(
    fitted: Any, X: Any, *, proba: bool, costs: Any, reject: float | None, decide: bool, density: bool, explain: bool
) -> dict[str, Any]:
    """Output columns by name."""
    is_classifier = hasattr(fitted, "classes_")
    probabilities = fitted.predict_proba(X)
    labels = fitted.classes_ if is_classifier else range(probabilities.shape[1])
    best = probabilities.argmax(axis=1)
    found: dict[str, Any] = {"predicted": fitted.classes_[best]} if is_classifier else {"component": best}
    if decide:
        decision = fitted.decision(X, costs, reject=reject)
        found |= {"decision": decision.labels, "expected_cost": decision.expected_cost, "rejected": decision.rejected}
    if proba:
        found |= {f"p({label})": probabilities[:, j] for j, label in enumerate(labels)}
    if density:
        found["log_density"] = fitted.score_samples(X)
    return found | _explanation(fitted, X) if explain else found


def _explanation(fitted: Any, X: Any) -> dict[str, Any]:
    import numpy as np

    why = fitted.explain(X)
    found = {"rival": why.rival, "log_odds": why.log_odds}
    if why.by == "component":
        return found | {"component": why.parts.argmax(axis=1), "component_part": why.parts.max(axis=1)}
    if not why.names:
        return found
    names = np.array(why.names, dtype=object)
    return found | {"feature": names[why.parts.argmax(axis=1)], "feature_part": why.parts.max(axis=1)}


def _kept(frame: Any, data: Path, output: Path, names: list[str] | None) -> Any:
    """Input columns (None: all) for the output; from text to text, as they are written."""
    from mixent.data import read_cells

    names = list(frame.columns) if names is None else names
    cells = None if not names or output.suffix.lower() == ".parquet" else read_cells(data)
    return (frame if cells is None else cells)[names]


def _write(screen: Screen, kept: Any, found: dict[str, Any], output: Path, labels: Any) -> None:
    import pandas as pd

    frame = pd.concat([kept.reset_index(drop=True), pd.DataFrame(found)], axis=1)
    write_table(screen, frame, output, harmless(labels))


def _say(screen: Screen, found: dict[str, Any], output: Path) -> None:
    first, values = next(iter(found.items()))
    n_rows = count(len(values), "row")
    if "rejected" in found:
        first, values = "decided", found["decision"][~found["rejected"]]
    if getattr(values, "dtype", None) is not None and values.dtype.kind == "f":
        screen.say(f"{n_rows}; {first}: {values.min():.4g} to {values.max():.4g}, mean {values.mean():.4g}")
        values = values[:0]
    tally: dict[Any, int] = {}
    for value in values.tolist():
        tally[value] = tally.get(value, 0) + 1
    top = sorted(tally.items(), key=lambda item: -item[1])
    clusters = first == "component"
    told = [f"{shown(label) if clusters else named(label)}: {n}" for label, n in top[:10]] + ["..."] * (len(top) > 10)
    if "rejected" in found:
        told.append(f"undecided: {int(found['rejected'].sum())}")
    if told:
        screen.say(f"{n_rows}; {first}{'' if clusters else ':'} {', '.join(told)}")
    if "rejected" in found:
        screen.say(f"Expected cost per row {found['expected_cost'].mean():.3g}")
    if output != STDOUT:
        screen.say(f"Wrote [bold]{shown(output)}[/]")
