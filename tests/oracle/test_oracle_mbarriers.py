"""The explicit engine against an interpreter that was written from the text; and the interpreter by hand."""

from __future__ import annotations

import pytest

from tests.fuzz.draft import Draft, Role
from tests.oracle.compare import by_engine, by_oracle, compare, differences
from tests.oracle.machine import Found
from tests.oracle.reading import NotForThis, Step, steps

OP = "mbarrier."
INIT, ARRIVE = f"{OP}init.shared::cta.b64 [b0],", f"{OP}arrive.shared::cta.b64 _, [b0];"
WAIT, POLL = f"await {OP}try_wait.parity.shared::cta.b64 [b0],", f"{OP}test_wait.parity.shared::cta.b64 %p1, [b0],"
COMPLETE = f"{OP}complete_tx.relaxed.cta.shared::cta.b64 [b0], 16;"
EXPECT = f"{OP}expect_tx.relaxed.cta.shared::cta.b64 [b0], 16;"
STATE = f"{OP}arrive.shared::cta.b64 %rd1, [b0];"
SHOW = "selp.u32 r0, 1, 0, %p1;"


def program(*threads: str, shown: tuple[str, ...] = ()) -> Draft:
    """A thread's statements are separated by bars; the first one initialises, all meet."""
    roles = []
    for k, text in enumerate(threads):
        lines = [part.strip() for part in text.split("|") if part.strip()]
        roles.append(Role(f"P{k}", "cta 0", tuple(lines)))
    objects = (".shared .align 8 .b64 b0;", ".shared .u32 x;")
    condition = f"exists ({shown[0]} == 0)" if shown else ""
    return Draft("by-hand", "", objects, tuple(roles), shown, condition)


def found(*threads: str, shown: tuple[str, ...] = ()) -> Found:
    """What the oracle finds, the engine agreeing."""
    made = program(*threads, shown=shown)
    told = by_engine(made, "explicit")
    here = by_oracle(made)
    assert told is not None
    assert differences(made, here, told) == []
    return here


def values(f: Found) -> set[tuple[int | None, ...]]:
    return {tuple(value for _, value in final) for final in f.finals}


def test_a_phase_completes_with_its_last_arrival() -> None:
    f = found(f"{INIT} 2;| bar.sync 0;| {ARRIVE}| {WAIT} 0;", f"bar.sync 0;| {ARRIVE}")
    assert (f.codes, f.dead, len(f.finals)) == (set(), False, 1)


def test_bytes_hold_a_phase_open() -> None:
    f = found(f"{INIT} 1;| {EXPECT}| {ARRIVE}| bar.sync 0;| {WAIT} 0;", "bar.sync 0;")
    assert f.dead


def test_bytes_may_come_before_they_are_announced() -> None:
    f = found(f"{INIT} 1;| bar.sync 0;| {EXPECT}| {ARRIVE}| {WAIT} 0;", f"bar.sync 0;| {COMPLETE}")
    assert not f.dead
    assert not f.codes


def test_a_poll_may_be_stale() -> None:
    f = found(f"{INIT} 1;| bar.sync 0;| {ARRIVE}", f"bar.sync 0;| {POLL} 0;| {SHOW}", shown=("P1:r0",))
    assert values(f) == {(0,), (1,)}


def test_a_poll_sees_what_its_thread_knows() -> None:
    f = found(f"{INIT} 1;| {ARRIVE}| bar.sync 0;", f"bar.sync 0;| {POLL} 0;| {SHOW}", shown=("P1:r0",))
    assert values(f) == {(1,)}


def test_a_release_and_an_acquire_order_data() -> None:
    store = "st.shared.u32 [x], 1;"
    load = "ld.shared.u32 r0, [x];"
    assert not found(f"{INIT} 1;| bar.sync 0;| {store}| {ARRIVE}", f"bar.sync 0;| {WAIT} 0;| {load}").race
    assert found(f"{INIT} 1;| bar.sync 0;| {ARRIVE}| {store}", f"bar.sync 0;| {WAIT} 0;| {load}").race


@pytest.mark.parametrize(
    ("code", "threads"),
    [
        ("UB201", (f"{ARRIVE}",)),
        ("UB202", (f"{INIT} 1;| {INIT} 1;",)),
        ("UB205", (f"{INIT} 2;| {OP}arrive.shared::cta.b64 _, [b0], 3;",)),
        ("UB206", (f"{INIT} 1;| {OP}arrive.noComplete.shared::cta.b64 %rd1, [b0], 1;",)),
        ("UB207", (f"{INIT} 1;| {OP}arrive_drop.shared::cta.b64 _, [b0];",)),
        ("UB210", (f"{INIT} 1;| {STATE}| {ARRIVE}| {ARRIVE}| {OP}test_wait.shared::cta.b64 %p1, [b0], %rd1;",)),
        ("UB211", (f"{INIT} 1;| {STATE}| {OP}pending_count.b64 r0, %rd1;",)),
        ("UB217", (f"{INIT} 1;| {COMPLETE}| {ARRIVE}| {EXPECT}",)),
    ],
)  # fmt: skip
def test_misuses(code: str, threads: tuple[str, ...]) -> None:
    assert found(*threads).codes == {code}


def test_what_comes_after_the_last_arrival_comes_after_its_phase() -> None:
    """An order of the operations inside a phase has to agree with causality as well."""
    assert found(f"{INIT} 1;| {ARRIVE}| bar.sync 0;", f"bar.sync 0;| {COMPLETE}| {EXPECT}| {ARRIVE}").codes == set()


def test_a_count_that_is_told_agrees_with_causality() -> None:
    partial = f"{OP}arrive.noComplete.shared::cta.b64 %rd1, [b0], 1;| {OP}pending_count.b64 r0, %rd1;"
    f = found(f"{INIT} 3;| {ARRIVE}| bar.sync 0;", f"bar.sync 0;| {partial}", shown=("P1:r0",))
    assert values(f) == {(2,)}


def test_blocks_and_spins_are_read() -> None:
    lines = ("L1:", f"{POLL} 0;", "@!%p1 bra L1;", "if (r0 == 1) {", ARRIVE, "}", f"@%p1 {ARRIVE}")
    read = steps(lines)
    assert read[0] == Step("await", "b0", ("%p1", 0))
    assert read[1] == Step("unless", args=("r0", 1, 3))
    assert read[3].guard == ("%p1", 1)
    with pytest.raises(NotForThis):
        steps(("fence.acq_rel.gpu;",))


@pytest.mark.daily(least=0)
def test_random_programs() -> None:
    tally, different = compare("test", 200, "explicit")
    assert [(wrong, made.text()) for made, wrong in different] == []
    assert tally["compared"] > 170
    for what in ("clean", "race", "deadlock", "UB201", "UB205", "UB207", "UB210"):
        assert tally[what] >= 2, what
