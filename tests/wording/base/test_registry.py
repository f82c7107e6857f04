"""Wording of base, registry."""

import subprocess
import sys

import numpy as np
import pytest

import mixent
from mixent.base import registry
from mixent.base.registry import by_name, entries, entry_of, register, unregister

from ...base.test_registry import Majority


def test_a_file_of_an_estimator_nobody_registered_is_refused(majority, tmp_path):
    mixent.save(majority().fit(np.zeros((2, 1)), ["a", "b"]), tmp_path / "m.mixent")
    unregister(majority)
    with pytest.raises(mixent.persistence.SavedFileError, match="unknown type .*Majority"):
        mixent.load(tmp_path / "m.mixent")


def test_a_name_is_given_once(majority):
    with pytest.raises(ValueError, match="the name 'majority' of MaxEntJoint belongs to Majority; choose another"):
        register("majority", task="joint", title="Other", describe=str)(mixent.MaxEntJoint)


def test_the_name_parzen_of_parzenclassifier_belongs_to_parzenclassifier():
    other = type("ParzenClassifier", (Majority,), {"__module__": "elsewhere"})
    with pytest.raises(ValueError, match="the name 'parzen' of ParzenClassifier belongs to ParzenClassifier"):
        register("parzen", task="classification", title="Other", describe=str)(other)


def test_a_plug_in_that_comes_first_meets_the_names_of_mixent():
    code = (
        "from mixent.plugins import Estimator, register, entries\n"
        "try: register('parzen', task='classification', title='T', describe=str)(type('E', (Estimator,), {}))\n"
        "except ValueError as error: print(error, len(entries()) > 20)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "the name 'parzen' of E belongs to ParzenClassifier; choose another True"


def test_classes_that_files_could_not_tell_apart_are_named(majority):
    package = Majority.__module__.partition(".")[0]
    other = type("Majority", (Majority,), {"__module__": f"{package}.other"})
    message = f"and {package}.other.Majority have the same name in files, {package}.Majority; rename one of them"
    with pytest.raises(ValueError, match=message):
        register("other", task="classification", title="Other", describe=str)(other)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match="unknown model 'svm'; choose one of gaussian-mixture, mixture, "):
        by_name("svm")


def test_what_is_not_registered_has_no_entry():
    with pytest.raises(TypeError, match="dict is not a registered estimator of mixent"):
        entry_of({})


def test_the_plug_in_somewhere(monkeypatch):
    class Point:
        value = "somewhere:Model"

        def load(self):
            raise ImportError("no such thing")

    monkeypatch.setattr(registry, "_loaded", set(registry.BUILT_IN))
    monkeypatch.setattr(registry, "entry_points", lambda group: [Point()])
    with pytest.warns(RuntimeWarning, match="the plug-in somewhere:Model cannot be used: no such thing"):
        assert len(entries()) > 20
