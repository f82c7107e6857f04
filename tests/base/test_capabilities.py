"""Tags that say what an estimator can do."""

from dataclasses import fields

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils import Tags, get_tags

from mixent import FisherKernel, MEDClassifier, MixtureClassifier
from mixent.base.capabilities import IGNORED, YES, Can, CapableTags, able


def test_the_tags_are_those_of_scikit_learn_with_two_fields_more():
    tags = get_tags(MixtureClassifier())
    assert isinstance(tags, CapableTags) and isinstance(tags, Tags)
    assert tags.estimator_type == "classifier" and tags.input_tags.allow_nan
    assert {f.name for f in fields(tags)} - {f.name for f in fields(Tags)} == {"capabilities", "reads_tables"}
    piped = get_tags(make_pipeline(FisherKernel(), MEDClassifier()))
    assert piped.estimator_type == "classifier" and not isinstance(piped, CapableTags)
    again = able(able(get_tags(LogisticRegression()), weights=YES), density=YES)
    assert again.capabilities.weights == again.capabilities.density == YES != again.capabilities.sampling


def test_cells_are_words():
    assert [str(Can(value)) for value in (True, False, None)] == ["yes", "no", "–"]
    assert str(IGNORED) == "–: y is ignored"
