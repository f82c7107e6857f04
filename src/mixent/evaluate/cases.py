"""The features of a maximum entropy classifier that contribute most, for tables and pages."""

from __future__ import annotations

from typing import Any

from mixent.maxent.contributions import loudest, what_is_said


def strongest_features(model: Any, most: int = 8) -> list[dict[str, Any]]:
    """The features that move the log-odds most, and of each where it speaks loudest for a class.

    Parameters
    ----------
    model : fitted MaxEntClassifier
    most : int

    Returns
    -------
    list of dict: feature, strength (nats), loudest (value, or range of values; class; nats it adds, against the average
    row: of two classes to the log-odds, of more to the logit less the classes' mean)
    """
    out = []
    for said in what_is_said(model)[:most]:
        value, c, nats = loudest(said)
        found = {"value": value, "class": model.classes_.tolist()[c], "nats": nats}
        out.append({"feature": said.name, "strength": said.strength, "loudest": found})
    return out
