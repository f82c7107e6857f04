"""The page on sequences runs as printed."""

import re
from pathlib import Path

import numpy as np

PAGE = Path(__file__).parent.parent.parent / "docs" / "sequences.md"


def test_the_page_on_sequences_runs_as_printed(capsys):
    names = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL):
        exec(block, names)
    assert names["accuracy"] > 0.85 and (names["path"] == names["states"]).mean() > 0.9
    assert names["by_step"].shape == (200, 20, 2) and names["log_lik"].shape == (200,)
    assert names["drawn"].shape == names["drawn_states"].shape == (5, 20)
    assert names["proba"].shape == (2, 2)
    X = names["steps"]
    one, other = names["mixed"], names["same"]
    np.testing.assert_allclose(
        one.predict_proba(X, lengths=names["lengths"]), other.predict_proba(X, groups=names["visits"]), rtol=1e-9
    )
    assert names["chained"].transitions_.shape == (2, 2, 2)
    assert names["features"].shape == (200, names["hidden"].n_parameters_)
    assert "fast" in capsys.readouterr().out
