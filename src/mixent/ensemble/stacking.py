"""The base of classifiers that combine others: training these, out of fold, and reading their outputs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from mixent.base.capabilities import LEFT_OUT, able, no, of_bases, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.delegation import aligned, weight_argument
from mixent.base.folds import Fold, label_folds
from mixent.base.params import check_choice, check_folds, check_jobs
from mixent.core.arrays import Array
from mixent.data import Labels, Table, listed, read_labels, read_weights
from mixent.data.frames import check_held, is_frame, unwrapped
from mixent.ensemble.inputs import Columns, Inputs
from mixent.ensemble.members import DECISIONS, EnsembleMembers, Members, NamedMembers, Outputs, is_read, read_members
from mixent.ensemble.output_columns import OutputColumns

WORDS = ("prefit", "train")
FOLDS = 5


@dataclass(frozen=True)
class FitInput:
    """What `fit` was given, checked."""

    X: Inputs
    labels: Labels
    codes: np.ndarray  # (n,) -1 without a label
    weight: Array | None
    counted: np.ndarray  # (n,) bool: rows with a label and a weight
    labelled: np.ndarray  # (n,) bool: rows with a label, which splits of the user's are numbered by
    seed: int


class BaseStacking(ProbabilisticClassifier):
    """A classifier whose features are the outputs of other classifiers.

    A subclass has the options estimators, cv, decisions, n_jobs and random_state, and may have inputs.
    """

    members_: Members
    fitted_: Any
    alphabets_: tuple[np.ndarray, ...]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Options, and with `deep` those of the classifiers: `name__option`.

        Parameters
        ----------
        deep : bool

        Returns
        -------
        dict
        """
        out = super().get_params(deep)
        named = deep and isinstance(self.estimators, (list, tuple))
        for name, base in _named_models(self.estimators) if named else ():
            out[name] = base
            out |= {f"{name}__{option}": value for option, value in base.get_params().items()}
        return out

    def set_params(self, **params: Any) -> Self:
        """Set options, also those of named classifiers (`name__option`), or put another in their place (`name`).

        Parameters
        ----------
        **params
            Option -> value.

        Returns
        -------
        self
        """
        if "estimators" in params:
            self.estimators = params.pop("estimators")
        models = dict(_named_models(self.estimators)) if isinstance(self.estimators, (list, tuple)) else {}
        own = {}
        for key, value in params.items():
            name, _, option = key.partition("__")
            if name not in models:
                own[key] = value
            elif option:
                models[name].set_params(**{option: value})
            else:
                entries = [(name, value) if e[0] == name else e for e in map(_as_entry, self.estimators)]
                self.estimators = [e if e[0] is not None else e[1] for e in entries]
        super().set_params(**own)
        return self

    def _check_stacking(self) -> None:
        check_choice("decisions", self.decisions, DECISIONS)
        check_jobs(self.n_jobs)
        if not (isinstance(self.cv, str) and self.cv in WORDS):
            trained = "'train' (outputs on the rows the classifiers were trained on)"
            check_folds("cv", self.cv, also=f"{trained} or 'prefit' (they are fitted already)")

    @property
    def _prefit(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "prefit"

    @property
    def _own_folds(self) -> bool:
        return not isinstance(self.cv, str)

    def _open(self, X: Any, y: Any, sample_weight: Any, rng: np.random.RandomState) -> FitInput:
        X = self._read_table(X, reset=True)
        n = _num_samples(X.X)
        labels = read_labels(y, n)
        weight = read_weights(sample_weight, n)
        if labels.codes is None and not self._prefit:
            raise ValueError(
                "y holds label probabilities, which classifiers cannot be trained on; give labels, or fitted "
                "classifiers with cv='prefit'"
            )
        labelled = labels.likelihood.min(axis=1) < 1
        labels = _with_weight(labels, weight)
        likelihood = labels.likelihood
        known = likelihood.min(axis=1) < 1  # even probabilities are a label too: that the row is of no class rather
        codes = np.where(known, likelihood.argmax(axis=1), -1)
        counted = known if weight is None else known & (weight > 0)
        if len(np.unique(codes[counted])) < 2:
            raise ValueError("the labelled rows with a weight are of one class; give some rows of two classes at least")
        return FitInput(X, labels, codes, weight, counted, labelled, int(rng.randint(2**31 - 1)))

    def _read_table(self, X: Any, *, reset: bool) -> Inputs:
        """The table as the classifiers get it; what is in it is theirs to check."""
        tables: dict[Columns, Table] = {None: X} if isinstance(X, Table) else {}
        check_held(X)
        X = unwrapped(X)
        if is_frame(X):
            validate_data(self, X, skip_check_array=True, reset=reset)
            return Inputs(X, tables)
        return Inputs(validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False), tables)

    def _train(self, given: FitInput, show: Any) -> tuple[Outputs, list[Fold], FitInput]:
        """Train the classifiers; their outputs for the rows, out of fold by default, and the folds.

        Rows that do not count get NaN: they take no part. Nor do those that no fold of the user's holds out, which the
        last of what is returned says; one that has to stay in training for its class, with folds of ours, counts for
        the class term.
        """
        inputs = getattr(self, "inputs", None)
        self.members_ = members = read_members(self.estimators, inputs, self._prefit)
        self._warn_of_weights(members, given.weight)
        rows = np.flatnonzero(given.counted)
        if self._prefit:
            self.fitted_ = self._ready(members, given)
        else:
            members.open(given.X)
            self.fitted_ = self._fit_on(members, given, rows)
        final = members.outputs(self.fitted_, given.X.take(rows), self.decisions)
        self.alphabets_, self.base_names_ = final.alphabets, final.names
        folds: list[Fold] = []
        values = [np.full((len(given.codes), len(a)), np.nan) for a in final.alphabets]
        if not self._own_folds:
            for out, value in zip(values, final.values):
                out[rows] = value
        else:
            folds = self._folds(given)
            self._out_of_fold(members.settled(self.fitted_), given, folds, values, show)
        found = replace(final, values=tuple(values))
        self._warn_of_labels(found, given)
        self.base_errors_ = _errors(found, given)
        return found, folds, self._answered(given, folds)

    def _answered(self, given: FitInput, folds: list[Fold]) -> FitInput:
        if not folds or isinstance(self.cv, (int, np.integer)):
            return given
        held = np.zeros(len(given.codes), dtype=bool)
        held[np.concatenate([rows for _, rows in folds])] = True
        lost = set(given.codes[given.counted]) - set(given.codes[given.counted & held])
        if lost:
            label = given.labels.classes.tolist()[min(lost)]
            raise ValueError(f"cv holds out no row of class {label!r}; nothing is known of how it is answered")
        return replace(given, counted=given.counted & held)

    def _ready(self, members: Members, given: FitInput) -> Any:
        """Classifiers that are fitted already; columns have nothing to be fitted to but their labels."""
        if isinstance(members, EnsembleMembers):
            return members.ensemble
        assert isinstance(members, NamedMembers)
        seen = given.X.take(np.flatnonzero(given.counted)).given(None)
        unread = [isinstance(base, OutputColumns) and not is_read(base) for base in members.bases]
        return [
            clone(base).fit(seen, given.labels.classes) if new else base for base, new in zip(members.bases, unread)
        ]

    def _fit_on(self, members: Members, given: FitInput, rows: np.ndarray) -> Any:
        weight = None if given.weight is None else given.weight[rows]
        y = given.labels.classes[given.codes[rows]]
        return members.fit(given.X.take(rows), y, weight, given.seed)

    def _folds(self, given: FitInput) -> list[Fold]:
        codes = np.where(given.labelled, np.maximum(given.codes, 0), -1)
        folds = label_folds(codes, given.counted, given.seed, self.cv)
        if len(folds) < 2 and isinstance(self.cv, (int, np.integer)):
            raise ValueError("no class has two labelled rows: nothing can be held out; give more rows, or cv='train'")
        return [(train[given.counted[train]], held[given.counted[held]]) for train, held in folds]

    def _out_of_fold(
        self, members: Members, given: FitInput, folds: list[Fold], values: list[Array], show: Any
    ) -> None:
        def one(train: np.ndarray, held: np.ndarray) -> Outputs:
            fitted = self._fit_on(members, given, train)
            return members.outputs(fitted, given.X.take(held), self.decisions)

        if self.n_jobs in (None, 1):
            for f, (train, held) in enumerate(folds):
                if show is not None:
                    show(f, len(folds), f"classifiers, fold {f + 1} of {len(folds)}")
                self._fill(values, one(train, held), held)
            return
        each = Parallel(n_jobs=self.n_jobs)(delayed(one)(train, held) for train, held in folds)
        for found, (_, held) in zip(each, folds):
            self._fill(values, found, held)

    def _fill(self, values: list[Array], found: Outputs, held: np.ndarray) -> None:
        """An ensemble may have more stages in a fold than in the end, or fewer: those it lacks abstain."""
        for out, said, alphabet, wanted in zip(values, found.values, found.alphabets, self.alphabets_):
            out[held] = aligned(said, alphabet, wanted)

    def _warn_of_weights(self, members: Members, weight: Array | None) -> None:
        if weight is None or self._prefit:
            return
        bases = members.bases if isinstance(members, NamedMembers) else (members.ensemble,)  # type: ignore[attr-defined]
        names = members.names if isinstance(members, NamedMembers) else (type(bases[0]).__name__,)
        for name, base in zip(names, bases):
            if not isinstance(base, OutputColumns) and weight_argument(base) is None:
                warnings.warn(f"{name} takes no sample_weight: it is trained without", stacklevel=4)

    def _warn_of_labels(self, found: Outputs, given: FitInput) -> None:
        classes = given.labels.classes.tolist()
        for name, alphabet in zip(found.names, found.alphabets):
            if not any(label in classes for label in alphabet.tolist()):
                warnings.warn(
                    f"no label of {name!r} ({listed(alphabet.tolist())}) is a class ({listed(classes)}): their "
                    "contributions are learned, but its error cannot be counted",
                    stacklevel=4,
                )

    def _outputs(self, X: Any) -> Outputs:
        """The outputs of the classifiers for new rows."""
        check_is_fitted(self)
        return self._outputs_of(self._read_table(X, reset=False))

    def _outputs_of(self, X: Inputs) -> Outputs:
        return self.members_.outputs(self.fitted_, X, self.decisions)

    def base_outputs(self, X: Any) -> dict[str, Array]:
        """The output of each classifier for each row.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        dict of name to (n, V) array over its labels (`alphabets_`); NaN where it abstains.
        """
        found = self._outputs(X)
        return dict(zip(found.names, found.values))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        models = _models(self.estimators)
        tags.input_tags.allow_nan = all(get_tags(base).input_tags.allow_nan for base in models)
        return able(
            tags,
            reads_tables=True,
            missing="as each classifier handles them; one without an output drops out of the row",
            weights=yes("handed on to the classifiers that take them; folds are drawn of rows"),
            soft_labels=yes("a row counts for every class by its share") if self._prefit else no('with cv="prefit"'),
            absent_labels=LEFT_OUT,
            **of_bases(models),
        )


def _with_weight(labels: Labels, weight: Array | None) -> Labels:
    """Without the classes whose rows all weigh nothing: these rows are as if they were not there."""
    absent = labels.likelihood.min(axis=1) == 1
    mass = np.where(absent[:, None], 0.0, labels.likelihood)
    kept = (mass if weight is None else mass * weight[:, None]).sum(axis=0) > 0
    if kept.all() or kept.sum() < 2:
        return labels
    likelihood = labels.likelihood[:, kept]
    likelihood[~likelihood.any(axis=1)] = 1.0
    codes = labels.codes
    if codes is not None:
        codes = np.where(codes >= 0, np.where(kept, np.cumsum(kept) - 1, -1)[codes], -1).astype(codes.dtype)
    return Labels(labels.classes[kept], likelihood, codes)


def _as_entry(entry: Any) -> tuple[str | None, Any]:
    return entry if isinstance(entry, tuple) and len(entry) == 2 and isinstance(entry[0], str) else (None, entry)


def _named_models(estimators: Any) -> list[tuple[str, Any]]:
    """Classifiers that the user named."""
    entries = [_as_entry(entry) for entry in estimators]
    return [(n, m) for n, m in entries if n is not None and hasattr(m, "get_params") and not isinstance(m, type)]


def _models(estimators: Any) -> list[Any]:
    """The classifiers, without those whose outputs are columns."""
    bases = estimators if isinstance(estimators, (list, tuple)) else [estimators]
    bases = [entry[1] if isinstance(entry, tuple) and len(entry) == 2 else entry for entry in bases]
    return [base for base in bases if hasattr(base, "__sklearn_tags__") and not isinstance(base, type)]


def _errors(found: Outputs, given: FitInput) -> Array:
    """(M,) share of the counted rows each classifier had wrong, of those it answered."""
    weight = np.ones(len(given.codes)) if given.weight is None else given.weight
    out = []
    for value, alphabet in zip(found.values, found.alphabets):
        rows = given.counted & ~np.isnan(value).any(axis=1)
        right = alphabet[value[rows].argmax(axis=1)].astype(object) == given.labels.classes[given.codes[rows]]
        known = any(label in given.labels.classes.tolist() for label in alphabet.tolist())
        out.append(1.0 - np.average(right, weights=weight[rows]) if known and rows.any() else np.nan)
    return np.array(out)
