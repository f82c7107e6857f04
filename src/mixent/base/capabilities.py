"""What an estimator can do with data as they come: stated once, in its tags, and shown as a table.

scikit-learn's tags state whether values may be missing (`input_tags.allow_nan`) and whether there may be more than two
classes (`classifier_tags.multi_class`). `Capabilities` holds the rest, in the same object. Mixed columns are
among the rest: scikit-learn's `input_tags.categorical` stands for columns of codes alone, and makes its checks round
every number to a whole one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from sklearn.utils import Tags, get_tags

MEANINGS = {  # capability -> its title, and what "yes" means
    "missing": (
        "missing values",
        "values may be missing in `fit` and in `predict`; the other values of the row are used",
    ),
    "weights": (
        "weights",
        "`sample_weight` is supported: a weight of 2 is equivalent to repeating the row (for fixed folds)",
    ),
    "soft_labels": (
        "soft labels",
        "y may be a table of class probabilities; probabilities of 0 and 1 are equivalent to labels",
    ),
    "absent_labels": ("absent labels", "y may be None, NaN or blank in some rows"),
    "multiclass": ("multi-class", "more than two classes"),
    "mixed": ("mixed columns", "text and numbers in one table, as they are"),
    "out_of_core": ("out-of-core", "`fit` reads more rows than fit into memory, with the same result"),
    "explanations": ("explanations", "`explain` returns contributions that add up to the log-odds"),
    "density": ("density", "`score_samples` returns the log-density of a row, in nats"),
    "sampling": ("sampling", "`sample` draws new rows"),
    "imputation": (
        "imputation",
        "`impute` replaces missing values by the expected number or the most probable category; models with sampling "
        "also draw them (`sample_conditional`)",
    ),
    "batches": ("batches", "`partial_fit` learns from new rows without the old ones"),
    "shifted_priors": ("shifted priors", "corrects for a batch in which classes are more or less frequent"),
    "saved": ("saved files", "`mixent.save` and `mixent.load`; a loaded model makes the same predictions"),
}
MARKS = {True: "yes", False: "no", None: "–"}


@dataclass(frozen=True)
class Can:
    """A cell of the table: yes, no, or not applicable (None), with an optional note.

    `exact`: of explanations, whether the prediction is itself a sum of contributions of the columns.
    """

    able: bool | None
    note: str = ""
    exact: bool = False

    def __str__(self) -> str:
        return MARKS[self.able] + (f": {self.note}" if self.note else "")


YES, NO, NOTHING = Can(True), Can(False), Can(None)
IGNORED = Can(None, "y is ignored")
LEFT_OUT = Can(True, "rows without a label are left out")
FOREIGN = Can(True, 'of another library: with `save(model, path, foreign="skops")`')


def yes(note: str, *, exact: bool = False) -> Can:
    """Yes, with a note."""
    return Can(True, note, exact)


def no(note: str) -> Can:
    """No, and what to do instead."""
    return Can(False, note)


@dataclass(frozen=True)
class Capabilities:
    """What scikit-learn's own tags do not cover; `missing` and `multiclass` are notes on those that do."""

    missing: str = ""
    weights: Can = NO
    soft_labels: Can = NO
    absent_labels: Can = NO
    multiclass: str = ""
    mixed: Can = NO
    out_of_core: Can = NO
    explanations: Can = NO
    density: Can = NO
    sampling: Can = NO
    imputation: Can = NO
    batches: Can = NO
    shifted_priors: Can = NO
    saved: Can = NO


@dataclass(slots=True)
class CapableTags(Tags):
    """scikit-learn's tags, and what an estimator of mixent can do beyond them."""

    capabilities: Capabilities = Capabilities()
    reads_tables: bool = False  # X may be a `mixent.data.Table`: every method reads X with `read_features`


def able(tags: Tags, *, reads_tables: bool | None = None, **cells: Any) -> CapableTags:
    """Tags that include these capabilities.

    Parameters
    ----------
    tags : Tags
        Of the class above.
    reads_tables : bool, optional
        Whether every method of the estimator reads X with `mixent.data.read_features`, so that X may be a Table.
    **cells
        Fields of `Capabilities`; those not named stay as they are.
    """
    before = tags.capabilities if isinstance(tags, CapableTags) else Capabilities()
    own = {f.name: getattr(tags, f.name) for f in fields(tags) if f.name != "capabilities"}
    own |= {} if reads_tables is None else {"reads_tables": reads_tables}
    return CapableTags(**own, capabilities=replace(before, **cells))


def cells_of(estimator: Any) -> dict[str, Can]:
    """What an estimator, with the options it has, can do: capability -> cell.

    Parameters
    ----------
    estimator : estimator of mixent
    """
    tags = get_tags(estimator)
    if not isinstance(tags, CapableTags):
        raise TypeError(f"{type(estimator).__name__} is not an estimator of mixent: it has no tags for capabilities")
    capabilities = {f.name: getattr(tags.capabilities, f.name) for f in fields(tags.capabilities)}
    several = None if tags.classifier_tags is None else tags.classifier_tags.multi_class
    capabilities["missing"] = Can(tags.input_tags.allow_nan, capabilities["missing"])
    capabilities["multiclass"] = Can(several, capabilities["multiclass"])
    return {name: capabilities[name] for name in MEANINGS}


def is_able(estimator: Any, capability: str) -> bool:
    """Whether an estimator has a capability; of other libraries, whose tags do not hold it, False.

    Parameters
    ----------
    estimator : estimator of any library
    capability : a name in `MEANINGS`
    """
    return tags_of(estimator) is not None and bool(cells_of(estimator)[capability].able)


def tags_of(estimator: Any) -> CapableTags | None:
    """The tags of an estimator of mixent; None for those of other libraries, some of which have no tags at all."""
    tags = get_tags(estimator) if hasattr(estimator, "__sklearn_tags__") else None
    return tags if isinstance(tags, CapableTags) else None


def of_bases(bases: list[Any]) -> dict[str, Can]:
    """Capabilities that depend on the classifiers to which the table is passed; those of other libraries are unknown.

    Parameters
    ----------
    bases : list of classifiers of any library
    """
    tags = [get_tags(base) for base in bases]
    theirs = [tag.capabilities for tag in tags if isinstance(tag, CapableTags)]
    if len(theirs) < len(bases):
        return {"mixed": Can(None, "as the base has it"), "saved": FOREIGN}
    mixed = next((base.mixed for base in theirs if not base.mixed.able), YES)
    return {"mixed": mixed, "saved": FOREIGN if FOREIGN in [base.saved for base in theirs] else YES}
