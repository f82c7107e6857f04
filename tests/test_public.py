"""What users see first: names, and how long `import mixent` takes."""

import json
import os
import subprocess
import sys

import pytest

import mixent


def test_the_public_names_are_these():
    assert set(mixent.__all__) == {
        "__version__",
        "AdaBoostM1Classifier",
        "Calibration",
        "DataWarning",
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
        "config_context",
        "explain",
        "load",
        "save",
    }
    assert dir(mixent) == sorted(mixent.__all__)
    with pytest.raises(AttributeError, match="'mixent'"):
        mixent.Gaussian  # noqa: B018


def seconds(statement):
    """Processor time of a fresh interpreter, start to end, with stored bytecode as an installed package has it."""
    code = f"import time\n{statement}\nprint(time.process_time())"
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, env=env)
    return float(run.stdout)


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
