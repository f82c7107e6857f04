"""What users see first: names, docstrings, and how long `import mixent` takes."""

import inspect
import json
import re
import subprocess
import sys
from dataclasses import is_dataclass

import pytest
from sklearn.base import OutlierMixin

import mixent
from mixent.base.options import Options

CLASSES = [getattr(mixent, name) for name in mixent.__all__ if inspect.isclass(getattr(mixent, name))]
FITTED = [cls for cls in CLASSES if hasattr(cls, "predict")]  # the others transform, and maximize nothing
FACTS = [cls for cls in CLASSES if is_dataclass(cls) or issubclass(cls, Options)]  # given by the user, not fitted
FUNCTIONS = [getattr(mixent, name) for name in mixent.__all__ if inspect.isfunction(getattr(mixent, name))]


def public_members(cls):
    """Methods and properties defined by mixent itself."""
    for name in dir(cls):
        member = inspect.getattr_static(cls, name)
        if name.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        function = member.fget if isinstance(member, property) else member
        if function.__module__.startswith("mixent"):
            yield name, member


def test_the_public_names_are_these():
    assert set(mixent.__all__) == {
        "__version__",
        "AdaBoostM1Classifier",
        "Calibration",
        "FisherKernel",
        "Fuser",
        "GaussianMixture",
        "HMMClassifier",
        "HMMStackingClassifier",
        "HiddenMarkovModel",
        "KernelFisherClassifier",
        "MEDBayesNetClassifier",
        "MEDClassifier",
        "MEDGaussianClassifier",
        "MEDNoveltyDetector",
        "MEDTreeClassifier",
        "MaxEntClassifier",
        "MaxEntJoint",
        "MaxEntStackingClassifier",
        "MixtureClassifier",
        "ParzenClassifier",
        "SharedMixtureClassifier",
        "Source",
        "TunedClassifier",
        "WeightBoostClassifier",
        "capabilities",
        "compare",
        "load",
        "save",
    }
    assert dir(mixent) == sorted(mixent.__all__)
    with pytest.raises(AttributeError, match="'mixent'"):
        mixent.Gaussian  # noqa: B018


@pytest.mark.parametrize("cls", FITTED)
def test_an_estimator_says_what_it_maximizes(cls):
    doc = inspect.getdoc(cls)
    assert re.search("Maximi[sz]es", doc) and "log" in doc
    assert re.search("never (falls|decreases)", doc)


@pytest.mark.parametrize("cls", CLASSES)
def test_a_docstring_has_its_sections(cls):
    doc = inspect.getdoc(cls)
    for section in ("Parameters", "Examples") if cls in FACTS else ("Parameters", "Attributes", "Examples"):
        assert f"{section}\n{'-' * len(section)}" in doc


@pytest.mark.parametrize("cls", CLASSES)
def test_every_constructor_option_is_documented(cls):
    doc = inspect.getdoc(cls)
    parameters = doc[doc.index("Parameters\n") : doc.index("Examples\n" if cls in FACTS else "Attributes\n")]
    for name in inspect.signature(cls).parameters:
        assert any(name in line.split(" : ")[0].split(", ") for line in parameters.splitlines()), name


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


def seconds(statement):
    """Processor time of a fresh interpreter, start to end: other work on the machine does not count."""
    code = f"import time\n{statement}\nprint(time.process_time())"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout)


def test_import_is_cheap():
    """At most 1.3 times what scikit-learn's own base and scipy.linalg take; best of three, in turns."""
    statements = (
        "import sklearn.base, scipy.linalg",
        "import mixent",
        "from mixent import GaussianMixture, MixtureClassifier",
    )
    best = [min(times) for times in zip(*([seconds(s) for s in statements] for _ in range(3)))]
    assert best[1] <= 1.3 * best[0]
    assert best[2] <= 1.3 * best[0]


def test_import_pulls_in_no_table_plot_or_terminal_library():
    """Beyond what scikit-learn loads by itself."""

    def loaded(statement):
        code = f"{statement}\nimport sys, json\nprint(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
        out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
        return set(json.loads(out.splitlines()[-1]))

    heavy = {"matplotlib", "rich", "typer", "click", "narwhals", "pandas", "polars", "pyarrow"}
    theirs = loaded("import sklearn.base, sklearn.cluster, sklearn.model_selection, scipy.linalg")
    assert not heavy & loaded("import mixent")
    assert not heavy & (loaded("from mixent import GaussianMixture, MixtureClassifier, save, load") - theirs)
