"""`mixent fuse` where a source contradicts the others: everything is written, and the exit code says so."""

import numpy as np
import pandas as pd
import pytest

from mixent.datasets import simulate_votes
from mixent.fusion import Calibration, save_calibrations


@pytest.mark.parametrize(("swapped", "status"), [(False, 0), (True, 3)])
def test_the_exit_code_says_whether_a_source_contradicts_the_others(mixent, swapped, status):
    votes = simulate_votes(400, n_sources=4, accuracy=0.85, n_calibration=200, random_state=0)
    names = np.array(["no", "yes"])
    frame = pd.DataFrame(
        {name: names[1 - v if swapped and name == "source 1" else v] for name, v in votes.answers.items()}
    )
    frame.to_csv("votes.csv", index=False)
    labelled = {name: Calibration.from_predictions(names[y], names[v]) for name, (y, v) in votes.labelled.items()}
    save_calibrations(labelled, "c.json")
    result = mixent("fuse", "votes.csv", "-c", "c.json", "-o", "fused.csv")
    assert result.exit_code == status, result.output
    assert np.mean(pd.read_csv("fused.csv")["predicted"] == names[votes.truth]) > 0.9
