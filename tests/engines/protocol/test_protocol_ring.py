"""The full/empty ring: clean in one execution, and one finding of the right kind for each single fault."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse
from tests.engines.protocol.sketches import ARRIVE, FENCE, changed, ring

FAULTS = {
    "no-fence": (((FENCE, ""),), {"RACE006"}),
    "fence-after-the-arrive": (((FENCE + ARRIVE, ARRIVE + FENCE),), {"RACE006"}),
    "fence-for-another-space": ((("fence.proxy.async.shared::cta", "fence.proxy.async.global"),), {"RACE006"}),
    "producer-starts-with-parity-0": ((("((k/S)%2)^1", "((k/S)%2)"),), {"DEAD003"}),
    "consumer-parity-flipped": ((("[full[k%S]], (k/S)%2;", "[full[k%S]], ((k/S)%2)^1;"),), {"RACE003"}),
    "count-too-small": ((("[empty[s]], 64", "[empty[s]], 63"),), {"RACE003"}),
    "count-too-large": ((("[empty[s]], 64", "[empty[s]], 65"),), {"DEAD003"}),
    "full-counts-two": ((("[full[s]], 1;", "[full[s]], 2;"),), {"DEAD003"}),
    "nobody-releases": (((ARRIVE, ""),), {"DEAD003"}),
    "expect-too-small": ((("[full[k%S]], 1024;", "[full[k%S]], 512;"),), {"UB216"}),
    "expect-too-large": ((("[full[k%S]], 1024;", "[full[k%S]], 2048;"),), {"DEAD003"}),
    "init-unpublished": ((("  bar.sync 0;\n", ""),), {"UB201"}),
    "another-slot-read": ((("[buf[k%S] + 4", "[buf[(k+1)%S] + 4"),), {"RACE003"}),
    "relaxed-wait": ((("parity.shared::cta.b64 [full", "parity.relaxed.cta.shared::cta.b64 [full"),), {"RACE003"}),
    "elected-arrive-without-syncwarp": (
        (
            (ARRIVE, f"    if (%laneid == 0) {{ {ARRIVE.strip()} }}\n"),
            ("[empty[s]], 64", "[empty[s]], 2"),
        ),
        {"RACE003"},
    ),
}


def checked(text: str) -> Answer:
    return check(parse(text, "ring.litmus"), load_model("ptx-9.0"), timeout=60)


@pytest.mark.daily
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 4, 5, 7])
def test_a_sound_ring_is_proved_in_one_execution(stages: int, rounds: int) -> None:
    found = checked(ring(rounds, stages))
    assert (found.verdict, found.executions, found.findings) == ("proved", 1, ())


@pytest.mark.daily
@pytest.mark.parametrize("name", FAULTS)
def test_a_single_fault_is_found(name: str) -> None:
    changes, codes = FAULTS[name]
    found = checked(changed(ring(), *changes))
    assert found.verdict == "finding"
    assert codes <= {f.code for f in found.findings}
    assert all(f.accesses and f.missing and f.section for f in found.findings)


def test_an_elected_arrive_after_syncwarp_is_sound() -> None:
    elected = f"    bar.warp.sync 0xffffffff;\n    if (%laneid == 0) {{ {ARRIVE.strip()} }}\n"
    found = checked(changed(ring(), (ARRIVE, elected), ("[empty[s]], 64", "[empty[s]], 2")))
    assert found.verdict == "proved"


def test_a_race_names_both_accesses_and_the_idle_fence() -> None:
    found = checked(changed(ring(), (FENCE + ARRIVE, ARRIVE + FENCE)))
    (race,) = found.findings
    first, second = race.accesses
    assert (first.proxy, first.access, second.proxy, second.access) == ("generic", "read", "async", "write")
    assert first.object == second.object == "buf@0"
    assert first.span is not None
    assert second.span is not None
    assert "after the hand-over" in race.missing
    assert [step.number for step in race.trace] == sorted(step.number or 0 for step in race.trace)
    assert {step.thread for step in race.trace} == {"producer", "consumer[0..31]"}


def test_a_deadlock_says_who_waits_for_what() -> None:
    found = checked(changed(ring(), ("[full[k%S]], 1024;", "[full[k%S]], 2048;")))
    (deadlock,) = found.findings
    assert "expected 2048 bytes, got 1024" in deadlock.message
    assert "full[0]" in deadlock.message


@pytest.mark.daily(days=4, least=0)
def test_time_grows_with_the_rounds() -> None:
    few, many = (checked(ring(rounds, 4, 4)) for rounds in (8, 64))
    assert few.executions == many.executions == 1
