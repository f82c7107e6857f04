"""Fisher kernel of a mixture or hidden Markov model."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import NOTHING, YES, Can, able, no
from mixent.base.executors import choose_executor
from mixent.base.options import Estimator
from mixent.base.params import RandomState, check_choice, check_count, check_positive
from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.data import Schema, Table, TableLike, read_features, read_weights
from mixent.hmm import HMMClassifier
from mixent.hmm.fitting import blocks_of
from mixent.hmm.model import SequenceModel
from mixent.hmm.sequences import Sequences, from_rows, in_columns
from mixent.med.fisher_scores import MixtureScores, SequenceScores
from mixent.mixtures import GaussianMixture
from mixent.mixtures.bayes import BayesMixture
from mixent.mixtures.model import MixtureModel
from mixent.mixtures.predict import each_row
from mixent.warn import warn_notes

INFORMATIONS = ("auto", "analytic", "sampled", "empirical")
MIN_INFORMATION = 1e-10  # smallest eigenvalue of F that counts, relative to complete data


class FisherKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """Fisher kernel of a mixture or hidden Markov model, as a feature map.

    The kernel is K(x, x') = U_x^T F^-1 U_x', where the Fisher score U_x is the gradient of log p(x | theta) with
    respect to the free parameters theta of the model (weights, means, the free parameters of the covariances, category
    probabilities), and F = E[U U^T] is the Fisher information [1]_, [2]_. Two rows are similar if they would change the
    parameters in the same way. The kernel does not depend on the parametrization. `transform` returns features whose
    inner product is the kernel; a linear classifier of these features is the Fisher kernel method.

    For a row with missing values, the score is exactly that of the density of its observed values. For a classifier,
    the density is p(x), summed over the classes; if classes share components, p(x) only depends on the sums of their
    weights. For a hidden Markov model, each row of X is a sequence, and theta holds the initial, transition and
    emission probabilities.

    Parameters
    ----------
    model : GaussianMixture, MixtureClassifier, SharedMixtureClassifier, HiddenMarkovModel, HMMClassifier or None
        Probability model. A fitted model is used as it is; of any other, a copy is fitted. scikit-learn's `clone`
        discards a fit: wrap a fitted model in `sklearn.frozen.FrozenEstimator` in a grid search or cross-validation.
        None stands for ``GaussianMixture("auto")``.
    information : "auto", "analytic", "sampled" or "empirical"
        Computation of the Fisher information F. "analytic" is exact, for models with one component or state; "sampled"
        is the mean of U U^T over `n_samples` rows drawn from the model; "empirical" is the mean over the rows of `fit`,
        including their missing values. "auto" is "analytic" if possible, otherwise "sampled".
    n_samples : int
        Number of rows drawn for information="sampled", equally many from each component. At least the number of free
        parameters, and preferably twenty times as many.
    ridge : float
        Multiple of the identity that is added to F, in the coordinates of `scores`. With 0.01, directions with less
        than 1 % of the information of complete data are damped, such as the difference of two overlapping components. 0
        is the Fisher kernel.
    random_state : int, RandomState or None
        Seed for information="sampled", and for fitting a model that has no `random_state`.

    Attributes
    ----------
    model_ : fitted mixture or hidden Markov model
        Model whose Fisher scores are computed.
    information_ : (p, p) array
        Fisher information F in the coordinates of `scores`. It is the identity for one component; with several, its
        eigenvalues, between 0 and 1, are shares of the information of complete data, in which components are known.
    rank_ : int
        Number of features: directions of theta that p(x) identifies, which are those with an eigenvalue of F above
        1e-10.
    root_ : (p, rank_) array
        R with R R^T = F^-1 on these directions, symmetric if they are all; the features are U R.
    schema_ : Schema
        Names and types of the columns of the model.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str
        Names of the columns, if the model was fitted with any.
    notes_ : list of str
        What was unusual in the training table, and what was done about it; see the guide to data.

    See Also
    --------
    MEDClassifier : Takes a FisherKernel as its `kernel`.
    GaussianMixture : Mixture of Gaussians and categorical distributions.
    HiddenMarkovModel : Hidden Markov model of sequences.

    References
    ----------
    .. [1] Jaakkola, T. and Haussler, D. (1999). Exploiting generative models in discriminative classifiers. Advances in
       Neural Information Processing Systems 11, 487-493.
    .. [2] Jaakkola, T., Meila, M. and Jebara, T. (1999). Maximum entropy discrimination. MIT AI Laboratory. Section
       3.2, equations 20 to 23; the prior (22) has the covariance F^-1 / beta, where F is printed as F^-1 (document
       001).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from mixent import FisherKernel, GaussianMixture
    >>> X, y = load_iris(return_X_y=True)
    >>> kernel = FisherKernel(GaussianMixture(3, "EEE", random_state=0), random_state=0).fit(X)
    >>> kernel.transform(X).shape == (150, kernel.model_.n_parameters_)
    True
    >>> make_pipeline(kernel, LogisticRegression(max_iter=1000)).fit(X, y).score(X, y) > 0.95
    True
    """

    model_: MixtureModel | SequenceModel
    information_: Array
    root_: Array
    rank_: int

    def __init__(
        self,
        model: Any = None,
        *,
        information: str = "auto",
        n_samples: int = 10_000,
        ridge: float = 0.0,
        random_state: RandomState = None,
    ) -> None:
        self.model = model
        self.information = information
        self.n_samples = n_samples
        self.ridge = ridge
        self.random_state = random_state

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        model = self._unwrapped()
        tags.target_tags.required = isinstance(model, BayesMixture | HMMClassifier) and not _is_fitted(model)
        as_model = Can(None, "as for its model, which is fitted with y")
        return able(
            tags,
            reads_tables=True,
            missing="the score is that of the density of the observed values",
            weights=YES,
            soft_labels=as_model,
            absent_labels=as_model,
            mixed=no("a row is a sequence of one variable") if isinstance(model, SequenceModel) else YES,
            explanations=NOTHING,
            shifted_priors=NOTHING,
            saved=YES,
        )

    def fit(self, X: TableLike, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model unless it is fitted, and compute the Fisher information.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories. If the model is fitted, the
            rows are only used with information="empirical".
        y : (n,) labels, optional
            Labels for a classifier that is not fitted.
        sample_weight : (n,) array, optional
            A weight of 2 is equivalent to repeating the row.

        Returns
        -------
        self
        """
        check_choice("information", self.information, INFORMATIONS)
        check_count("n_samples", self.n_samples)
        check_positive("ridge", self.ridge, zero=True)
        self.model_, X = self._fitted(X, y, sample_weight)
        table = self._read(X)
        self.notes_ = list(dict.fromkeys((*getattr(self.model_, "notes_", ()), *table.notes)))
        weight = read_weights(sample_weight, table.n_rows)
        self.information_ = self._information(self._coordinates(), table, weight)
        self.root_ = inverse_root(self.information_, self.ridge)
        self.rank_ = self.root_.shape[1]
        return self

    def _unwrapped(self) -> Any:
        return self.model.estimator if isinstance(self.model, FrozenEstimator) else self.model

    def _fitted(
        self, X: TableLike, y: ArrayLike | None, sample_weight: Any
    ) -> tuple[MixtureModel | SequenceModel, Any]:
        """The fitted model, and X, already read if the model was fitted to it here."""
        model = self._unwrapped()
        if model is None:
            model = GaussianMixture("auto")
        if not isinstance(model, MixtureModel | SequenceModel):
            raise ValueError(
                "model must be a GaussianMixture, MixtureClassifier, SharedMixtureClassifier, HiddenMarkovModel or "
                f"HMMClassifier, fitted or not, or None; got {model!r}"
            )
        if isinstance(model, SequenceModel):
            _check_sequences(model)
        elif model.outliers is not None:
            raise ValueError(
                "FisherKernel needs a mixture of Gaussians without noise; "
                f"got outliers={model.outliers!r}, fit it with outliers=None"
            )
        if _is_fitted(model):
            return copy.copy(model), X  # later changes of the user's model have no effect
        model = clone(model)
        if model.random_state is None:
            model.set_params(random_state=self.random_state)
        table = read_features(clone(model), X, reset=True, categorical=model.categorical)
        model.fit(table, y, sample_weight=sample_weight)
        if not isinstance(X, Table):
            warn_notes(model.notes_)
        return model, table

    def _information(self, coordinates: Any, table: Table, weight: Array | None) -> Array:
        n_live, p = coordinates.n_live, coordinates.size
        if self.information == "empirical":
            scores = self._row_scores(coordinates, self._model_input(table))
            weight = np.ones(len(scores)) if weight is None else weight
            return scores.T @ (scores * (weight / weight.sum())[:, None])
        if self.information == "analytic" and n_live > 1:
            raise ValueError(
                f"information='analytic' needs a model with one component; got {n_live}. Set information='sampled'"
            )
        if self.information != "sampled" and n_live == 1:
            return np.eye(p)  # by the choice of coordinates
        if self.n_samples < p:
            raise ValueError(
                f"n_samples must be at least the number of free parameters, {p}; got {self.n_samples}. Increase it, "
                "or use fewer components or a simpler covariance"
            )
        if isinstance(coordinates, SequenceScores):
            return self._sampled_sequences(coordinates)
        return self._sampled(coordinates)

    def _sampled_sequences(self, coordinates: SequenceScores) -> Array:
        """sum_c p_c E_c[U U^T], with the same number of sequences from each class."""
        model, length = self.model_, self.model_.n_features_in_
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        n_rows = -(-self.n_samples // len(coordinates.chains))
        total = np.zeros((coordinates.size, coordinates.size))
        for share, chain in zip(coordinates.class_prior, model._chains()):
            X, codes, _ = model._draw(chain, n_rows, length, rng)
            drawn = in_columns(Sequences(Block(X, codes), np.full(n_rows, length)), model.varying_)
            scores = self._row_scores(coordinates, drawn)
            total += share / n_rows * (scores.T @ scores)
        return total

    def _sampled(self, coordinates: MixtureScores) -> Array:
        """sum_k w_k E_k[U U^T], with the same number of rows from each component, for precision with small weights."""
        problem, params = self.model_.problem_, self.model_.params_
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        weights = params.weights.sum(axis=0)
        n_rows = -(-self.n_samples // len(coordinates.live))
        total = np.zeros((coordinates.size, coordinates.size))
        for k in coordinates.live:
            drawn = Block(*problem.family.sample(params.components, np.full(n_rows, k), rng))
            scores = self._row_scores(coordinates, drawn)
            total += weights[k] / (weights.sum() * n_rows) * (scores.T @ scores)
        return total

    @property
    def schema_(self) -> Schema:
        """Names and types of the columns of the model."""
        return self.model_.schema_

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return self.model_.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns, if the model was fitted with any."""
        return self.model_.feature_names_in_

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def _read(self, X: TableLike) -> Table:
        check_is_fitted(self)
        return read_features(self, X, reset=False)

    def _coordinates(self) -> MixtureScores | SequenceScores:
        model = self.model_
        if not isinstance(model, SequenceModel):
            return MixtureScores(model.problem_, model.params_)
        prior = getattr(model, "class_prior_", np.ones(1))
        fixed_priors = not isinstance(getattr(model, "class_prior", "empirical"), str)
        return SequenceScores(model._chains(), prior, model.n_features_in_, fixed_priors=fixed_priors)

    def _model_input(self, table: Table) -> Block | Sequences:
        """The rows in the form of the model, without constant columns."""
        model = self.model_
        return in_columns(from_rows(table), model.varying_) if isinstance(model, SequenceModel) else model._block(table)

    def _row_scores(self, coordinates: Any, block: Any, root: Array | None = None) -> Array:
        """Fisher scores (n, p), or with `root` features (n, rank), computed in blocks."""
        if isinstance(coordinates, SequenceScores):
            return _check_finite(self._sequence_scores(coordinates, block, root))

        def rows(ready: Any, part: Block) -> Array:
            scores = coordinates.rows(ready, part)
            return scores if root is None else scores @ root

        model, width = self.model_, coordinates.size if root is None else root.shape[1]
        return _check_finite(each_row(model.problem_, model.params_, block, rows, width, model.n_jobs))

    def _sequence_scores(self, coordinates: SequenceScores, sequences: Sequences, root: Array | None) -> Array:
        chains = self.model_._chains()
        width = max(chain.params.n_states for chain in chains)
        out = np.empty((sequences.n_sequences, coordinates.size if root is None else root.shape[1]))

        def fill(block: Any) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                scores = coordinates.rows(readies, block)
                out[block.index] = scores if root is None else scores @ root

        with choose_executor(self.model_.n_jobs, sequences.table.n_rows, width) as executor:
            readies = [chain.problem.prepare(chain.params) for chain in chains]
            executor.map(fill, blocks_of(chains[0].problem, width + coordinates.size // 4, sequences, None))
        return out

    def scores(self, X: TableLike) -> Array:
        """Fisher scores U_x of rows, in coordinates in which F would be the identity if components were known.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, p) array
            First the weights, then means and covariances, then category probabilities.
        """
        table = self._read(X)
        return self._row_scores(self._coordinates(), self._model_input(table))

    def transform(self, X: TableLike) -> Array:
        """Features F^(-1/2) U_x, whose inner products are the Fisher kernel; they have variance 1 under the model.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, rank_) array
            Features.
        """
        return self._features(X)

    def _features(self, X: TableLike) -> Array:
        table = self._read(X)
        return self._row_scores(self._coordinates(), self._model_input(table), self.root_)

    def __call__(self, X: TableLike, Y: Any = None) -> Array:
        """Kernel matrix of the rows of X and of Y.

        Parameters
        ----------
        X : table of n rows
        Y : table of m rows, optional
            Default: X.

        Returns
        -------
        (n, m) array
            Kernel matrix.
        """
        features = self._kernel_features(X)
        return features @ (features if Y is None else self._kernel_features(Y)).T

    def _kernel_features(self, X: TableLike) -> Array:
        """Features whose inner products are finite; not `transform`, which may return a DataFrame (`set_output`)."""
        features = self._features(X)
        with np.errstate(over="ignore"):
            _check_finite((features**2).sum(axis=1, keepdims=True))
        return features


def _is_fitted(model: BaseEstimator) -> bool:
    return any(hasattr(model, name) for name in ("params_", "chain_", "chains_"))


def _check_sequences(model: SequenceModel) -> None:
    """Raise an error unless rows are sequences whose steps share all parameters."""
    if getattr(model, "emissions", "fitted") != "fitted":
        raise ValueError(
            "FisherKernel needs a hidden Markov model with Gaussian or categorical emissions; "
            f"got emissions={model.emissions!r}, fit it with emissions='fitted'"
        )
    if model.transitions != "shared":
        raise ValueError(
            f"FisherKernel needs a hidden Markov model with transitions='shared'; got transitions={model.transitions!r}"
        )
    if _is_fitted(model) and not model.by_row_:
        raise ValueError("FisherKernel needs a hidden Markov model whose rows are sequences, fitted without lengths")


def _check_finite(scores: Array) -> Array:
    infinite = np.flatnonzero(~np.isfinite(scores).all(axis=1))
    if len(infinite):
        raise ValueError(
            f"row {infinite[0]} is so far from every component that its score is not finite; correct or remove it"
        )
    return scores


def inverse_root(information: Array, ridge: float = 0.0) -> Array:
    """R (p, rank) with  R R^T = (F + ridge I)^-1  on the identified directions; symmetric if all are identified."""
    values, vectors = np.linalg.eigh(information)
    identified = values > MIN_INFORMATION
    root = vectors[:, identified] / np.sqrt(values[identified] + ridge)
    # the symmetric root does not depend on the signs of the eigenvectors
    return root @ vectors.T if identified.all() else root
