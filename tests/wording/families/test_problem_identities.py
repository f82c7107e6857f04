"""Wording of families, problem identities."""

import pytest

from mixent.core.blocks import ArrayBlocks
from mixent.core.driver import Stop, run
from mixent.core.executors import Serial

from ...families.test_problem_identities import collapsing


@pytest.mark.parametrize("structure", ["VVV", "VVI", "VII"])
def test_component_collapsed_onto_too_few_distinct_rows(structure):
    problem, table, params = collapsing(structure=structure)
    source = ArrayBlocks(table)
    result = run(problem, source, params, stop=Stop(1e-6, 300), executor=Serial())
    assert "component 1 collapsed onto too few distinct rows" in result.notes[0]
