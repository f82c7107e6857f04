"""The parameter `init` of mixtures: the name of a method, or responsibilities or parameters to start EM from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mixent.base.params import check_choice
from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.families.product import ProductFamily
from mixent.mixtures.init import Partition, with_gaussians
from mixent.mixtures.problem import MixtureParams

METHODS = ("kmeans++", "random")
KEYS = ("weights", "means", "covariances", "precisions")


@dataclass(frozen=True)
class GivenStart:
    """What the user gives; the rest follows from the rows."""

    resp: Array | None = None  # (n, K) responsibilities, rows sum to 1
    weights: Array | None = None  # (K,)
    means: Array | None = None  # (K, d) of the columns that vary
    covs: Array | None = None  # (K, d, d), or diagonals (K, d)

    def take(self, rows: np.ndarray) -> GivenStart:
        """Return the start of some rows."""
        return self if self.resp is None else replace(self, resp=self.resp[rows])

    def partition(self, table: Block, scale: Array) -> Partition | None:
        """Return the given responsibilities, or assign each row to the nearest of the given means; None without both.

        Distances are relative to `scale`, the standard deviation of each column; missing values have distance 0.
        """
        rows = np.arange(table.n_rows)
        if self.resp is not None:
            return Partition(rows, self.resp)
        if self.means is None:
            return None
        distances = [np.nansum(((table.X - mean) / scale) ** 2, axis=1) for mean in self.means]
        return Partition(rows, np.eye(len(self.means))[np.argmin(distances, axis=0)])

    def applied(self, params: MixtureParams, family: ProductFamily) -> MixtureParams:
        """Return initial parameters in which the given ones replace those of the partition."""
        if self.weights is not None:
            params = replace(params, weights=family.initial_weights(self.weights[None]))
        if family.gaussian is None or params.components.gaussian is None:
            return params
        gaussian = with_gaussians(params.components.gaussian, family.gaussian, self.means, self.covs)
        return replace(params, components=replace(params.components, gaussian=gaussian))


def check_init(init: Any, *, searched: bool, grown: bool, also: str = "responsibilities") -> None:
    """Check the kind of `init`, and that nothing is given where components are searched or grown."""
    if init is None or np.isscalar(init):
        check_choice("init", init, METHODS, also)
        return
    kind = "init as initial parameters" if isinstance(init, Mapping) else "init as responsibilities"
    if searched:
        raise ValueError(f"{kind} needs a fixed number of components; set n_components to their number")
    if grown:
        raise ValueError(f"{kind} is only used with growth='restart'; got growth='incremental'")


def read_start(init: Any, n_rows: int, n_components: int, n_columns: int, varying: np.ndarray) -> GivenStart | None:
    """Return the checked start; None for the name of a method.

    Parameters
    ----------
    init : str, (n, K) array or dict
    n_rows, n_components : int
    n_columns : int
        Number of numeric columns.
    varying : (d',) array of int
        The numeric columns that vary.
    """
    if isinstance(init, str):
        return None
    if not isinstance(init, Mapping):
        return GivenStart(resp=read_responsibilities(init, n_rows, n_components))
    unknown = [key for key in init if key not in KEYS]
    if unknown or not init or {"covariances", "precisions"} <= set(init):
        raise ValueError(
            "init as a dict has one or more of the keys 'weights', 'means' and either 'covariances' or 'precisions'; "
            f"got {', '.join(map(repr, init)) or 'an empty dict'}"
        )
    weights = means = covs = None
    if "weights" in init:
        weights = read_numbers("weights", init["weights"], (n_components,))
        if (weights <= 0).any() or not np.isclose(weights.sum(), 1.0, rtol=0, atol=1e-6):
            raise ValueError(f"init: weights must be positive and sum to 1; got {weights.tolist()}")
        weights = weights / weights.sum()
    if "means" in init:
        means = read_numbers("means", init["means"], (n_components, n_columns))[:, varying]
    for key in ("covariances", "precisions"):
        if key in init:
            covs = read_covariances(key, init[key], n_components, n_columns, varying)
    return GivenStart(None, weights, means, covs)


def read_covariances(key: str, value: Any, n_components: int, n_columns: int, varying: np.ndarray) -> Array:
    """Return covariances of the columns that vary, from covariances or precisions, as matrices or as their diagonals.

    Parameters
    ----------
    key : "covariances" or "precisions"
    value : (K, d) or (K, d, d) array
    n_components, n_columns : int
    varying : (d',) array of int
    """
    matrices = read_numbers(key, value, (n_components, n_columns), (n_components, n_columns, n_columns), finite=False)
    part = matrices[:, varying] if matrices.ndim == 2 else matrices[:, varying[:, None], varying]
    if not np.isfinite(part).all():
        raise ValueError(f"init: {key} must be finite")
    if part.ndim == 3:
        std = np.sqrt(np.abs(np.diagonal(part, axis1=1, axis2=2)))
        if (np.abs(part - part.swapaxes(1, 2)) > 1e-6 * std[:, :, None] * std[:, None, :]).any():
            raise ValueError(f"init: {key} must be symmetric matrices")
    smallest = part.min() if part.ndim == 2 else np.linalg.eigvalsh(part).min()
    if smallest <= 0:
        raise ValueError(f"init: {key} must be positive definite; the smallest eigenvalue is {smallest:.3g}")
    if key == "precisions":
        part = 1 / part if part.ndim == 2 else np.linalg.inv(part).astype(float)
    return part


def read_numbers(name: str, value: Any, *shapes: tuple[int, ...], finite: bool = True) -> Array:
    """Return an entry of `init` as an array of one of these shapes.

    Parameters
    ----------
    name : key of the entry
    value : array
    *shapes : tuples of int
    finite : bool
    """
    allowed = " or ".join(map(str, shapes))
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init: {name} must be numbers of shape {allowed}; {error}") from error
    if array.shape not in shapes or (finite and not np.isfinite(array).all()):
        raise ValueError(f"init: {name} must be finite numbers of shape {allowed}; got shape {array.shape}")
    return array


def read_responsibilities(init: Any, n_rows: int, n_components: int) -> Array:
    """Check and normalize the responsibilities passed as `init`."""
    try:
        resp = np.asarray(init, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValueError(f"init must be 'kmeans++', 'random' or a table of responsibilities; {error}") from error
    if resp.shape != (n_rows, n_components):
        raise ValueError(
            f"init must be 'kmeans++', 'random' or responsibilities of shape ({n_rows}, {n_components}); "
            f"got {resp.shape}"
        )
    sums = resp.sum(axis=1, keepdims=True)
    if not np.isfinite(resp).all() or (resp < 0).any() or (sums <= 0).any():
        raise ValueError("init responsibilities must be finite, >= 0, with a positive sum in every row")
    return resp / sums


def within_classes(start: GivenStart | None, codes: np.ndarray, mask: Array, classes: np.ndarray) -> GivenStart | None:
    """Return the start in which a labelled row has responsibilities only for the components of its class.

    Parameters
    ----------
    start : GivenStart with responsibilities, or None
    codes : (n,) class of each row, -1 if unknown
    mask : (C, K) ones where a class may use a component
    classes : (C,) labels, for messages
    """
    if start is None or start.resp is None:
        return start
    resp = np.where((codes >= 0)[:, None], start.resp * mask[codes], start.resp)
    sums = resp.sum(axis=1, keepdims=True)
    empty = np.flatnonzero(sums[:, 0] == 0)
    if len(empty):
        row = int(empty[0])
        own = np.flatnonzero(mask[codes[row]]).tolist()
        raise ValueError(
            f"init: row {row} has the label {classes.tolist()[codes[row]]!r}, but no responsibility for the components "
            f"of this class, columns {own}"
        )
    return replace(start, resp=resp / sums)
