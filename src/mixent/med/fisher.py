"""The Fisher kernel of a mixture or hidden Markov model, as features."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mixent.base.capabilities import NOTHING, YES, Can, able, no
from mixent.base.executors import choose_executor
from mixent.base.options import Estimator
from mixent.base.params import check_choice, check_count, check_positive
from mixent.core.arrays import Array
from mixent.core.blocks import Block
from mixent.data import Schema, Table, read_features, read_weights
from mixent.hmm import HMMClassifier
from mixent.hmm.fitting import blocks_of
from mixent.hmm.model import SequenceModel
from mixent.hmm.sequences import Sequences, from_rows, in_columns
from mixent.med.fisher_scores import MixtureScores, SequenceScores
from mixent.mixtures import GaussianMixture
from mixent.mixtures.bayes import BayesMixture
from mixent.mixtures.model import MixtureModel
from mixent.mixtures.predict import each_row

INFORMATIONS = ("auto", "analytic", "sampled", "empirical")
FLAT = 1e-10  # less information than this, of one where components are seen, is none


class FisherKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """The Fisher kernel of a mixture,  K(x, x') = U_x^T F^-1 U_x',  and features whose inner product it is.

    U_x is the gradient of log p(x | theta) with respect to the free parameters theta of the mixture, exactly those of
    its structure: weights, means, what the covariances may vary in, category probabilities. F = E[U U^T] is the
    Fisher information (document 001, equations 20 and 21; the prior that leads there, (22) and (23), has F where the
    document prints F^-1). Two rows are alike when they would change the model in the same way. The kernel is the same
    in whatever coordinates theta is measured. A linear classifier on the features is the Fisher kernel method.

    Of a row with missing values the score is that of the density of what was observed, exactly. Of a classifier the
    density is p(x), summed over its classes: of the weights of components that classes share, p(x) knows the sums.

    Of a hidden Markov model x is a sequence, a row of X; theta are the probabilities of first states, of transitions,
    and what the states emit.

    Parameters
    ----------
    model : GaussianMixture, MixtureClassifier, SharedMixtureClassifier, HiddenMarkovModel, HMMClassifier or None
        A fitted one is used as it is; of one that is not, a copy is fitted. scikit-learn's `clone` forgets a fit: in a
        grid search or cross-validation, wrap a fitted one in `sklearn.frozen.FrozenEstimator`. None stands for
        ``GaussianMixture("auto")``.
    information : "auto", "analytic", "sampled" or "empirical"
        How F is found. "analytic" is exact, and known for one component (or state); "sampled" is the mean of U U^T over
        `n_samples` rows drawn from the model; "empirical" that over the rows of `fit`, gaps and all. "auto" takes the
        first that serves of the first two.
    n_samples : int
        Rows drawn by "sampled", as many from each component; at least as many as the scores have coordinates, and
        better twenty times as many.
    ridge : float
        F + ridge I takes the place of F, in the coordinates of `scores`: 0.01 damps directions of which less than a
        hundredth of what could be known remains when components are not seen, such as what tells two overlapping ones
        apart. 0 is the Fisher kernel.
    random_state : int, RandomState or None
        Draws the rows of "sampled"; starts a model that is not fitted and has no `random_state` of its own.

    Attributes
    ----------
    model_ : fitted mixture or hidden Markov model
    information_ : (p, p) array
        F, in the coordinates of `scores`: the identity for one component, between 0 and the identity for several.
    rank_ : int
        Number of features: directions of theta that p(x) identifies. Those with an eigenvalue of F up to 1e-10 are
        left out: of them less than that share of what could be known remains when components are not seen.
    root_ : (p, rank_) array
        R with R R^T = F^-1 on these directions, symmetric when they are all; the features are U R.
    n_features_in_, feature_names_in_
        The columns of the model.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from mixent import GaussianMixture
    >>> from mixent.med.fisher import FisherKernel
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
        random_state: Any = None,
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
        theirs = Can(None, "as for its model, which gets y")
        return able(
            tags,
            reads_tables=True,
            missing="the score is that of the density of what was observed",
            weights=YES,
            soft_labels=theirs,
            absent_labels=theirs,
            mixed=no("a row is a sequence of one variable") if isinstance(model, SequenceModel) else YES,
            explanations=NOTHING,
            shifted_priors=NOTHING,
            saved=YES,
        )

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the mixture unless it is fitted, and find the information.

        Parameters
        ----------
        X : table of n rows
            Array or DataFrame; NaN, None or null are missing, text columns are categories. For a fitted model other
            than with information="empirical" only its columns are looked at.
        y : (n,) labels, optional
            For a classifier that is not fitted.
        sample_weight : (n,) array, optional
            Counts: weight two is the row twice.

        Returns
        -------
        self
        """
        check_choice("information", self.information, INFORMATIONS)
        check_count("n_samples", self.n_samples)
        check_positive("ridge", self.ridge, zero=True)
        self.model_, X = self._fitted(X, y, sample_weight)
        table = self._read(X)
        weight = read_weights(sample_weight, table.n_rows)
        self.information_ = self._information(self._coordinates(), table, weight)
        self.root_ = inverse_root(self.information_, self.ridge)
        self.rank_ = self.root_.shape[1]
        return self

    def _unwrapped(self) -> Any:
        return self.model.estimator if isinstance(self.model, FrozenEstimator) else self.model

    def _fitted(self, X: Any, y: Any, sample_weight: Any) -> tuple[MixtureModel | SequenceModel, Any]:
        """The fitted model, and X: read, where the model was fitted to it."""
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
        if _is_fitted(model):
            return copy.copy(model), X  # what becomes of the user's own is no matter
        model = clone(model)
        if model.random_state is None:
            model.set_params(random_state=self.random_state)
        table = read_features(SimpleNamespace(), X, reset=True, categorical=model.categorical)
        return model.fit(table, y, sample_weight=sample_weight), table

    def _information(self, coordinates: Any, table: Table, weight: Array | None) -> Array:
        n_live, p = coordinates.n_live, coordinates.size
        if self.information == "empirical":
            scores = self._each(coordinates, self._taking_part(table))
            weight = np.ones(len(scores)) if weight is None else weight
            return scores.T @ (scores * (weight / weight.sum())[:, None])
        if self.information == "analytic" and n_live > 1:
            raise ValueError(
                f"information='analytic' needs a model of one component; this one has {n_live}. Set "
                "information='sampled'"
            )
        if self.information != "sampled" and n_live == 1:
            return np.eye(p)  # the coordinates were chosen so
        if self.n_samples < p:
            raise ValueError(
                f"n_samples must be at least the number of free parameters, {p}; got {self.n_samples}. Draw more, or "
                "give the model fewer components or a simpler covariance"
            )
        if isinstance(coordinates, SequenceScores):
            return self._sampled_sequences(coordinates)
        return self._sampled(coordinates)

    def _sampled_sequences(self, coordinates: SequenceScores) -> Array:
        """sum_c p_c E_c[U U^T], from as many sequences of each class."""
        model, length = self.model_, self.model_.n_features_in_
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        n_rows = -(-self.n_samples // len(coordinates.chains))
        total = np.zeros((coordinates.size, coordinates.size))
        for share, chain in zip(coordinates.class_prior, model._chains()):
            X, codes, _ = model._draw(chain, n_rows, length, rng)
            drawn = in_columns(Sequences(Block(X, codes), np.full(n_rows, length)), model.varying_)
            scores = self._each(coordinates, drawn)
            total += share / n_rows * (scores.T @ scores)
        return total

    def _sampled(self, coordinates: MixtureScores) -> Array:
        """sum_k w_k E_k[U U^T], from as many rows of each component: the light ones too are to be known."""
        problem, params = self.model_.problem_, self.model_.params_
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))
        weights = params.weights.sum(axis=0)
        n_rows = -(-self.n_samples // len(coordinates.live))
        total = np.zeros((coordinates.size, coordinates.size))
        for k in coordinates.live:
            drawn = Block(*problem.family.sample(params.components, np.full(n_rows, k), rng))
            scores = self._each(coordinates, drawn)
            total += weights[k] / (weights.sum() * n_rows) * (scores.T @ scores)
        return total

    @property
    def schema_(self) -> Schema:
        """The model's columns."""
        return self.model_.schema_

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return self.model_.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns, where the model saw any."""
        return self.model_.feature_names_in_

    @property
    def _n_features_out(self) -> int:
        return self.rank_

    def _read(self, X: Any) -> Table:
        check_is_fitted(self)
        return read_features(self, X, reset=False)

    def _coordinates(self) -> MixtureScores | SequenceScores:
        model = self.model_
        if not isinstance(model, SequenceModel):
            return MixtureScores(model.problem_, model.params_)
        prior = getattr(model, "class_prior_", np.ones(1))
        held = not isinstance(getattr(model, "class_prior", "empirical"), str)
        return SequenceScores(model._chains(), prior, model.n_features_in_, held=held)

    def _taking_part(self, table: Table) -> Block | Sequences:
        """The columns that take part."""
        model = self.model_
        return in_columns(from_rows(table), model.varying_) if isinstance(model, SequenceModel) else model._block(table)

    def _each(self, coordinates: Any, block: Any, root: Array | None = None) -> Array:
        """Scores (n, p), or features (n, rank), block by block."""
        if isinstance(coordinates, SequenceScores):
            return _found(self._each_sequence(coordinates, block, root))

        def rows(ready: Any, part: Block) -> Array:
            scores = coordinates.rows(ready, part)
            return scores if root is None else scores @ root

        model, width = self.model_, coordinates.size if root is None else root.shape[1]
        return _found(each_row(model.problem_, model.params_, block, rows, width, model.n_jobs))

    def _each_sequence(self, coordinates: SequenceScores, sequences: Sequences, root: Array | None) -> Array:
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

    def scores(self, X: Any) -> Array:
        """The gradients U_x of log p(x), in coordinates in which F were the identity if components were seen.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, p) array: weights first, then means and covariances, then category probabilities.
        """
        table = self._read(X)
        return self._each(self._coordinates(), self._taking_part(table))

    def transform(self, X: Any) -> Array:
        """Features whose inner products are the Fisher kernel: F^(-1/2) U_x, of unit variance under the model.

        Parameters
        ----------
        X : table of n rows

        Returns
        -------
        (n, rank_) array.
        """
        return self._features(X)

    def _features(self, X: Any) -> Array:
        table = self._read(X)
        return self._each(self._coordinates(), self._taking_part(table), self.root_)

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """The kernel of every row of X with every row of Y.

        Parameters
        ----------
        X : table of n rows
        Y : table of m rows, optional
            None stands for X.

        Returns
        -------
        (n, m) array.
        """
        features = self._features(X)  # not `transform`: `set_output` may make a DataFrame of it
        return features @ (features if Y is None else self._features(Y)).T


def _is_fitted(model: Any) -> bool:
    return any(hasattr(model, name) for name in ("params_", "chain_", "chains_"))


def _check_sequences(model: SequenceModel) -> None:
    """Rows of X are to be sequences, with coordinates that all their steps share."""
    if getattr(model, "emissions", "fitted") != "fitted":
        raise ValueError(
            "FisherKernel needs the emission distributions of the states, which emissions='precomputed' lacks"
        )
    if model.transitions != "shared":
        raise ValueError("FisherKernel needs a hidden Markov model with one transition matrix: transitions='shared'")
    if _is_fitted(model) and not model.by_row_:
        raise ValueError("FisherKernel needs a hidden Markov model whose rows are sequences, fitted without lengths")


def _found(scores: Array) -> Array:
    lost = np.flatnonzero(~np.isfinite(scores).all(axis=1))
    if len(lost):
        raise ValueError(
            f"row {lost[0]} lies so far from every component that its score is not finite; correct or remove it"
        )
    return scores


def inverse_root(information: Array, ridge: float = 0.0) -> Array:
    """R (p, rank) with  R R^T = (F + ridge I)^-1  on the directions with information; symmetric when these are all."""
    values, vectors = np.linalg.eigh(information)
    known = values > FLAT
    root = vectors[:, known] / np.sqrt(values[known] + ridge)
    # symmetric: feature i is coordinate i freed of the others, whatever the signs of the eigenvectors
    return root @ vectors.T if known.all() else root
