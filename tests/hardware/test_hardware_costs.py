"""The modules that measure what synchronisation costs, and the table that is made of the answers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mcheck.checking.fences.costs import read_costs
from tests.assembler import Assembler

sys.path.insert(0, str(Path(__file__).parents[2]))

from hardware.costs import LIFTED, Measured, to_costs, to_toml
from hardware.synchronisations import CASES, Case, write_module


@pytest.mark.daily
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_module_of_a_case_and_its_base_assemble(case: Case, assembler: Assembler) -> None:
    for base in (False, True):
        status, said = assembler.assemble(write_module(case, True, base), "-arch=sm_90a")
        assert status == 0, said


def test_cases_have_different_names_and_keys() -> None:
    names = [case.name for case in CASES]
    keys = [case.stands_for for case in CASES if case.stands_for]
    assert len(set(names)) == len(names)
    assert len(set(keys)) == len(keys)
    assert {name for chain in LIFTED for name in chain} <= set(keys)


def test_the_table_is_one_of_costs_in_which_weaker_is_not_dearer(tmp_path: Path) -> None:
    falling = [Measured(case, 1.0, 500.0 - at) for at, case in enumerate(CASES)]
    (tmp_path / "costs.toml").write_text(to_toml(to_costs(falling), "a test"), encoding="utf-8")
    costs = read_costs(str(tmp_path / "costs.toml"))
    for chain in LIFTED:
        assert [costs.cycles[name] for name in chain] == sorted(costs.cycles[name] for name in chain)
    assert costs.of("bar.sync 0;") == costs.cycles["bar.sync"]
    assert costs.edit["size"] > costs.edit["insert"]
