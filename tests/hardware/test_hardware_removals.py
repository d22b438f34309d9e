"""The modules whose synchronisation goes on a chip: the list, the texts, and the launches that compare them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.ptx import check
from tests.assembler import Assembler

sys.path.insert(0, str(Path(__file__).parents[2]))

from hardware.driver import Driver
from hardware.fences_removed import TIMED, compare
from hardware.removals import COMPARISONS, CORPUS, Comparison, Removal, for_driver, read_removals, without

REMOVALS = read_removals()


class Recorder(Driver):
    """A driver without a GPU, which counts the launches; every word of a result differs."""

    def __init__(self) -> None:
        self.launches, self.top = 0, 1 << 30

    def call(self, name: str, *arguments: object, log: object = None) -> None:
        self.launches += name == "cuLaunchKernel"

    def allocate(self, size: int) -> int:
        self.top += size
        return self.top - size

    def write(self, address: int, data: bytes) -> None:
        assert data

    def read(self, address: int, size: int) -> bytes:
        return (7).to_bytes(size, "little")

    def encode(self, spec: object) -> bytes:
        return bytes(128)


def test_the_list_is_of_the_modules_as_they_are() -> None:
    assert set(REMOVALS) == {each.path for each in COMPARISONS}
    assert all(REMOVALS.values())


@pytest.mark.daily
@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda each: each.path)
def test_both_forms_assemble_for_the_driver(comparison: Comparison, assembler: Assembler) -> None:
    changed = without(comparison.text, REMOVALS[comparison.path])
    assert changed != comparison.text
    for text in (comparison.text, changed):
        status, said = assembler.assemble(for_driver(text), "-arch=sm_90a" if "sm_90a" in text else "-arch=sm_90")
        assert status == 0, said


@pytest.mark.daily
@pytest.mark.parametrize("path", ["cuda/barrier_tx", "cuda/bulk_store", "cuda/bulk_to_peer"])
def test_the_module_without_them_is_proved(path: str) -> None:
    comparison = next(each for each in COMPARISONS if each.path == path)
    text = without(comparison.text, REMOVALS[path])
    assert check_case(Case(str(CORPUS / f"{path}.ptx"), text=text), Settings(), Options()).verdict is Verdict.PROVED


@pytest.mark.slow
@pytest.mark.parametrize("comparison", COMPARISONS, ids=lambda each: each.path)
def test_what_the_chip_runs_is_proved(comparison: Comparison) -> None:
    answer = check(without(comparison.text, REMOVALS[comparison.path]), comparison.launch)
    assert (answer.verdict, answer.covers.clusters) == ("proved", answer.covers.total)


def test_an_instruction_that_is_not_on_its_line_is_refused() -> None:
    with pytest.raises(ValueError, match="line 2 is"):
        without("bar.sync 0;\nret;", (Removal(2, "bar.sync 0;", None),))


@pytest.mark.parametrize("comparison", COMPARISONS[:4], ids=lambda each: each.path)
def test_every_counted_launch_is_compared(comparison: Comparison) -> None:
    driver = Recorder()
    row = compare(driver, comparison, REMOVALS[comparison.path], rounds=20 * comparison.ctas * comparison.rounds)
    assert row.rounds == {form: n * comparison.ctas * comparison.rounds for form, n in (("without", 20), ("with", 2))}
    assert driver.launches == 2 + 2 * 22 + 2 * TIMED
    assert row.differing == {"with": 7, "without": 7}
