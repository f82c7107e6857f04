"""The classifiers that are combined: a list, columns of the table, the stages of an ensemble."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from mixent import AdaBoostM1Classifier, MaxEntStackingClassifier, WeightBoostClassifier
from mixent.base.delegation import aligned
from mixent.ensemble import OutputColumns
from mixent.ensemble.inputs import Inputs
from mixent.ensemble.members import (
    EnsembleMembers,
    NamedMembers,
    is_ensemble,
    output_of,
    read_members,
    stage_proba,
    trained,
)
from mixent.ensemble.pmfs import hardened, one_hot, pmf

NAN = np.nan
TEXT = np.array(["low", "mid", "top"])


def same(ours, theirs):
    np.testing.assert_array_equal(np.asarray(ours), np.asarray(theirs))


class Silent(ClassifierMixin, BaseEstimator):
    """Says what it was told to, NaN included; has no probabilities."""

    def __init__(self, words=None):
        self.words = words

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.array([self.words] * len(X), dtype=object)


# reading what the user gave


def test_names_are_the_users_or_the_kinds_numbered_where_there_are_several():
    bases = [GaussianNB(), ("mine", GaussianNB()), RidgeClassifier(), GaussianNB(), ["v", "w"]]
    members = read_members(bases, None, False)
    assert members.names == ("gaussiannb-1", "mine", "ridgeclassifier", "gaussiannb-2", "outputcolumns")
    assert members.bases[0] is bases[0] and members.bases[1] is bases[1][1]
    assert isinstance(members.bases[4], OutputColumns) and members.bases[4].columns == ["v", "w"]


def test_columns_are_read_as_classifiers_and_are_no_input():
    given = [
        ("a", "v"),
        ("b", 3),
        ("c", [0, 1]),
        ("d", {"yes": "p", "no": "q"}),
        ("e", GaussianNB()),
        ("f", np.int64(7)),
    ]
    members = read_members(given, None, False)
    assert members.used == ("v", 3, 0, 1, "p", "q", 7)
    assert EnsembleMembers(RandomForestClassifier()).used == ()


def test_one_ensemble_is_its_members_and_a_list_of_ensembles_is_a_list():
    forest = RandomForestClassifier()
    assert isinstance(read_members(forest, None, False), EnsembleMembers) and is_ensemble(AdaBoostM1Classifier())
    assert read_members([forest], None, False).names == ("randomforestclassifier",)
    assert not is_ensemble(RandomForestClassifier) and not is_ensemble(GaussianNB())


def test_prefit_asks_for_fitted_ones(blobs):
    fitted = GaussianNB().fit(*blobs)
    assert read_members([fitted, ("c", [0, 1])], None, True).bases[0] is fitted
    with pytest.raises(ValueError, match="cv='prefit'"):
        read_members([("a", fitted), ("b", GaussianNB())], None, True)
    with pytest.raises(ValueError, match="'RandomForestClassifier'"):
        read_members(RandomForestClassifier(), None, True)
    assert read_members([FrozenEstimator(fitted)], None, True).names == ("frozenestimator",)


# training


def test_a_copy_is_trained_and_takes_the_seed_only_where_it_has_none(blobs):
    X, y = blobs
    loose, own = DecisionTreeClassifier(splitter="random"), DecisionTreeClassifier(splitter="random", random_state=7)
    assert trained(loose, X, y, None, 3).random_state == 3 and trained(own, X, y, None, 3).random_state == 7
    assert loose.random_state is None and not hasattr(loose, "classes_")
    inner = trained(make_pipeline(StandardScaler(), DecisionTreeClassifier()), X, y, None, 3)
    assert inner.get_params()["decisiontreeclassifier__random_state"] == 3
    boosted = trained(AdaBoostM1Classifier(DecisionTreeClassifier(max_depth=1), n_estimators=2), X, y, None, 3)
    assert boosted.random_state == 3 and boosted.get_params()["estimator__random_state"] == 3


def test_two_of_a_kind_draw_differently(blobs):
    X, y = blobs
    trees = [DecisionTreeClassifier(splitter="random", max_depth=2) for _ in range(2)]
    one, two = read_members(trees, None, False).fit(Inputs(X), y, None, 0)
    assert (one.predict_proba(X) != two.predict_proba(X)).any()


def test_weights_go_where_they_are_taken(blobs):
    X, y = blobs
    weight = np.random.default_rng(0).uniform(0.5, 3.0, len(y))
    alone = GaussianNB().fit(X, y, weight)
    same(trained(GaussianNB(), X, y, weight, 0).theta_, alone.theta_)
    assert not np.allclose(trained(GaussianNB(), X, y, None, 0).theta_, alone.theta_)
    piped = trained(make_pipeline(StandardScaler(), GaussianNB()), X, y, weight, 0)
    scaled = StandardScaler().fit_transform(X)
    same(piped[-1].theta_, GaussianNB().fit(scaled, y, weight).theta_)
    assert trained(Silent(1), X, y, weight, 0).predict(X)[0] == 1  # takes none


def test_each_sees_its_own_columns(blobs):
    X, y = blobs
    X = np.column_stack([X, X[:, 0] ** 2])
    members = NamedMembers(("a", "b"), (GaussianNB(), GaussianNB()), {"b": [2, 0]})
    fitted = members.fit(Inputs(X), y, None, 0)
    assert [m.n_features_in_ for m in fitted] == [3, 2]
    outputs = members.outputs(fitted, Inputs(X), "auto")
    assert outputs.names == ("a", "b") and outputs.n_rows == 90
    np.testing.assert_allclose(outputs.values[1], GaussianNB().fit(X[:, [2, 0]], y).predict_proba(X[:, [2, 0]]))
    named = NamedMembers(("b",), (GaussianNB(),), {"b": ["r", "p"]})
    table = pd.DataFrame(X, columns=["p", "q", "r"])
    assert named.fit(Inputs(table), y, None, 0)[0].feature_names_in_.tolist() == ["r", "p"]


# what one says


def test_soft_hard_and_either(blobs):
    X, y = blobs
    soft, hard = GaussianNB().fit(X, TEXT[y]), RidgeClassifier().fit(X, TEXT[y])
    labels, values = output_of(soft, X, "auto", "a")
    same(labels, TEXT)
    np.testing.assert_allclose(values, soft.predict_proba(X), rtol=1e-12)
    same(output_of(soft, X, "soft", "a")[1], values)
    for model, decisions in ((soft, "hard"), (hard, "auto"), (hard, "hard")):
        labels, values = output_of(model, X, decisions, "a")
        same(values, model.predict(X)[:, None] == TEXT)
    with pytest.raises(ValueError, match="predict_proba"):
        output_of(hard, X, "soft", "r")


@pytest.mark.parametrize("word", [None, NAN, "never seen"])
def test_no_label_or_an_unknown_one_is_an_abstention(word, blobs):
    X, _ = blobs
    model = Silent(word).fit(X[:3], TEXT)
    assert np.isnan(output_of(model, X, "auto", "s")[1]).all()


def test_probabilities_are_checked_and_gaps_are_abstentions():
    given = np.array([[0.2, 0.8], [NAN, 0.5], [0.0, 0.0], [0.5, 0.500004]])
    result = pmf(given, "c")
    same(np.isnan(result), np.array([[0, 0], [1, 1], [1, 1], [0, 0]], bool))
    np.testing.assert_allclose(result[[0, 3]].sum(axis=1), 1.0, rtol=1e-15)
    for bad in ([0.7, 0.7], [1.5, -0.5], [np.inf, 0.0], [0.5, 0.6]):
        with pytest.raises(ValueError, match="'c'"):
            pmf(np.array([[0.2, 0.8], bad]), "c")


def test_decisions_are_one_hot():
    same(hardened(np.array([[0.2, 0.8], [NAN, NAN], [0.6, 0.4]])), np.array([[0, 1], [NAN, NAN], [1, 0]]))
    result = one_hot(np.array(["b", None, "a", "?", ""], dtype=object), np.array(["a", "b"]))
    same(result, np.array([[0, 1], [NAN, NAN], [1, 0], [NAN, NAN], [NAN, NAN]]))


def test_a_smaller_alphabet_is_the_larger_one_with_zeros():
    values = np.array([[0.3, 0.7], [NAN, NAN]])
    result = aligned(values, np.array(["c", "a"]), np.array(["a", "b", "c"]))
    same(result, np.array([[0.7, 0.0, 0.3], [NAN] * 3]))
    assert aligned(values, np.array(["c", "a"]), np.array(["c", "a"])) is values


# stages


ENSEMBLES = {
    "m1": AdaBoostM1Classifier(GaussianNB(), n_estimators=4, random_state=0),
    "weight": WeightBoostClassifier(GaussianNB(), n_estimators=4, random_state=0),
    "bagging": BaggingClassifier(GaussianNB(), n_estimators=4, random_state=0),
    "columns": BaggingClassifier(GaussianNB(), n_estimators=4, max_features=1, random_state=0),
    "forest": RandomForestClassifier(4, max_depth=2, random_state=0),
    "extra": ExtraTreesClassifier(4, max_depth=2, random_state=0),
    "ada": AdaBoostClassifier(DecisionTreeClassifier(max_depth=1), n_estimators=4, random_state=0),
    "ada nb": AdaBoostClassifier(GaussianNB(), n_estimators=4, random_state=0),
}


@pytest.mark.parametrize("kind", ENSEMBLES)
@pytest.mark.parametrize("names", [np.arange(3), np.arange(1, 4), TEXT])
def test_stages_say_the_same_whatever_the_classes_are_called(kind, names, blobs):
    X, y = blobs
    plain = clone(ENSEMBLES[kind]).fit(X, y)
    fitted = clone(ENSEMBLES[kind]).fit(X, names[y])
    values = stage_proba(fitted, X)
    assert len(values) == len(stage_proba(plain, X)) > 1
    for ours, theirs in zip(values, stage_proba(plain, X)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
        np.testing.assert_allclose(ours.sum(axis=1), 1.0, rtol=1e-12)
    outputs = EnsembleMembers(fitted).outputs(fitted, Inputs(X), "hard")
    word = "stage" if hasattr(fitted, "stage_proba") else "member"
    assert outputs.names == tuple(f"{word} {m + 1}" for m in range(len(values)))
    for value, alphabet, proba in zip(outputs.values, outputs.classes, values):
        same(alphabet, names)
        same(value, np.eye(3)[proba.argmax(axis=1)])


@pytest.mark.parametrize("kind", ["bagging", "columns", "forest", "extra"])
def test_the_mean_over_members_is_what_scikit_learn_says(kind, blobs):
    X, y = np.column_stack([blobs[0], blobs[0] ** 2]), blobs[1]
    ensemble = clone(ENSEMBLES[kind])
    if kind == "columns":
        ensemble.set_params(max_features=3)  # in an order of their own
    fitted = clone(ensemble).fit(X, TEXT[y])
    np.testing.assert_allclose(np.mean(stage_proba(fitted, X), axis=0), fitted.predict_proba(X), rtol=1e-12)
    frame = pd.DataFrame(X, columns=["p", "q", "r", "s"])
    named = ensemble.fit(frame, TEXT[y])
    np.testing.assert_allclose(np.mean(stage_proba(named, frame), axis=0), named.predict_proba(frame), rtol=1e-12)


def test_a_member_that_has_not_seen_a_class_gives_it_nothing(blobs):
    """Bagging draws rows: of a rare class a member may have none."""
    X, y = blobs
    rows = np.flatnonzero((y != 1) | (np.arange(90) < 6))
    drawn = BaggingClassifier(KNeighborsClassifier(3), n_estimators=12, max_samples=0.2, random_state=0)
    fitted = drawn.fit(X[rows], TEXT[y[rows]])
    seen = [np.asarray(member.classes_) for member in fitted.estimators_]
    assert any(len(s) == 2 for s in seen)
    for classes, value in zip(seen, stage_proba(fitted, X)):
        for c in range(3):
            assert (c in classes) or (value[:, c] == 0).all()
    np.testing.assert_allclose(np.mean(stage_proba(fitted, X), axis=0), fitted.predict_proba(X), rtol=1e-12)


def test_members_may_be_pipelines(blobs):
    X, y = blobs
    fitted = BaggingClassifier(make_pipeline(StandardScaler(), GaussianNB()), n_estimators=3, random_state=0).fit(X, y)
    values = stage_proba(fitted, X)
    assert len(values) == 3
    np.testing.assert_allclose(np.mean(values, axis=0), fitted.predict_proba(X), rtol=1e-12)


def test_an_ensemble_of_regressors_is_refused_in_words(blobs):
    fitted = GradientBoostingClassifier(n_estimators=2, random_state=0).fit(*blobs)
    with pytest.raises(ValueError, match="GradientBoostingClassifier"):
        stage_proba(fitted, blobs[0])


# columns


def test_one_column_is_the_label_that_was_given():
    X = pd.DataFrame({"vote": ["yes", "unsure", None, "no", ""], "p": 0.0})
    box = OutputColumns("vote").fit(X, [0, 1, 0, 1, 0])
    assert box.classes_.tolist() == ["no", "unsure", "yes"] and box.used == ("vote",)
    same(box.predict_proba(X), np.array([[0, 0, 1], [0, 1, 0], [NAN] * 3, [1, 0, 0], [NAN] * 3]))
    assert box.predict(X).tolist() == ["yes", "unsure", None, "no", None]
    assert box.predict(X.iloc[:2]).dtype.kind in "UT"
    never = pd.DataFrame({"vote": ["maybe"]})
    assert np.isnan(box.predict_proba(never)).all()


def test_a_numbered_column_of_numbers_is_labels_too():
    X = np.array([[0.5, 2.0], [0.1, 5.0], [0.3, NAN]])
    box = OutputColumns(1).fit(X, [0, 1, 0])
    assert box.classes_.tolist() == [2.0, 5.0]
    same(box.predict_proba(X), np.array([[1, 0], [0, 1], [NAN, NAN]]))


def test_a_list_is_probabilities_of_the_sorted_classes_and_a_dict_names_them():
    X = pd.DataFrame({"p": [0.25, 1.0, NAN], "q": [0.75, 0.0, None]})
    listed = OutputColumns(["q", "p"]).fit(X, ["yes", "no", "yes"])
    named = OutputColumns({"yes": "p", "no": "q"}).fit(X, ["yes", "no", "yes"])
    assert listed.classes_.tolist() == named.classes_.tolist() == ["no", "yes"]
    for box in (listed, named):
        same(box.predict_proba(X), np.array([[0.75, 0.25], [0.0, 1.0], [NAN, NAN]]))
        assert box.predict(X).tolist() == ["no", "yes", None]
        assert set(box.used) == {"p", "q"}
    more = OutputColumns({"b": "p", "a": "q"}).fit(X, [0, 1, 2])  # its own labels, other than the classes
    assert more.classes_.tolist() == ["a", "b"]


def test_numbers_beside_a_word_stay_numbers():
    X = pd.DataFrame({"vote": pd.Series([0, 1, "unsure", 1], dtype=object)})
    box = OutputColumns("vote").fit(X, [0, 1, 0, 1])
    assert not np.isnan(box.predict_proba(X)).any()
    assert len(set(box.predict(X).tolist())) == 3 and {0, 1} <= set(box.classes_.tolist())


def test_a_row_of_zeros_is_an_abstention_hard_or_soft():
    result = np.array([[0.0, 0.0], [0.25, 0.75]])
    for rows in (hardened(result), pmf(result, "a")):
        assert np.isnan(rows[0]).all() and rows[1].argmax() == 1


def test_classifiers_that_are_trained_do_not_see_the_answers_of_others(blobs):
    X, y = blobs
    table = pd.DataFrame(X, columns=["a", "b"]).assign(said=y)
    seen = MaxEntStackingClassifier([("nb", GaussianNB()), ("box", "said")], cv=3, random_state=0).fit(table, y)
    assert seen.fitted_[0].feature_names_in_.tolist() == ["a", "b"]
    plain = MaxEntStackingClassifier([("nb", GaussianNB()), ("box", 2)], cv=3, random_state=0)
    plain.fit(table.to_numpy(), y)
    np.testing.assert_allclose(plain.predict_proba(table.to_numpy()), seen.predict_proba(table), atol=1e-12)
    named = MaxEntStackingClassifier([("nb", GaussianNB()), ("box", "said")], cv=3, inputs={"nb": ["b", "said"]})
    assert named.fit(table, y).fitted_[0].n_features_in_ == 2
    with pytest.raises(ValueError, match="'nb'"):
        MaxEntStackingClassifier([("nb", GaussianNB()), ("box", "said")]).fit(table[["said"]], y)


def test_probabilities_in_columns_are_of_all_classes_of_soft_labels():
    rng = np.random.default_rng(0)
    soft = rng.dirichlet([5.0, 3.0, 0.3], 40)
    soft[:, 2] = np.minimum(soft[:, 2], 0.2)
    soft /= soft.sum(axis=1, keepdims=True)
    assert set(soft.argmax(axis=1)) == {0, 1}
    model = MaxEntStackingClassifier([("p", [0, 1, 2])], cv="prefit", prior_variance=1.0).fit(
        rng.dirichlet([2, 2, 2], 40), soft
    )
    assert model.base_classes_[0].tolist() == [0, 1, 2]


def test_one_column_of_probabilities_is_enough_for_two_classes():
    X = pd.DataFrame({"p": [0.25, 1.0, None]})
    fitted = OutputColumns({"yes": "p"}).fit(X, ["no", "yes", "no"])
    assert fitted.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(fitted.predict_proba(X), [[0.75, 0.25], [0.0, 1.0], [NAN, NAN]])
    other = OutputColumns({"maybe": "p"}).fit(X, ["no", "yes", "no"])
    assert other.classes_.tolist() == ["maybe"]
