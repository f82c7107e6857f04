"""Write a file of every estimator and what it predicts: `python tests/saved/make.py`.

From the first release on, files that are here stay and new versions must read them. Until then they are written anew
when the state of an estimator changes, and files of other format versions are refused.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

HERE = Path(__file__).parent
ANSWERS = HERE / "answers.json"
ROWS = 6  # whose answers are kept


def kept_answers(subject, model):
    """The first numbers of what the model makes of some rows of its table."""
    return subject.said(model)[:: len(subject.said(model)) // ROWS][:ROWS].reshape(ROWS, -1)[:, :4].tolist()


def main() -> None:
    sys.path.insert(0, str(HERE.parent.parent))
    from tests.subjects import PUBLIC, SUBJECTS

    import mixent

    for old in HERE.glob("*.mixent"):
        old.unlink()
    answers = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in PUBLIC:
            subject = SUBJECTS[name]
            mixent.save(subject.usual, HERE / f"{name}.mixent", foreign="skops" if name == "TunedClassifier" else None)
            answers[name] = kept_answers(subject, subject.usual)
    ANSWERS.write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main()
