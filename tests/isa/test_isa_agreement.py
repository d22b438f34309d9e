"""The table against NVIDIA's assembler, and the parts of that comparison on their own."""

from __future__ import annotations

import pytest

from mcheck.isa.families import ptx_families
from tests.assembler import Assembler
from tests.isa.agreement import known_differences, ptxas
from tests.isa.agreement.__main__ import main
from tests.isa.agreement.compare import TARGETS, compare, refusal
from tests.isa.agreement.lines import all_lines
from tests.isa.agreement.ptxas import rejected

LINES = all_lines(limit=24, bases=1)


def test_the_lines_are_many_distinct_and_of_every_family() -> None:
    texts = [line.text for line in LINES]
    assert len(texts) >= 3000
    assert len(set(texts)) == len(texts)
    assert {line.family for line in LINES} == {family.name for family in ptx_families()}
    assert [line.text for line in all_lines(limit=24, bases=1)] == texts


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("target", TARGETS)
def test_validators_are_seen_accepting_and_rejecting(target: str) -> None:
    verdicts = [refusal(line, target) is None for line in LINES]
    assert verdicts.count(True) > 500
    assert verdicts.count(False) > 500


@pytest.fixture
def kept(assembler: Assembler, monkeypatch: pytest.MonkeyPatch) -> Assembler:
    """The assembler, of which what it has said before is not asked again."""
    monkeypatch.setattr(ptxas, "run", lambda _, text, options: assembler.assemble(text, *options)[1])
    return assembler


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("target", TARGETS)
def test_every_disagreement_is_meant(target: str, kept: Assembler) -> None:
    comparison = compare(kept.path, LINES, target)
    assert [(d.line.text, d.accepts, d.words) for d in comparison.unmeant] == []
    assert comparison.accepted + comparison.refused + len(comparison.differences) == len(LINES)


def test_the_assembler_names_exactly_the_wrong_lines(assembler: Assembler) -> None:
    lines = ["add.u32 r1, r2, r3", "add.u32 r1, rd2, r3", "frob r1", "ld.global.u32 r1, [rd1]", "ld.foo.u32 r1, [rd1]"]
    assert sorted(rejected(assembler.path, lines, "sm_90a")) == [1, 2, 4]


@pytest.mark.usefixtures("assembler")
def test_the_command_prints_counts(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--target", "sm_90a", "--family", "mbarrier.test_wait.parity", "--limit", "10", "--bases", "1"])
    printed = capsys.readouterr().out
    assert status == 0
    assert printed.startswith("sm_90a: ")
    assert "both accept" in printed
    assert "meant disagreements" in printed


@pytest.mark.parametrize("entry", known_differences.MEANT, ids=lambda entry: entry.line)
def test_every_meant_disagreement_has_a_reason(entry: known_differences.Meant) -> None:
    assert entry.accepts in ("table", "ptxas")
    assert len(entry.reason) > 20


def test_a_meant_disagreement_covers_only_its_own() -> None:
    words = "Argument 2 of instruction 'cp.async.bulk': unexpected value '24', expected to be multiple of 16"
    line = "cp.async.bulk.global.shared::cta.bulk_group [rd1], [rd2], 24"
    assert known_differences.find("table", line, words) is not None
    assert known_differences.find("ptxas", line, words) is None
    assert known_differences.find("table", "cp.async.ca.shared.global [rd1], [rd2], 24", words) is None
