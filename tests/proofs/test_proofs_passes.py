"""Passes: without any one of them proofs for every N say the same, from more rounds or steps, or nothing is proved."""

from __future__ import annotations

import pytest

from mcheck.base.budget import Limit
from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.engines.protocol.analysis.lane_groups import partition_lanes
from mcheck.engines.protocol.execution.setup import prepare
from mcheck.engines.protocol.passes import ALL_PASSES, Pass, Passes
from mcheck.frontend.litmus import parse
from mcheck.frontend.litmus.parametric.periodicity import LONG
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.proofs.parametric_proof import Proof, prove
from mcheck.proofs.setup_reuse import SetupReuse
from tests.engines.protocol.pipelines import WRONG
from tests.engines.protocol.sketches import changed
from tests.engines.protocol.unbounded import REGISTERS, ring

MODEL = load_model("ptx-9.0")


class Events(Limit):
    """A limit that counts how often it is asked: with every event, and with little else."""

    def __init__(self) -> None:
        super().__init__(None)
        self.count = 0

    def check(self) -> None:
        self.count += 1
        super().check()


def proved(text: str, passes: Passes) -> tuple[Proof, int]:
    """The proof of a family, and its events."""
    events = Events()
    return prove(parse(text, "any.litmus", every=True), MODEL, "ptx", 2, events, passes=passes), events.count


def told(given: Proof) -> object:
    return given.answer.verdict, {f.code for f in given.answer.findings}


PROOFS_NEED = (Pass.UNWRITTEN_OBJECTS, Pass.BLOCKED_EXECUTIONS)
"""Without these there are more reads with every round, or more than one order of steps."""
FAMILIES = {
    Pass.PREFIX_SHARING: ring(3),
    Pass.ROTATION_SYMMETRY: ring(3),
    Pass.PERIODIC_REGISTERS: REGISTERS,
}
"""For each pass, a family on which it does something."""


@pytest.mark.daily
@pytest.mark.parametrize("one", FAMILIES, ids=str)
def test_without_a_pass_a_proof_is_another_one_of_the_same(one: Pass) -> None:
    (given, few), (other, many) = (proved(FAMILIES[one], p) for p in (ALL_PASSES, ALL_PASSES - {one}))
    assert told(given) == told(other) == ("proved", set())
    assert (given.first, given.period, few) != (other.first, other.period, many)
    assert one is not Pass.PREFIX_SHARING or few < many


def test_without_rotations_a_period_is_that_of_the_text() -> None:
    given, other = (proved(REGISTERS, p)[0] for p in (ALL_PASSES, ALL_PASSES - {Pass.ROTATION_SYMMETRY}))
    assert (given.turns, other.turns) == (True, False)
    assert other.period == 6 * given.period


def test_without_reuse_each_program_has_a_setup_of_its_own() -> None:
    family = parse(ring(2), "any.litmus", every=True)
    assert family.instance is not None
    for passes in (ALL_PASSES, ALL_PASSES - {Pass.SETUP_REUSE}):
        large, small = family.instance(8), family.instance(5)
        whole = prepare(large, partition_lanes(large), MODEL, "ptx", 2, lambda: None, passes=passes)
        assert (SetupReuse(whole).setup(small) is None) == (Pass.SETUP_REUSE not in passes)
    given, other = (proved(ring(2), p)[0] for p in (ALL_PASSES, ALL_PASSES - {Pass.SETUP_REUSE}))
    assert given == other


@pytest.mark.parametrize("edit", [(), (("1024, [full[k%S]]", "512, [full[k%S]]"),)], ids=["right", "wrong"])
def test_a_long_loop_may_be_executed_as_it_is(edit: tuple[tuple[str, str], ...]) -> None:
    program = parse(changed(ring(2), ("N = any", f"N = {LONG}"), *edit), "long.litmus", every=True)
    assert program.shortened is not None
    few, whole = (
        ask(program, MODEL, Question(about=Completeness.FINDINGS, brief=True, without=without), "protocol")
        for without in (frozenset[str](), frozenset(("long-loops",)))
    )
    assert (few.verdict, {f.code for f in few.findings}) == (whole.verdict, {f.code for f in whole.findings})
    assert edit or ("the state repeats" in (few.reason or "") and whole.reason is None)


def test_every_pass_of_the_proofs_has_a_program_on_which_it_does_something() -> None:
    here = {one for one in Pass if one.module.startswith("mcheck.proofs.")}
    of_modules = {Pass.TRANSLATED_PROGRAMS}  # tests/proofs/test_proofs_translation.py
    assert {*FAMILIES, Pass.SETUP_REUSE, Pass.LONG_LOOPS} | of_modules == here


@pytest.mark.daily
@pytest.mark.parametrize("one", Pass)
def test_without_a_pass_nothing_else_is_proved(one: Pass) -> None:
    """A family that is right may remain unproved, one that is wrong has to."""
    passes = ALL_PASSES - {one}
    if one in PROOFS_NEED:
        with pytest.raises(Aperiodic):
            proved(ring(2), passes)
    else:
        assert told(proved(ring(2), passes)[0]) == ("proved", set())
    name = sorted(WRONG)[list(Pass).index(one) % len(WRONG)]
    with pytest.raises(Aperiodic):
        proved(WRONG[name], passes)


def test_what_one_program_leaves_to_one_thread_may_be_shared_in_its_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """An execution that is continued as that of another number has all of its accesses."""
    asked = []
    monkeypatch.setattr(
        "mcheck.engines.protocol.execution.setup.find_unshared_accesses", lambda p: asked.append(p) or ()
    )
    assert prove(parse(ring(), "any.litmus", every=True), MODEL, "ptx", 2, Limit(60.0)).answer.covered
    assert not asked
