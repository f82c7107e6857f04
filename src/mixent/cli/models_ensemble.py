"""From the options of a command to ensembles: classifiers that are combined, and boosting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from mixent.cli.parsing import one_of, read_prior, refuse_idle

if TYPE_CHECKING:
    from mixent.cli.models import Choices

BOOSTINGS = ("boost", "weightboost")
ENSEMBLES = ("stack", *BOOSTINGS)
USUAL = ("mixture", "maxent", "med")  # bases of a stack
BASELINES = {"logistic": "logistic regression", "naive-bayes": "naive Bayes"}  # scikit-learn's
NO_BASES = ("joint", "stack")
OWN = {  # what takes which options for itself; the others are for its bases
    "maxent": ("latent", "constraints", "decisions", "prior", "solver", "max_components"),
    "hmm": ("decisions", "transitions"),
    "votes": (),
}
ALWAYS_OWN = ("bases", "outputs", "base", "stages", "combine")
WORDS = {
    "--constraints": ("full", "diagonal"),
    "--decisions": ("auto", "soft", "hard"),
    "--latent": ("union", "class", "pooled"),
    "--transitions": ("per_step", "shared"),
}


def bases_of(kind: str, chosen: Choices) -> list[str]:
    """Words for the bases of an ensemble; none where boosting has its usual one, or a stack columns alone."""
    if kind in BOOSTINGS:
        return [] if chosen.base is None else [chosen.base]
    if chosen.bases is None:
        return [] if chosen.outputs else list(USUAL)
    return [word.strip() for word in chosen.bases.split(",") if word.strip()]


def taken(kind: str, chosen: Choices) -> list[str]:
    """Options that an ensemble takes for itself."""
    combine = chosen.combine or ("maxent" if kind == "stack" else "votes")
    mine = ("bases", "outputs") if kind == "stack" else ("base", "stages")
    names = (*mine, *(["combine"] if kind != "stack" or combine != "votes" else []), *OWN.get(combine, ()))
    return ["--" + name.replace("_", "-") for name in names]


def ensemble(kind: str, chosen: Choices, target: str | None, common: dict[str, Any], make: Callable[..., dict]) -> Any:
    """The unfitted ensemble; `make(words, options)` makes mixent's own classifiers."""
    if target is None:
        raise typer.BadParameter(f"--model {kind} needs --target: clusters have no classes")
    combine = _combine(kind, chosen)
    for option, words in WORDS.items():
        word = getattr(chosen, option.removeprefix("--"))
        if word is not None and option.removeprefix("--") in OWN[combine]:
            one_of(option, word, words)
    _refuse_idle(kind, chosen, combine)
    own = (*ALWAYS_OWN, *OWN[combine])
    if "max_components" in own and chosen.latent is None:
        own = tuple(name for name in own if name != "max_components")  # of a base, then
    rest = replace(chosen, **{name: type(chosen).untyped(name) for name in own})
    if kind == "stack":
        members: Any = _listed(chosen, rest, common, make)
    else:
        members = _boosting(kind, chosen, rest, common, make)
    return members if combine == "votes" else _combined(combine, members, chosen, common)


def _combine(kind: str, chosen: Choices) -> str:
    if chosen.combine is None:
        return "maxent" if kind == "stack" else "votes"
    one_of("--combine", chosen.combine, ("maxent", "hmm") if kind == "stack" else ("votes", "maxent", "hmm"))
    return chosen.combine


def _refuse_idle(kind: str, chosen: Choices, combine: str) -> None:
    told = f"has no effect with --combine {combine}; it serves --combine"
    refuse_idle(
        *(
            (getattr(chosen, name) is not None and name not in OWN[combine], f"--{name} {told} {others}")
            for name, others in (("constraints", "maxent"), ("decisions", "maxent and hmm"))
        ),
        (
            kind in BOOSTINGS and not bases_of(kind, chosen) and bool(_for_base(chosen, combine)),
            f"{(_for_base(chosen, combine) or [''])[0]} has no effect with --model {kind} and its usual base, Gaussian "
            "naive Bayes; name another with --base",
        ),
    )


def _for_base(chosen: Choices, combine: str) -> list[str]:
    """Options typed that the ensemble does not take itself."""
    own = ["--" + name.replace("_", "-") for name in (*ALWAYS_OWN, *OWN[combine])]
    return [name for name in chosen.typed() if name not in own]


def _listed(chosen: Choices, rest: Choices, common: dict[str, Any], make: Callable[..., dict]) -> list[tuple[str, Any]]:
    words = bases_of("stack", chosen)
    found = _made(words, rest, common, make, "--bases")
    for name, columns in _outputs(chosen.outputs).items():
        if name in found:
            raise typer.BadParameter(f"--outputs names {name!r}, as a base is called; give it another name")
        found[name] = columns
    if not found:
        raise typer.BadParameter("--model stack needs classifiers to combine: name some with --bases, or --outputs")
    return list(found.items())


def _boosting(kind: str, chosen: Choices, rest: Choices, common: dict[str, Any], make: Callable[..., dict]) -> Any:
    from mixent import AdaBoostM1Classifier, MixtureClassifier, WeightBoostClassifier

    words = bases_of(kind, chosen)
    if words:
        base = _made(words, rest, common, make, "--base")[words[0]]
    else:
        base = MixtureClassifier(1, "VVI", **common)
    made = AdaBoostM1Classifier if kind == "boost" else WeightBoostClassifier
    stages = {} if chosen.stages is None else {"n_estimators": chosen.stages}
    return made(base, **stages, random_state=common["random_state"])


def _combined(combine: str, members: Any, chosen: Choices, common: dict[str, Any]) -> Any:
    from mixent import HMMStackingClassifier, MaxEntStackingClassifier

    # folds one after the other: a bar on the screen cannot go to another process
    shared = {"random_state": common["random_state"], "n_jobs": 1 if common["n_jobs"] == 1 else None}
    options: dict[str, Any] = {"decisions": chosen.decisions}
    if combine == "hmm":
        options["transitions"] = chosen.transitions
    else:
        options |= {
            "regions": None if chosen.latent is None else _regions(chosen),
            "constraints": chosen.constraints,
            "solver": chosen.solver,
        }
    options = {name: value for name, value in options.items() if value is not None}
    if combine == "hmm":
        return HMMStackingClassifier(members, **options, **shared)
    return MaxEntStackingClassifier(members, **options, prior=read_prior(chosen.prior), **shared)


def _regions(chosen: Choices) -> Any:
    from mixent.ensemble import InputRegions

    most: dict[str, Any] = {} if chosen.max_components is None else {"max_components": chosen.max_components}
    return InputRegions(chosen.latent or "union", **most)


def _made(
    words: Sequence[str], rest: Choices, common: dict[str, Any], make: Callable[..., dict], option: str
) -> dict[str, Any]:
    """Classifiers by the word that was typed, in that order."""
    from mixent.cli.baselines import baselines
    from mixent.cli.models import KINDS

    for word in words:
        one_of(option, word, [*(kind for kind in KINDS if kind not in NO_BASES), *BASELINES])
    if len(set(words)) < len(words):
        raise typer.BadParameter(f"{option} names {_repeated(words)!r} twice; name it once")
    own = [word for word in words if word not in BASELINES]
    made = make(own, rest) if own else {}
    if not own and rest.typed():
        told = f"with {option} {','.join(words)}" if words else f"without {option}"
        raise typer.BadParameter(f"{rest.typed()[0]} has no effect {told}")
    simple = baselines(common["categorical"])
    return {word: made[word] if word in made else simple[BASELINES[word]] for word in words}


def _repeated(words: Sequence[str]) -> str:
    return next(word for word in words if words.count(word) > 1)


def _outputs(texts: Sequence[str]) -> dict[str, Any]:
    """Black boxes: their labels in one column, or their probabilities of the sorted classes in several."""
    found: dict[str, Any] = {}
    for text in texts:
        name, _, columns = text.partition("=")
        names = [column.strip() for column in columns.split(",")]
        if not name.strip() or not all(names):
            raise typer.BadParameter(
                '--outputs must be a name and the column of its labels, "vendor=said", or the columns of its '
                f'probabilities, a class each, "vendor=p_no,p_yes"; got {text!r}'
            )
        if name.strip() in found:
            raise typer.BadParameter(f"--outputs names {name.strip()!r} twice; give each its own name")
        found[name.strip()] = names[0] if len(names) == 1 else names
    return found


def answer_columns(texts: Sequence[str]) -> list[str]:
    """Columns in which black boxes give probabilities: whole numbers in them are no codes."""
    return [name for columns in _outputs(texts).values() if isinstance(columns, list) for name in columns]


def fit_to_columns(stack: Any, columns: list[str], categorical: list[str], name_codes: Callable[..., None]) -> None:
    """Tell the classifiers of a stack what they see, all but the answers of black boxes, and which of it is codes."""
    if getattr(stack, "regions", None) is not None:
        stack.categorical = categorical or "auto"
    if not isinstance(stack.estimators, list):
        name_codes(stack.estimators, categorical, columns)
        return
    answers = [c for _, base in stack.estimators if isinstance(base, str | list) for c in _names(base)]
    absent = [name for name in answers if name not in columns]
    if absent:
        raise ValueError(f"--outputs names a column {absent[0]!r} that the table does not have, or that is ignored")
    seen = [name for name in columns if name not in answers]
    bases = [(name, base) for name, base in stack.estimators if not isinstance(base, str | list)]
    if bases and not seen:
        raise ValueError("all columns are answers (--outputs), and --bases have none to learn from; leave them out")
    for _, base in bases:
        name_codes(base, [name for name in categorical if name in seen], seen)
    if answers and bases:
        stack.inputs = {name: seen for name, _ in bases}


def _names(base: str | list[str]) -> list[str]:
    return [base] if isinstance(base, str) else base


def check_can_save(words: Sequence[str]) -> None:
    """Find out before the fit that scikit-learn's bases cannot be written."""
    from importlib.util import find_spec

    strange = [word for word in words if word in BASELINES]
    if strange and find_spec("skops") is None:
        raise typer.BadParameter(
            f"a base {strange[0]} is scikit-learn's, and the package skops is needed to save it; install it with: "
            'pip install "mixent[skops]", or take bases of mixent'
        )
