"""Docstrings: every public class and function is documented completely, in numpydoc form."""

import inspect
import re
from dataclasses import is_dataclass
from importlib import import_module

import pytest
from sklearn.base import OutlierMixin
from tests.subjects import PUBLIC, SUBJECTS

import mixent
from mixent.base.options import Options

CLASSES = [getattr(mixent, name) for name in mixent.__all__ if inspect.isclass(getattr(mixent, name))]
CLASSES = [cls for cls in CLASSES if not issubclass(cls, Warning)]
FITTED = [cls for cls in CLASSES if hasattr(cls, "predict")]  # the others transform, and maximize nothing
CLOSED_FORM = [mixent.KernelFisherClassifier, mixent.TunedClassifier]  # and grids: nothing is fitted in steps
FACTS = [cls for cls in CLASSES if is_dataclass(cls) or issubclass(cls, Options)]  # given by the user, not fitted
FUNCTIONS = [getattr(mixent, name) for name in mixent.__all__ if inspect.isfunction(getattr(mixent, name))]


def sections(cls):
    """The sections of a class's docstring: title to text."""
    parts = re.split(r"(?m)^([A-Z][A-Za-z ]+)\n-+\n", inspect.getdoc(cls))
    return dict(zip(parts[1::2], parts[2::2]))


def items(section):
    """The names that a section defines: `a, b : type` at the start of a line."""
    names = re.findall(r"(?m)^(\w[\w., ]*?)(?: : .*)?$", section)
    return {name.strip() for line in names for name in line.split(",")}


def public_members(cls):
    """Methods and properties defined by mixent itself."""
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        function = member.fget if isinstance(member, property) else member
        if function.__module__.startswith("mixent"):
            yield name, member


@pytest.mark.parametrize("cls", FITTED)
def test_an_estimator_states_its_objective(cls):
    doc = inspect.getdoc(cls)
    assert "Maximizes" in doc and "log" in doc
    assert bool(re.search("never (falls|decreases)", doc)) is (cls not in CLOSED_FORM)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_docstring_has_its_sections(cls):
    wanted = ["Parameters", "Attributes", "See Also", "References", "Examples"]
    present = [title for title in sections(cls) if title in wanted]
    if cls in FACTS:
        wanted = [title for title in present if title != "Attributes"]
        assert {"Parameters", "Examples"} <= set(present)
    assert present == wanted


@pytest.mark.parametrize("cls", CLASSES)
def test_parameters_are_those_of_the_constructor(cls):
    assert items(sections(cls)["Parameters"]) == set(inspect.signature(cls).parameters)


@pytest.mark.parametrize("name", PUBLIC)
def test_every_fitted_attribute_is_documented(name):
    fitted = SUBJECTS[name].usual
    public = {attribute for attribute in vars(fitted) if re.fullmatch("[A-Za-z][A-Za-z0-9_]*_", attribute)}
    assert public <= items(sections(type(fitted))["Attributes"])


@pytest.mark.parametrize("cls", [cls for cls in CLASSES if cls not in FACTS])
def test_see_also_names_exist_and_references_have_a_year(cls):
    for line in re.findall(r"(?m)^(\S+) : \S", sections(cls)["See Also"]):
        module, _, attribute = line.rpartition(".")
        assert hasattr(import_module(module or "mixent"), attribute), line
    assert re.findall(r"(?m)^(\S+) : \S", sections(cls)["See Also"])
    assert re.search(r"\((?:18|19|20)\d\d\)", sections(cls)["References"])


@pytest.mark.parametrize("cls", CLASSES)
def test_every_public_method_has_a_docstring(cls):
    members = dict(public_members(cls))
    wanted = {"fit", "predict", "predict_proba"} if cls in FITTED else {"fit", "transform"}
    if cls in FACTS:
        wanted = set()
    if issubclass(cls, OutlierMixin):
        wanted = {"fit", "predict", "score_samples", "decision_function"}
    assert wanted <= set(members)
    if cls.__module__.startswith("mixent.mixtures") and cls not in FACTS:
        assert {"score_samples", "sample", "impute", "marginal"} <= set(members)
    for name, member in members.items():
        doc = inspect.getdoc(member)
        assert doc, f"{cls.__name__}.{name}"
        if inspect.isfunction(member) and len(inspect.signature(member).parameters) > 2:
            assert "Parameters\n----" in doc, f"{cls.__name__}.{name}"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_public_function_has_a_docstring(function):
    doc = inspect.getdoc(function)
    assert "Parameters\n----" in doc
    for name in inspect.signature(function).parameters:
        assert name in doc
