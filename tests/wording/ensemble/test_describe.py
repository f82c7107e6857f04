"""Wording of ensemble, describe."""

import numpy as np
import pandas as pd

from mixent import (
    AdaBoostM1Classifier,
    MaxEntStackingClassifier,
)

from ...ensemble.test_describe import X, Y, plain_facts


def test_on_the_rows_they_were_trained_on():
    boosting = AdaBoostM1Classifier(n_estimators=2)
    model = MaxEntStackingClassifier(boosting, cv="train", prior_variance=1.0).fit(X, Y)
    facts = plain_facts(model.summary())
    assert facts["errors"] == "on their training rows"
    table = pd.DataFrame({"said": np.where(np.arange(len(Y)) % 5, Y, 0)})
    model = MaxEntStackingClassifier([("judge", "said")], prior_variance=1.0).fit(table, Y)
    facts = plain_facts(model.summary())
    assert facts["errors"] == "of the outputs in the table"
