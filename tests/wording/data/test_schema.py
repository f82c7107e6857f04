"""Wording of data, schema."""

import copy

import pytest

from mixent.data import Schema

from ...data.test_schema import SCHEMA


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d.pop("columns"),
        lambda d: d.pop("named"),
        lambda d: d.update(named="yes"),
        lambda d: d.update(columns=3),
        lambda d: d["columns"][0].update(kind="odd"),
        lambda d: d["columns"][0].update(name=3),
        lambda d: d["columns"][0].update(categories=[1]),
        lambda d: d["columns"][1].update(categories=[]),
        lambda d: d["columns"][1].update(categories=[[1], [2]]),
        lambda d: d["columns"][1].update(categories="ab"),
        lambda d: d["columns"].append("x"),
    ],
)
def test_damaged_json_is_refused(damage):
    d = copy.deepcopy(SCHEMA.to_json())
    damage(d)
    with pytest.raises(ValueError, match="not a table schema .* the file is damaged or not from mixent"):
        Schema.from_json(d)


def test_not_even_a_dictionary():
    with pytest.raises(ValueError, match="not a table schema"):
        Schema.from_json([1])
