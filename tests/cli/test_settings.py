"""`--set key=value`: what is typed becomes a parameter; what does not exist is refused with the closest name."""

import pytest
import typer

from mixent.base.registry import entry_of
from mixent.cli.parsing import read_settings, read_value
from mixent.cli.settings import check_can_save, make_estimator

COMMON = {"random_state": 3, "n_jobs": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("8", 8),
        ("0.5", 0.5),
        ("-1e-3", -1e-3),
        ("auto", "auto"),
        ("dic_robust", "dic_robust"),
        ("01", "01"),
        ("none", None),
        ("None", None),
        ("true", True),
        ("False", False),
        ("'none'", "none"),
        ("1,2", [1, 2]),
        ("(1, 2)", (1, 2)),
        ("a,b", ["a", "b"]),
        ("a,", ["a"]),
        ("a, 2", ["a", 2]),
        ("a,b;c,d", [["a", "b"], ["c", "d"]]),
        ("[('a', 'b')]", [("a", "b")]),
        ("{'yes': 2, 'no': 1}", {"yes": 2, "no": 1}),
        ("", ""),
        ("a=b", "a=b"),
    ],
)
def test_values(text, value):
    found = read_value("key", text)
    assert found == value and type(found) is type(value)


def make(*texts, name="majority"):
    return make_estimator(name, read_settings(texts), COMMON)


def test_parameters_groups_and_short_forms(majority):
    assert type(make()) is majority and make().random_state == 3
    assert make("strength=2.0").strength == 2.0
    assert make("search.most=5").search.most == 5
    assert make("search=many").get_params()["search__most"] == 9
    found = make("search.order=down", "search=all")  # the order of the settings does not matter
    assert found.search.order == "down"


# --- models inside others ---------------------------------------------------------------------------------------------


def test_bases_by_name_with_settings_of_their_own():
    stack = make("estimators=mixture,med", "mixture.n_components=2", name="stack")
    (first, mixture), (second, med) = stack.estimators
    assert (first, second) == ("mixture", "med") and [entry_of(m).name for m in (mixture, med)] == ["mixture", "med"]
    assert mixture.n_components == 2
    assert stack.random_state == mixture.random_state == med.random_state == 3 and mixture.n_jobs == 1
    usual = make("mixture.n_components=2", name="stack")
    assert dict(usual.estimators)["mixture"].n_components == 2


def test_answers_in_columns_beside_models():
    stack = make("estimators=['mixture', ('vendor', ['p_no', 'p_yes']), ('panel', 'panel')]", name="stack")
    assert [name for name, _ in stack.estimators] == ["mixture", "vendor", "panel"]
    assert stack.estimators[1][1] == ["p_no", "p_yes"] and stack.estimators[2][1] == "panel"


def test_one_base_of_boosting_and_the_stages_of_one_ensemble():
    boosting = make("estimator=mixture", "estimator.n_components=2", name="adaboost")
    assert boosting.estimator.n_components == 2 and boosting.estimator.random_state == 3
    stack = make("estimators=adaboost", "estimators.n_estimators=4", name="stack")
    assert entry_of(stack.estimators).name == "adaboost" and stack.estimators.n_estimators == 4


def test_features_of_a_kernel_and_a_kernel_by_its_own_name():
    assert entry_of(make("kernel=fisher-kernel", name="med").kernel).task == "features"
    assert make("kernel=rbf", name="med").kernel == "rbf"


def test_bases_of_other_libraries(monkeypatch):
    from importlib import util

    stack = make("estimators=mixture,logistic,naive-bayes", name="stack")
    kinds = [type(base.estimator).__name__ for _, base in stack.estimators[1:]]
    assert kinds == ["LogisticRegression", "GaussianNB"]
    check_can_save(stack)
    find_spec = util.find_spec
    monkeypatch.setattr(util, "find_spec", lambda name, *rest: None if name == "skops" else find_spec(name, *rest))
    with pytest.raises(typer.BadParameter, match="skops"):
        check_can_save(stack)
    check_can_save(make("estimators=mixture,med", name="stack"))


def test_a_parameter_of_a_short_form_that_is_set_too():
    assert make("training=conditional", "training.blend=0.5", name="mixture").training.blend == 0.5
