"""Classifiers combined by maximum entropy, with and without the input (document 004, sections 3.2.1 and 3.2.2)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import able, yes
from mixent.base.executors import choose_executor
from mixent.base.folds import Fold, label_folds
from mixent.base.params import check_choice
from mixent.base.priors import read_class_prior
from mixent.base.progress import progress_bar
from mixent.core.arrays import Array
from mixent.data import Table, listed
from mixent.ensemble.members import NamedMembers, Outputs
from mixent.ensemble.options import InputRegions, read_regions
from mixent.ensemble.regions import RegionMixture, fit_regions, place_columns
from mixent.ensemble.stacking import FOLDS, BaseStacking, FitInput
from mixent.families.gaussian.structures import get_structure
from mixent.maxent.features import Training, training_rows
from mixent.maxent.layout import Layout
from mixent.maxent.model import EntropyModel
from mixent.maxent.products import ProductLayout
from mixent.maxent.terms import Probabilistic

CONSTRAINTS = ("full", "diagonal")


@dataclass(frozen=True)
class StackingFeatures:
    """The features of a combination: the output of each classifier, alone and with the regions of its input.

    P[C, C_i] follows from P[C, C_i, M_i], so that constraining it too changes nothing but what the prior pulls towards:
    equal weight of a classifier everywhere, instead of none. A single region adds no constraint.
    """

    says: tuple[Probabilistic, ...]
    cells: tuple[Probabilistic, ...]  # of each classifier; none without the input
    seed: int

    def layout(self, rows: Training) -> Layout:
        """They are known beforehand, of each row out of fold.

        The folds that choose the prior's variance therefore share classifiers: its log-loss is a little too good, as
        always where a combination is learned from outputs of one round of folds.
        """
        crossed = [(says, cells) for says, cells in zip(self.says, self.cells) if len(cells.values) > 1]
        return ProductLayout.crossing(self.says, crossed) if crossed else Layout.of(self.says)


class MaxEntStackingClassifier(EntropyModel, BaseStacking):
    """Classifiers combined by maximum entropy (SiME), with or without the place of the row in the input space (LvME).

    Of all P[class | outputs of the classifiers] that reproduce the counts P[C, C_i] of every class with every label of
    every classifier i, takes that of greatest entropy (3.1).  Maximizes the dual

        sum_t w_t sum_c q_tc log P[c | t] - |gamma|^2 / (2 prior_variance),
        P[c | t] ~ exp(b_c + sum_i sum_l P[C_i = l | t] gamma_i(c, l)),

    which is multinomial logistic regression on the outputs of the classifiers. With `regions` the counts
    P[C, C_i, M_i] are reproduced too (3.3): multipliers gamma_i(c, l, m), averaged over the regions m of the input
    space, are added to gamma_i(c, l), so that a classifier's weight depends on where the row lies. A classifier that
    abstains drops out of the row's sum. Solvers, prior and certificates are those of `MaxEntClassifier`: a step is kept
    only if it raises the objective, which so never falls.

    Parameters
    ----------
    estimators : list, or an ensemble
        Classifiers, each alone, as (name, classifier), or as (name, columns) where its outputs are columns of the
        table (see `OutputColumns`; the others do not see these columns); or one ensemble whose members are combined:
        `AdaBoostM1Classifier`, `WeightBoostClassifier`, or scikit-learn's bagging, forests and AdaBoost.
    regions : "union", "class", "pooled", InputRegions or None
        Regions of the input space in which classifiers are weighted differently: the components of a mixture of the
        columns, see `InputRegions`. "class" is the document's. None: the weights are the same everywhere.
    constraints : "full" or "diagonal"
        All of P[C, C_i], or only P[C = c, C_i = c] (3.5).
    decisions : "auto", "soft" or "hard"
        Outputs of the classifiers: probabilities where they have them, always, or never (the label alone).
    inputs : dict or None
        Name -> list of columns: what a classifier sees of the table, and what its own mixture describes. The others
        see all columns and share one mixture.
    prior_variance : "auto", float or None
        Variance of the Gaussian prior on multipliers, see `MaxEntClassifier`.
    solver : "auto", "bohning", "iis" or "lbfgs"
        See `MaxEntClassifier`.
    class_prior : "empirical" or (C,) array
        Class priors at prediction: those of the training rows, or these.
    cv : int, splitter, list of (train, test), "train" or "prefit"
        Where the outputs to learn from come from: out of fold; "train": from the rows the classifiers were trained on,
        as in the document (classifiers that overfit get too much weight); "prefit": the classifiers are fitted, none is
        trained.
    tol, max_iter
        When solving stops, see `MaxEntClassifier`.
    categorical : "auto" or list
        Columns the mixtures treat as categories whatever their type.
    random_state : int, RandomState or None
        For folds, mixtures, and classifiers without a seed of their own.
    n_jobs : int or None
        None trains the classifiers one fold after another; a number, so many folds at once. The solver's threads too.
    progress : bool or callable
        True shows a bar; a callable is called with (done, total, text).

    Attributes
    ----------
    classes_, class_prior_
        Class labels and their priors.
    base_names_, alphabets_
        Names of the classifiers (or stages), and the labels each of them gives.
    base_errors_ : (M,) array
        Share of the training rows each had wrong: out of fold, unless `cv` is "train" or "prefit".
    fitted_ : list of classifiers, or an ensemble
        Trained on all rows.
    regions_ : tuple of RegionMixture
        The mixtures, one for each classifier (the same one where it is shared); empty without `regions`.
    params_, run_, gap_, gain_, residual_, entropy_, prior_variance_, prior_variances_tried_
        See `MaxEntClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from mixent import MaxEntStackingClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = MaxEntStackingClassifier([GaussianNB(), DecisionTreeClassifier()], random_state=0).fit(X, y)
    >>> model.base_names_
    ('gaussiannb', 'decisiontreeclassifier')
    >>> model.score(X, y) > 0.95
    True
    """

    _groups = {"regions": read_regions}

    def __init__(
        self,
        estimators: Any,
        *,
        regions: str | InputRegions | None = None,
        constraints: str = "full",
        decisions: str = "auto",
        inputs: dict | None = None,
        prior_variance: str | float | None = "auto",
        solver: str = "auto",
        class_prior: Any = "empirical",
        cv: Any = FOLDS,
        tol: float = 1e-8,
        max_iter: int = 2000,
        categorical: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        progress: bool | Callable[[int, int, str], None] = False,
    ) -> None:
        self.estimators = estimators
        self.regions = regions
        self.constraints = constraints
        self.decisions = decisions
        self.inputs = inputs
        self.prior_variance = prior_variance
        self.solver = solver
        self.class_prior = class_prior
        self.cv = cv
        self.tol = tol
        self.max_iter = max_iter
        self.categorical = categorical
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress

    _explained_by = "classifier"
    _absent_value = "abstains"

    def __sklearn_tags__(self):
        return able(super().__sklearn_tags__(), explanations=yes("by classifier"))

    @classmethod
    def from_boosting(cls, boosting: Any, **options: Any) -> Self:
        """Combine the stages of an ensemble by maximum entropy instead of by its own votes.

        Parameters
        ----------
        boosting : ensemble
            `AdaBoostM1Classifier`, `WeightBoostClassifier`, or scikit-learn's bagging, forests and AdaBoost. With
            cv="prefit" a fitted one is taken as it is. The m-th stage of a boosting of other rows is not the same
            classifier: of simple bases, which do not know their training rows by heart, cv="train" may serve better.
        **options
            As for the constructor.

        Returns
        -------
        The unfitted combination.
        """
        return cls(boosting, **options)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train the classifiers, then the combination.

        Parameters
        ----------
        X : table of n rows
            The classifiers get it as it is.
        y : (n,) labels
            Rows without a label (None, NaN or "") are left out. With cv="prefit" also (n, C) label probabilities.
        sample_weight : (n,) array, optional
            Counts. A classifier that takes none is trained without, with a warning.

        Returns
        -------
        self
        """
        self._check()
        rng = check_random_state(self.random_state)
        given = self._open(X, y, sample_weight, rng)
        held_prior = read_class_prior(self.class_prior, len(given.labels.classes))
        self.classes_ = given.labels.classes
        with progress_bar(self.progress, "stacking") as show:
            found, folds, answered = self._train(given, show)
            self.regions_ = self._fit_regions(given, found.names)
            cells = self._training_regions(given, folds)
            table, plan = self._table(found, cells), self._plan(found, given.seed)
            rows = training_rows(table, given.labels, given.weight)
            rows = rows.take(np.flatnonzero(answered.counted))
            width = rows.table.X.shape[1] * (1 if self.regions_ == () else 4)
            with choose_executor(self.n_jobs, rows.table.n_rows, width) as executor:
                solved = self._learn(plan, rows, executor, show)
        if held_prior is not None:
            self._set_class_prior(held_prior)
        self._tell(solved)
        return self

    def _check(self) -> None:
        self._check_stacking()
        self._check_solving()
        check_choice("constraints", self.constraints, CONSTRAINTS)
        regions = self._group("regions")
        if regions is not None:
            regions.check()

    def _prior_folds(self) -> Any:
        return self.cv if self._own_folds and isinstance(self.cv, (int, np.integer)) else FOLDS

    def _fit_regions(self, given: FitInput, names: tuple[str, ...]) -> tuple[RegionMixture, ...]:
        """For each classifier the cells of its input space; the same object where they are shared."""
        regions = self._group("regions")
        if regions is None:
            return ()
        columns = list(getattr(self, "feature_names_in_", [f"x{j}" for j in range(self.n_features_in_)]))
        own = self.members_.inputs if isinstance(self.members_, NamedMembers) else {}
        answers = set(place_columns(self.members_.used, columns, "estimators"))
        every = tuple(j for j in range(len(columns)) if j not in answers)
        wanted = [place_columns(own[name], columns, "inputs") if name in own else every for name in names]
        if not all(wanted):
            raise ValueError(
                "regions need columns to describe, and all columns are outputs of classifiers; set regions=None"
            )
        found = {part: self._mixture_of(regions, part, columns, given) for part in dict.fromkeys(wanted)}
        return tuple(found[part] for part in wanted)

    def _mixture_of(
        self, regions: InputRegions, part: tuple[int, ...], columns: list[str], given: FitInput
    ) -> RegionMixture:
        """The mixture of some columns, learned from the rows that count."""
        coded = self.categorical
        if not isinstance(coded, str) and np.iterable(coded):
            forced = place_columns(list(coded), columns, "categorical")
            coded = [place for place, j in enumerate(part) if j in forced] or "auto"
        options = {
            "max_components": int(regions.max_components),
            "covariance": get_structure(regions.covariance).name,
            "categorical": coded,
            "random_state": given.seed,
            "n_jobs": self.n_jobs,
        }
        rows = np.flatnonzero(given.counted)
        found, codes = np.unique(given.codes[rows], return_inverse=True)
        weight = None if given.weight is None else given.weight[rows]
        y = given.labels.classes[found][codes]
        mixture = fit_regions(given.X.take(rows), y, weight, part, regions.kind, options)
        return RegionMixture(part, regions.kind, mixture, tuple(found.tolist()))

    def _training_regions(self, given: FitInput, folds: list[Fold]) -> list[Array]:
        """Of each mixture once, out of fold like the classifiers: a row's region does not depend on its label."""
        if self._prefit:  # the classifiers have not seen these labels, the mixtures have
            folds = label_folds(np.where(given.counted, given.codes, -1), given.counted, given.seed, FOLDS)
            folds = [(train[given.counted[train]], held) for train, held in folds]
        likelihood = given.labels.likelihood
        return [cells.held_out(given.X, likelihood, given.weight, folds) for cells in dict.fromkeys(self.regions_)]

    def _table(self, found: Outputs, cells: list[Array]) -> Table:
        """The outputs of the classifiers, then the regions, as one table."""
        return Table.of_numbers(np.concatenate([*found.values, *cells], axis=1))

    def _plan(self, found: Outputs, seed: int) -> StackingFeatures:
        classes, at = self.classes_.tolist(), 0
        says = []
        for name, alphabet in zip(found.names, found.alphabets):
            labels = alphabet.tolist()
            speakers = tuple(classes.index(v) if v in classes else -1 for v in labels)
            only = speakers if self.constraints == "diagonal" else None
            if only is not None and max(only) < 0:
                raise ValueError(
                    f"constraints='diagonal' counts labels that are right, and no label of {name!r} ({listed(labels)}) "
                    f"is a class ({listed(classes)}); take 'full', or name its labels as the classes"
                )
            says.append(Probabilistic(name, tuple(range(at, at + len(labels))), tuple(labels), only))
            at += len(labels)
        terms: dict[RegionMixture, Probabilistic] = {}
        for cells in dict.fromkeys(self.regions_):
            places = tuple(range(at, at + len(cells.names)))
            owner = None if cells.owner is None or cells.kind != "class" else tuple(cells.owner.tolist())
            terms[cells] = Probabilistic(f"input {len(terms) + 1}", places, cells.names, owner)
            at += len(cells.names)
        return StackingFeatures(tuple(says), tuple(terms[cells] for cells in self.regions_), seed)

    @property
    def n_parameters_(self) -> int:
        """Identifiable multipliers: counts of labels in regions, of regions, and of classes.

        Those held at zero (constraints="diagonal", regions="class") do not count; of the others then all do.
        """
        C, mask = len(self.classes_), self.layout_.mask(len(self.classes_))
        if mask is not None:
            return C - 1 + int(mask.sum())
        sizes = [len(cells.names) for cells in self.regions_] or [1] * len(self.alphabets_)
        labels = sum((len(alphabet) - 1) * size for alphabet, size in zip(self.alphabets_, sizes))
        own = sum(len(cells.names) - 1 for cells in dict.fromkeys(self.regions_))
        return (C - 1) * (1 + labels + own)

    def _read(self, X: Any) -> Table:
        check_is_fitted(self)
        inputs = self._read_table(X, reset=False)
        return self._table(self._outputs_of(inputs), [cells.pmf(inputs) for cells in dict.fromkeys(self.regions_)])
