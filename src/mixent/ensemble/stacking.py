"""Base class of stacking models: trains the combined classifiers and computes their outputs out of fold."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin, clone
from sklearn.utils import Bunch, get_tags
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import _num_samples, check_is_fitted, validate_data

from mixent.base.background import ExplainedByColumn
from mixent.base.capabilities import LEFT_OUT, able, no, of_bases, yes
from mixent.base.classifier import ProbabilisticClassifier
from mixent.base.delegation import aligned, weight_argument
from mixent.base.folds import Fold, label_folds
from mixent.base.params import check_choice, check_folds, check_jobs
from mixent.core.arrays import Array
from mixent.data import Labels, Table, keep_notes, listed, read_labels, read_weights
from mixent.data.frames import check_held, is_frame, matched, unwrapped
from mixent.ensemble.inputs import Columns, Inputs
from mixent.ensemble.members import (
    DECISIONS,
    EnsembleMembers,
    Members,
    NamedMembers,
    Outputs,
    as_pair,
    is_dropped,
    is_fitted_columns,
    members_of,
    read_members,
)
from mixent.ensemble.output_columns import OutputColumns
from mixent.warn import Caught, NotesTogether, results_of, warn, warn_notes

CV_NAMES = ("prefit", "train")
FOLDS = 5


@dataclass(frozen=True)
class FitInput:
    """The checked arguments of `fit`."""

    X: Inputs
    labels: Labels
    codes: np.ndarray  # (n,) -1 for unlabelled rows
    weight: Array | None
    counted: np.ndarray  # (n,) bool: labelled rows of positive weight
    labelled: np.ndarray  # (n,) bool: labelled rows, to which the indices of given splits refer
    seed: int


class BaseStacking(TransformerMixin, ExplainedByColumn, ProbabilisticClassifier):
    """A classifier whose features are the outputs of other classifiers.

    A subclass has the parameters estimators, cv, decisions, n_jobs and random_state, and possibly inputs.
    """

    members_: Members
    fitted_: Any
    base_classes_: tuple[np.ndarray, ...]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the model and, with `deep`, of the classifiers (`name__parameter`).

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
            if not is_dropped(base):
                out |= {f"{name}__{option}": value for option, value in base.get_params().items()}
        return out

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the model and of named classifiers (`name__parameter`), or replace a classifier (`name`).

        `name="drop"` leaves a classifier out.

        Parameters
        ----------
        **params
            Parameter -> value.

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
                entries = [(name, value) if e[0] == name else e for e in map(as_pair, self.estimators)]
                self.estimators = [e if e[0] is not None else e[1] for e in entries]
        super().set_params(**own)
        return self

    def _check_stacking(self) -> None:
        check_choice("decisions", self.decisions, DECISIONS)
        check_jobs(self.n_jobs)
        if not (isinstance(self.cv, str) and self.cv in CV_NAMES):
            trained = "'train' (outputs on the training rows of the classifiers)"
            check_folds("cv", self.cv, also=f"{trained} or 'prefit' (classifiers that are already fitted)")

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
                "y must hold labels, because the classifiers cannot be trained on label probabilities; give labels, or "
                "use fitted classifiers with cv='prefit'"
            )
        labelled = labels.likelihood.min(axis=1) < 1
        labels = _with_weight(labels, weight)
        likelihood = labels.likelihood
        known = likelihood.min(axis=1) < 1  # equal probabilities that sum to one are a label, if an uninformative one
        codes = np.where(known, likelihood.argmax(axis=1), -1)
        counted = known if weight is None else known & (weight > 0)
        if len(np.unique(codes[counted])) < 2:
            raise ValueError("the labelled rows of positive weight have one class; at least two classes are required")
        self._read_background(X, counted, weight)
        return FitInput(X, labels, codes, weight, counted, labelled, int(rng.randint(2**31 - 1)))

    def _read_background(self, X: Inputs, counted: np.ndarray, weight: Array | None) -> None:
        """Keep training rows for `explain`; none if only other libraries can read the table."""
        try:
            table = X.read(None)
        except (TypeError, ValueError):
            self.background_ = None
            return
        self._keep_background(table, counted * (1.0 if weight is None else weight))

    def _read_table(self, X: Any, *, reset: bool) -> Inputs:
        """The table that is passed to the classifiers, which check its values."""
        tables: dict[Columns, Table] = {None: X} if isinstance(X, Table) else {}
        handed_on = isinstance(X, Table)
        check_held(X)
        X = unwrapped(X)
        if is_frame(X):
            X, notes = (X, ()) if reset else matched(self, X)
            validate_data(self, X, skip_check_array=True, reset=reset)
            warn_notes(notes)
            return Inputs(X, {} if notes else tables, handed_on=handed_on)
        X = validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)
        return Inputs(X, tables, handed_on=handed_on)

    def _train(self, given: FitInput, show: Any) -> tuple[Outputs, list[Fold], FitInput]:
        """Train the classifiers; return their outputs for the rows (by default out of fold), the folds and the input.

        The outputs of rows that are not used are NaN. Rows that no given split holds out are not used either; they are
        not counted in the returned input. With the default folds, a row that is never held out (the only row of its
        class) still counts for the class frequencies.
        """
        inputs = getattr(self, "inputs", None)
        self.members_ = members = read_members(self.estimators, inputs, self._prefit)
        self._warn_of_weights(members, given.weight)
        rows = np.flatnonzero(given.counted)
        tables = [] if self._prefit else members.open(given.X)
        keep_notes(self, *tables, given.labels, quiet=given.X.handed_on)
        self.fitted_ = self._prefitted(members, given) if self._prefit else self._fit_on(members, given, rows)
        final = members.outputs(self.fitted_, given.X.take(rows), self.decisions)
        self.base_classes_, self.base_names_ = final.classes, final.names
        folds: list[Fold] = []
        values = [np.full((len(given.codes), len(labels)), np.nan) for labels in final.classes]
        if not self._own_folds:
            for out, value in zip(values, final.values):
                out[rows] = value
        else:
            folds = self._folds(given)
            self._out_of_fold(members.with_fitted_columns(self.fitted_), given, folds, values, show)
        outputs = replace(final, values=tuple(values))
        self._warn_of_labels(outputs, given)
        self.base_errors_ = _errors(outputs, given)
        return outputs, folds, self._without_unpredicted(given, folds)

    def _without_unpredicted(self, given: FitInput, folds: list[Fold]) -> FitInput:
        """The input without the rows that no given split holds out."""
        if not folds or isinstance(self.cv, (int, np.integer)):
            return given
        held_out = np.zeros(len(given.codes), dtype=bool)
        held_out[np.concatenate([rows for _, rows in folds])] = True
        lost = set(given.codes[given.counted]) - set(given.codes[given.counted & held_out])
        if lost:
            label = given.labels.classes.tolist()[min(lost)]
            raise ValueError(f"cv holds out no row of class {label!r}; every class must be in a test fold")
        return replace(given, counted=given.counted & held_out)

    def _prefitted(self, members: Members, given: FitInput) -> Any:
        """The given fitted classifiers; for output columns, only the labels are determined."""
        if isinstance(members, EnsembleMembers):
            return members.ensemble
        assert isinstance(members, NamedMembers)
        X = given.X.take(np.flatnonzero(given.counted)).given(None)
        unfitted = [isinstance(base, OutputColumns) and not is_fitted_columns(base) for base in members.bases]
        return [clone(base).fit(X, given.labels.classes) if new else base for base, new in zip(members.bases, unfitted)]

    def _fit_on(self, members: Members, given: FitInput, rows: np.ndarray) -> Any:
        weight = None if given.weight is None else given.weight[rows]
        y = given.labels.classes[given.codes[rows]]
        return members.fit(given.X.take(rows), y, weight, given.seed)

    def _folds(self, given: FitInput) -> list[Fold]:
        codes = np.where(given.labelled, np.maximum(given.codes, 0), -1)
        folds = label_folds(codes, given.counted, given.seed, self.cv)
        if len(folds) < 2 and isinstance(self.cv, (int, np.integer)):
            raise ValueError("no class has two labelled rows, so none can be held out; give more rows, or cv='train'")
        return [(train[given.counted[train]], test[given.counted[test]]) for train, test in folds]

    def _out_of_fold(
        self, members: Members, given: FitInput, folds: list[Fold], values: list[Array], show: Any
    ) -> None:
        def outputs_of_fold(train: np.ndarray, test: np.ndarray) -> Outputs:
            fitted = self._fit_on(members, given, train)
            return members.outputs(fitted, given.X.take(test), self.decisions)

        if self.n_jobs in (None, 1):
            for f, (train, test) in enumerate(folds):
                if show is not None:
                    show(f, len(folds), f"classifiers, fold {f + 1} of {len(folds)}")
                self._fill(values, outputs_of_fold(train, test), test)
            return
        task = delayed(Caught(outputs_of_fold))
        results = results_of(Parallel(n_jobs=self.n_jobs)(task(train, test) for train, test in folds))
        for outputs, (_, test) in zip(results, folds):
            self._fill(values, outputs, test)

    def _fill(self, values: list[Array], outputs: Outputs, rows: np.ndarray) -> None:
        """Store the outputs of a fold. An ensemble may have fewer stages in a fold: the others abstain."""
        for out, value, labels, wanted in zip(values, outputs.values, outputs.classes, self.base_classes_):
            out[rows] = aligned(value, labels, wanted)

    def _warn_of_weights(self, members: Members, weight: Array | None) -> None:
        if weight is None or self._prefit:
            return
        bases = members.bases if isinstance(members, NamedMembers) else (members.ensemble,)  # type: ignore[attr-defined]
        names = members.names if isinstance(members, NamedMembers) else (type(bases[0]).__name__,)
        for name, base in zip(names, bases):
            if not isinstance(base, OutputColumns) and weight_argument(base) is None:
                warn(f"{name} does not support sample_weight and is trained without weights")

    def _warn_of_labels(self, outputs: Outputs, given: FitInput) -> None:
        classes = given.labels.classes.tolist()
        for name, labels in zip(outputs.names, outputs.classes):
            if not any(label in classes for label in labels.tolist()):
                warn(
                    f"no label of {name!r} ({listed(labels.tolist())}) is a class ({listed(classes)}): its labels are "
                    "used, but its error cannot be computed"
                )

    def _outputs(self, X: Any) -> Outputs:
        """The outputs of the classifiers for new rows."""
        check_is_fitted(self)
        with NotesTogether():
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
        dict of name -> (n, V) array of probabilities of its labels (`base_classes_`); NaN where it abstains.
        """
        outputs = self._outputs(X)
        return dict(zip(outputs.names, outputs.values))

    def transform(self, X: Any) -> Array:
        """The outputs of all classifiers side by side.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, F) array: the columns of `base_outputs`, in the order of `get_feature_names_out`.
        """
        return np.concatenate(self._outputs(X).values, axis=1)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        (F,) array of "name_label" for each classifier and each of its labels.
        """
        check_is_fitted(self)
        pairs = zip(self.base_names_, self.base_classes_)
        return np.array([f"{name}_{label}" for name, labels in pairs for label in labels.tolist()], dtype=object)

    @property
    def estimators_(self) -> list:
        """The fitted classifiers, or the members of the fitted ensemble."""
        check_is_fitted(self)
        return list(self.fitted_) if isinstance(self.fitted_, list) else members_of(self.fitted_)

    @property
    def named_estimators_(self) -> Bunch:
        """Name -> fitted classifier; "drop" for those left out."""
        if len(self.base_names_) != len(self.estimators_):
            raise AttributeError("the members of the ensemble have no names, since it has several for each stage")
        fitted = dict(zip(self.base_names_, self.estimators_))
        if not isinstance(self.estimators, (list, tuple)):
            return Bunch(**fitted)
        left_out = [is_dropped(base) for _, base in map(as_pair, self.estimators)]
        given = [name for name, _ in map(as_pair, self.estimators)]
        remaining = iter(fitted.items())
        pairs = [(name, "drop") if out else next(remaining) for name, out in zip(given, left_out)]
        return Bunch(**{name: base for name, base in pairs if name is not None})

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        models = _models(self.estimators)
        tags.input_tags.allow_nan = all(get_tags(base).input_tags.allow_nan for base in models)
        return able(
            tags,
            reads_tables=True,
            missing="as each classifier handles them; a classifier that abstains contributes nothing",
            weights=yes("passed to the classifiers that support them"),
            soft_labels=yes("a row counts for every class by its probability") if self._prefit else no('cv="prefit"'),
            absent_labels=LEFT_OUT,
            **of_bases(models),
        )


def _with_weight(labels: Labels, weight: Array | None) -> Labels:
    """The labels without the classes whose rows all have weight 0."""
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
    return replace(labels, classes=labels.classes[kept], likelihood=likelihood, codes=codes)


def _named_models(estimators: Any) -> list[tuple[str, Any]]:
    """The classifiers with a given name, also those left out."""
    entries = [as_pair(entry) for entry in estimators]
    has_options = [is_dropped(m) or (hasattr(m, "get_params") and not isinstance(m, type)) for _, m in entries]
    return [(n, m) for (n, m), known in zip(entries, has_options) if n is not None and known]


def _models(estimators: Any) -> list[Any]:
    """The classifiers, without output columns."""
    bases = estimators if isinstance(estimators, (list, tuple)) else [estimators]
    bases = [entry[1] if isinstance(entry, tuple) and len(entry) == 2 else entry for entry in bases]
    return [base for base in bases if hasattr(base, "__sklearn_tags__") and not isinstance(base, type)]


def _errors(outputs: Outputs, given: FitInput) -> Array:
    """(M,) weighted error of each classifier on the rows for which it has an output."""
    weight = np.ones(len(given.codes)) if given.weight is None else given.weight
    out = []
    for value, labels in zip(outputs.values, outputs.classes):
        rows = given.counted & ~np.isnan(value).any(axis=1)
        correct = labels[value[rows].argmax(axis=1)].astype(object) == given.labels.classes[given.codes[rows]]
        known = any(label in given.labels.classes.tolist() for label in labels.tolist())
        out.append(1.0 - np.average(correct, weights=weight[rows]) if known and rows.any() else np.nan)
    return np.array(out)
