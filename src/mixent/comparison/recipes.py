"""Which methods to try on a table of this shape: mixent's families, scikit-learn's classifiers, two classical ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mixent.base.recipes import Shape

KINDS = ("mixent", "classical", "scikit-learn")
FEW = 2_000  # rows up to which settings are searched widely
KERNEL_ROWS = 10_000  # rows from which a method that compares all pairs is left out
WIDE_GAUSSIANS, LONG_GAUSSIANS, MANY_GAUSSIANS = 12, 1_000, 3  # columns (bits), rows and classes of Gaussians of MED
TREE_COLUMNS = 100
CONTESTS = 2_000  # rows times other classes: what the dual of a kernel has multipliers for
PLATT = 6  # rows of the smallest class that its folds need


@dataclass(frozen=True)
class Candidate:
    """A method to be compared."""

    name: str
    estimator: Any  # not fitted
    kind: str  # "mixent", "classical", "scikit-learn" or "given"
    why: str  # what it is, in a few words
    cost: float = 1.0  # roughly, against the others: what a budget begins with

    @property
    def ours(self) -> bool:
        """Is it one of mixent's families?"""
        return self.kind == "mixent"


@dataclass(frozen=True)
class Setting:
    """What every estimator is told."""

    shape: Shape
    categorical: Any
    seed: int

    @property
    def long(self) -> bool:
        """So many rows that settings are searched less widely."""
        return self.shape.n_labelled > FEW

    @property
    def common(self) -> dict[str, Any]:
        """Options of mixent's estimators; processes run side by side, so each has one thread."""
        return {"categorical": self.categorical, "random_state": self.seed, "n_jobs": 1}

    def tuned(self, estimator: Any, grid: Any, *, encoding: str = "bits", cv: int = 5) -> Any:
        """A classifier of scikit-learn on this table."""
        from mixent.ensemble import TunedClassifier

        options = {"categorical": self.categorical, "random_state": self.seed}
        return TunedClassifier(estimator, grid, encoding=encoding, cv=cv, **options)


@dataclass(frozen=True)
class Recipe:
    """How a candidate is made, and when it is left out."""

    name: str
    kind: str
    why: str
    make: Callable[[Setting], Any]
    cost: float
    refuse: Callable[[Shape], str | None] = lambda shape: None  # why not, in words


def candidates(
    shape: Shape, *, categorical: Any = "auto", random_state: int = 0, names: Any = None, baselines: bool = True
) -> tuple[dict[str, Candidate], dict[str, str]]:
    """Methods for a table of this shape by name, and those left out with the reason.

    Parameters
    ----------
    shape : Shape
    categorical : "auto" or list
        Columns to treat as categories whatever their type.
    random_state : int
    names : list of str, optional
        Only these of mixent's families and the classical methods; one that is named is never left out.
    baselines : bool
        Whether to add scikit-learn's.
    """
    setting = Setting(shape, categorical, random_state)
    if names is not None:
        known = {recipe.name: recipe for recipe in RECIPES}
        strange = [name for name in names if name not in known]
        if strange:
            raise ValueError(f"there is no method {strange[0]!r}; there are {', '.join(map(repr, known))}")
        wanted = [known[name] for name in dict.fromkeys(names)]
        wanted += [r for r in RECIPES if baselines and r.kind == "scikit-learn" and r not in wanted]
    else:
        names, wanted = (), [r for r in RECIPES if baselines or r.kind != "scikit-learn"]
    left_out = {r.name: reason for r in wanted if r.name not in names and (reason := r.refuse(shape))}
    made = {r.name: Candidate(r.name, r.make(setting), r.kind, r.why, r.cost) for r in wanted if r.name not in left_out}
    return made, left_out


def _mixture(s: Setting) -> Any:
    from mixent import MixtureClassifier

    return MixtureClassifier(**s.common)


def _shared(s: Setting) -> Any:
    from mixent import SharedMixtureClassifier

    return SharedMixtureClassifier(**s.common)


def _maxent(s: Setting) -> Any:
    from mixent import MaxEntClassifier

    return MaxEntClassifier(**s.common)


def _med(kernel: str) -> Callable[[Setting], Any]:
    def make(s: Setting) -> Any:
        from mixent import MEDClassifier

        return MEDClassifier(kernel, **s.common)

    return make


def _med_gaussian(s: Setting) -> Any:
    from mixent import MEDGaussianClassifier

    return MEDGaussianClassifier(**s.common)


def _med_tree(s: Setting) -> Any:
    from mixent import MEDTreeClassifier

    return MEDTreeClassifier(**s.common)


def _stack(s: Setting) -> Any:
    """Four models that err in different ways, none with a search of its own: each is fitted once for every fold."""
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier

    from mixent import MaxEntStackingClassifier, MEDClassifier, MixtureClassifier

    med: dict[str, Any] = {"C": 3.0}
    if s.shape.n_constraints > CONTESTS:  # one fit each: the stack learns by itself what its scores are worth
        med = {"C": 10.0, "kernel__n_landmarks": 100, "calibration": None}
    forest = RandomForestClassifier(200, min_samples_leaf=2, n_jobs=1)
    boosting = HistGradientBoostingClassifier(learning_rate=0.05, max_iter=150, max_leaf_nodes=15)
    parts = [
        ("mixture", MixtureClassifier(1, **s.common)),
        ("med", MEDClassifier("rbf", **s.common).set_params(**med)),
        ("forest", s.tuned(forest, None, encoding="codes")),
        ("boosting", s.tuned(boosting, None, encoding="codes")),
    ]
    return MaxEntStackingClassifier(parts, random_state=s.seed, n_jobs=1)


def _parzen(s: Setting) -> Any:
    from mixent import ParzenClassifier

    return ParzenClassifier(categorical=s.categorical, n_jobs=1)


def _kernel_fisher(s: Setting) -> Any:
    from mixent import KernelFisherClassifier

    return KernelFisherClassifier(**s.common)


def _logistic(s: Setting) -> Any:
    from sklearn.linear_model import LogisticRegression

    grid = {"C": [0.001, 0.01, 0.1, 1.0, 10.0, 100.0]}
    return s.tuned(LogisticRegression(max_iter=2000), grid, cv=3 if s.long else 5)


def _boosting(s: Setting) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    grid = (
        {"max_leaf_nodes": [15], "max_iter": [100, 300]}
        if s.long
        else {"max_leaf_nodes": [4, 15], "max_iter": [50, 150, 400]}
    )
    return s.tuned(HistGradientBoostingClassifier(learning_rate=0.05), grid, encoding="codes", cv=3)


def _forest(s: Setting) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    grid = {"min_samples_leaf": [1, 4]} if s.long else {"min_samples_leaf": [1, 3, 8], "max_features": ["sqrt", 0.5]}
    return s.tuned(RandomForestClassifier(200, n_jobs=1), grid, encoding="codes", cv=3)


def _svm(s: Setting) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.model_selection import StratifiedKFold
    from sklearn.svm import SVC

    widths = [1.0] if s.long else [0.2, 1.0, 4.0]
    grid = {
        "estimator__C": [1.0, 10.0] if s.long else [0.3, 1.0, 3.0, 10.0, 30.0],
        "estimator__gamma": [width / s.shape.n_columns for width in widths],
    }
    folds = StratifiedKFold(3, shuffle=True, random_state=s.seed)  # rows may come in an order
    return s.tuned(CalibratedClassifierCV(SVC(), cv=folds, ensemble=False), grid, cv=3)


def _naive_bayes(s: Setting) -> Any:
    from mixent.comparison.naive_bayes import MixedNaiveBayes

    return s.tuned(MixedNaiveBayes(), {"alpha": [0.1, 1.0, 10.0]}, encoding="codes")


def _neighbours(s: Setting) -> Any:
    from sklearn.neighbors import KNeighborsClassifier

    grid = {"n_neighbors": [1, 3, 5, 9, 15, 25, 51], "weights": ["uniform", "distance"]}
    return s.tuned(KNeighborsClassifier(algorithm="brute"), grid)


def _pairs_too_many(shape: Shape) -> str | None:
    if shape.n_labelled > KERNEL_ROWS:
        return f"it compares all pairs of rows, and there are more than {KERNEL_ROWS} rows"
    return None


def _contests_too_many(shape: Shape) -> str | None:
    if shape.n_constraints > CONTESTS:
        return f"it takes long where rows times other classes are more than {CONTESTS}"
    return None


def _no_platt(shape: Shape) -> str | None:
    if shape.smallest_class < PLATT:
        return f"a class has fewer than {PLATT} rows, too few for Platt's probabilities"
    return _pairs_too_many(shape)


def _no_gaussians(shape: Shape) -> str | None:
    if not shape.n_numbers:
        return "there is no column of numbers"
    if shape.n_bits > WIDE_GAUSSIANS or shape.n_labelled > LONG_GAUSSIANS or shape.n_classes > MANY_GAUSSIANS:
        return (
            f"it takes long beyond {WIDE_GAUSSIANS} columns (categories one by one), {LONG_GAUSSIANS} rows or "
            f"{MANY_GAUSSIANS} classes"
        )
    return None


def _no_trees(shape: Shape) -> str | None:
    if 2 * shape.n_categories < shape.n_columns or shape.n_columns < 2:
        return "fewer than half of the columns are categories"
    if shape.n_columns > TREE_COLUMNS:
        return f"there are more than {TREE_COLUMNS} columns"
    return None


def _no_weights(shape: Shape) -> str | None:
    return "it takes no weights" if shape.weighted else _pairs_too_many(shape)


RECIPES = (
    Recipe("mixture", "mixent", "a mixture for each class, size and structure chosen inside", _mixture, 4.0),
    Recipe("shared mixture", "mixent", "components that all classes share", _shared, 5.0),
    Recipe("maximum entropy", "mixent", "constraints on classes and values, strength chosen inside", _maxent, 1.0),
    Recipe("linear MED", "mixent", "margins, linear", _med("linear"), 0.5),
    Recipe("RBF MED", "mixent", "margins, radial kernel", _med("rbf"), 3.0, _contests_too_many),
    Recipe(
        "Gaussian MED", "mixent", "a Gaussian for each class, trained for margins", _med_gaussian, 6.0, _no_gaussians
    ),
    Recipe("tree MED", "mixent", "distributions over trees of columns", _med_tree, 3.0, _no_trees),
    Recipe("stack", "mixent", "mixture, MED, forest and boosting combined by maximum entropy", _stack, 7.0),
    Recipe("Parzen window", "classical", "a kernel density for each class", _parzen, 0.1, _pairs_too_many),
    Recipe(
        "kernel Fisher", "classical", "discriminant directions, radial kernel", _kernel_fisher, 0.4, _pairs_too_many
    ),
    Recipe("logistic regression", "scikit-learn", "linear, penalty chosen inside", _logistic, 0.3),
    Recipe("gradient boosting", "scikit-learn", "trees in turn, size and number chosen inside", _boosting, 2.0),
    Recipe("random forest", "scikit-learn", "trees side by side, leaves chosen inside", _forest, 4.5),
    Recipe("RBF SVM", "scikit-learn", "margins, radial kernel, Platt's probabilities", _svm, 1.5, _no_platt),
    Recipe("naive Bayes", "scikit-learn", "columns independent in each class", _naive_bayes, 0.05),
    Recipe(
        "k nearest neighbours",
        "scikit-learn",
        "shares of classes near by, k chosen inside",
        _neighbours,
        0.2,
        _no_weights,
    ),
)
