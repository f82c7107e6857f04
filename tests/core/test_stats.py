from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mixent.core.stats import Stats, tree_sum


@dataclass(frozen=True)
class Word(Stats):
    """A sum that remembers how it was bracketed."""

    text: Any

    def __add__(self, other):
        return Word(f"({self.text}{other.text})")


@dataclass(frozen=True)
class Inner(Stats):
    values: np.ndarray
    about: str


@dataclass(frozen=True)
class Outer(Stats):
    inner: Inner | None
    parts: tuple
    n_rows: Any
    total: float


def outer(rng, about="center"):
    inner = Inner(rng.normal(size=(2, 3)), about)
    return Outer(inner, (rng.normal(size=2), None, (inner, 2.5)), int(rng.integers(10)), rng.normal())


def test_every_field_adds_however_nested():
    rng = np.random.default_rng(0)
    a, b = outer(rng), outer(rng)
    c = a + b
    np.testing.assert_array_equal(c.inner.values, a.inner.values + b.inner.values)
    np.testing.assert_array_equal(c.parts[0], a.parts[0] + b.parts[0])
    assert c.parts[1] is None
    np.testing.assert_array_equal(c.parts[2][0].values, a.parts[2][0].values + b.parts[2][0].values)
    assert c.parts[2][1] == 5.0
    assert (c.n_rows, c.total) == (a.n_rows + b.n_rows, a.total + b.total)
    assert c.inner.about == "center"


@pytest.mark.parametrize("number", [3, 3.0, np.int64(3), np.float32(3), np.array(3)])
def test_equal_numbers_of_any_kind_add_and_are_not_taken_for_a_tag(number):
    assert (Outer(None, (), number, 0.0) + Outer(None, (), number, 0.0)).n_rows == 6


def brackets(n):
    """The same tree written top down: the largest power of two left of the last part, then the rest."""
    if n == 1:
        return 0
    return 1 << ((n - 1).bit_length() - 1)


def expected_word(letters):
    if len(letters) == 1:
        return letters
    cut = brackets(len(letters))
    return f"({expected_word(letters[:cut])}{expected_word(letters[cut:])})"


@pytest.mark.parametrize("n", [*range(1, 18), 33])
def test_the_tree_depends_on_the_number_of_parts_alone(n):
    letters = "".join(chr(97 + i) for i in range(n))
    assert tree_sum(Word(c) for c in letters).text == expected_word(letters)


def test_no_more_than_log_n_partial_sums_are_alive():
    alive, most = set(), 0

    class Counted(Stats):
        def __init__(self):
            alive.add(id(self))

        def __del__(self):
            alive.discard(id(self))

        def __add__(self, other):
            return Counted()

    def parts():
        nonlocal most
        for _ in range(1000):
            part = Counted()
            yield part
            del part
            most = max(most, len(alive))

    tree_sum(parts())
    assert most <= 12


def test_rounding_grows_with_the_logarithm():
    @dataclass(frozen=True)
    class Number(Stats):
        value: np.float32

    parts = [Number(np.float32(0.1))] * 100_000
    assert abs(float(tree_sum(parts).value) - 1e4) < 0.01  # a running sum in float32 is off by more than 1
