"""Wording of classical, parzen."""

import pytest

from mixent import ParzenClassifier

from ...classical.test_parzen import rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bandwidth": 0}, "bandwidth must be a number > 0, or 'auto' or one number for each class; got 0"),
        ({"bandwidth": "wide"}, "bandwidth must be a number > 0, or 'auto' or one number for each class; got 'wide'"),
        ({"bandwidth": [1.0]}, "bandwidth must have one number for each of the 3 classes; got 1"),
        ({"bandwidth": [1.0, -1.0, 2.0]}, "bandwidth of a class must be a number > 0; got -1.0"),
        ({"criterion": "error"}, "criterion must be one of 'conditional', 'likelihood'; got 'error'"),
        ({"bandwidth": 1, "per_class": True}, "per_class=True is only used with bandwidth='auto'; got bandwidth=1"),
        (
            {"bandwidth": 1, "criterion": "likelihood"},
            "criterion='likelihood' is only used with bandwidth='auto'; got bandwidth=1",
        ),
        ({"class_prior": [1, 2]}, "class_prior must be 'empirical' or 3 positive numbers"),
        ({"n_jobs": 0}, "n_jobs must be None, -1 or a positive number of threads; got 0"),
    ],
)
def test_messages(options, message):
    with pytest.raises(ValueError) as caught:
        ParzenClassifier(**options).fit(*rows())
    assert message in str(caught.value)


def test_a_class_without_weight_is_refused():
    X, y = rows()
    with pytest.raises(ValueError, match="class 2 is not the most probable label of any row"):
        ParzenClassifier().fit(X, y, sample_weight=(y < 2).astype(float))
