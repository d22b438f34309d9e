"""The mbarrier state machine: tables of the subtleties, and an independent model that counts unit by unit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.semantics import mbarrier as mb
from mcheck.semantics.mbarrier import MAX_COUNT, State
from mcheck.semantics.undefined import Misuse

STEPS: list[tuple[str, Callable[[], tuple[State, bool]], tuple[State, bool]]] = [
    ("init", lambda: mb.init(3), (State(0, 3, 3, 0), False)),
    ("init largest", lambda: mb.init(MAX_COUNT), (State(0, MAX_COUNT, MAX_COUNT, 0), False)),
    ("arrive", lambda: mb.arrive(State(0, 2, 2)), (State(0, 2, 1), False)),
    ("last arrive completes", lambda: mb.arrive(State(0, 2, 1)), (State(1, 2, 2), True)),
    ("last arrive waits for bytes", lambda: mb.arrive(State(0, 2, 1, 16)), (State(0, 2, 0, 16), False)),
    ("last arrive with too many bytes", lambda: mb.arrive(State(0, 2, 1, -16)), (State(0, 2, 0, -16), False)),
    ("last bytes complete", lambda: mb.complete_tx(State(4, 2, 0, 16), 16), (State(5, 2, 2), True)),
    ("bytes before their expect", lambda: mb.complete_tx(State(0, 2, 1), 16), (State(0, 2, 1, -16), False)),
    ("the expect after the bytes", lambda: mb.expect_tx(State(0, 2, 1, -16), 16), (State(0, 2, 1, 0), False)),
    ("fused expect after the bytes", lambda: mb.arrive_expect_tx(State(0, 1, 1, -16), 16), (State(1, 1, 1), True)),
    ("premature completion", lambda: mb.complete_tx(State(0, 2, 0, 16), 16), (State(1, 2, 2), True)),
    ("late expect opens the next phase", lambda: mb.expect_tx(State(1, 2, 2), 32), (State(1, 2, 2, 32), False)),
    ("expect zero", lambda: mb.expect_tx(State(0, 1, 1), 0), (State(0, 1, 1), False)),
    ("complete zero", lambda: mb.complete_tx(State(0, 1, 1), 0), (State(0, 1, 1), False)),
    ("late expect, above zero", lambda: mb.expect_tx(State(0, 1, 0, -16), 32), (State(0, 1, 0, 16), False)),
    ("fused expect keeps it open", lambda: mb.arrive_expect_tx(State(0, 1, 1), 64), (State(0, 1, 0, 64), False)),
    ("drop lowers later phases", lambda: mb.arrive_drop(State(0, 3, 3)), (State(0, 2, 2), False)),
    ("last arrival is a drop", lambda: mb.arrive_drop(State(0, 3, 1)), (State(1, 2, 2), True)),
    ("drop with expect", lambda: mb.arrive_drop(State(0, 3, 1), tx=16), (State(0, 2, 0, 16), False)),
    ("async arrive adds one", lambda: mb.async_arrive_begin(State(0, 1, 1)), (State(0, 1, 2), False)),
    ("async arrive noinc", lambda: mb.async_arrive_begin(State(0, 1, 1), noinc=True), (State(0, 1, 1), False)),
    ("async arrive ends", lambda: mb.async_arrive_end(State(0, 1, 1)), (State(1, 1, 1), True)),
    ("noComplete", lambda: mb.arrive(State(0, 4, 4), 3, no_complete=True), (State(0, 4, 1), False)),
    ("noComplete with bytes open", lambda: mb.arrive(State(0, 1, 1, 8), no_complete=True), (State(0, 1, 0, 8), False)),
]


@pytest.mark.parametrize(("step", "expected"), [s[1:] for s in STEPS], ids=[s[0] for s in STEPS])
def test_step(step: Callable[[], tuple[State, bool]], expected: tuple[State, bool]) -> None:
    assert step() == expected


MISUSES: list[tuple[str, str, Callable[[], object]]] = [
    ("init 0", "UB205", lambda: mb.init(0)),
    ("init too many", "UB205", lambda: mb.init(MAX_COUNT + 1)),
    ("arrive 0", "UB205", lambda: mb.arrive(State(0, 1, 1), 0)),
    ("too many arrivals", "UB205", lambda: mb.arrive(State(0, 2, 1), 2)),
    ("arrive after the last", "UB205", lambda: mb.arrive(State(0, 1, 0, 16))),
    ("arrive.expect_tx after the last", "UB205", lambda: mb.arrive_expect_tx(State(0, 1, 0, -16), 16)),
    ("tx too large", "UB205", lambda: mb.expect_tx(State(0, 1, 1, MAX_COUNT), 1)),
    ("tx too small", "UB205", lambda: mb.complete_tx(State(0, 1, 1, -MAX_COUNT), 1)),
    ("negative expect", "UB205", lambda: mb.expect_tx(State(0, 1, 1), -1)),
    ("drop more than expected", "UB205", lambda: mb.arrive_drop(State(0, 1, 3), 2)),
    ("noComplete completes", "UB206", lambda: mb.arrive(State(0, 1, 1), no_complete=True)),
    ("noComplete drop completes", "UB206", lambda: mb.arrive_drop(State(0, 2, 1), no_complete=True)),
    ("noComplete expect_tx completes", "UB206", lambda: mb.arrive_expect_tx(State(0, 1, 1), 0, no_complete=True)),
    ("drop the last", "UB207", lambda: mb.arrive_drop(State(0, 1, 1))),
    ("async arrive overflows", "UB208", lambda: mb.async_arrive_begin(State(0, 1, MAX_COUNT))),
    ("parity 2", "UB109", lambda: mb.wait_parity(State(0, 1, 1), 2)),
    ("parity -1", "UB109", lambda: mb.wait_parity(State(0, 1, 1), -1)),
    ("no state", "UB210", lambda: mb.wait_state(State(0, 1, 1), 0)),
    ("stale state", "UB210", lambda: mb.wait_state(State(2, 1, 1), mb.state_token(State(0, 1, 1)))),
    ("state from the future", "UB210", lambda: mb.wait_state(State(0, 1, 1), mb.state_token(State(1, 1, 1)))),
    ("state of another object", "UB210", lambda: mb.wait_state(State(0, 1, 1), mb.state_token(State(0, 1, 1), 8), 16)),
    ("pending_count of an arrive", "UB211", lambda: mb.pending_count(mb.state_token(State(0, 5, 4)))),
    ("pending_count of nothing", "UB211", lambda: mb.pending_count(0)),
    ("expect lifts to zero", "UB217", lambda: mb.expect_tx(State(0, 1, 0, -16), 16)),
]


@pytest.mark.parametrize(("code", "step"), [m[1:] for m in MISUSES], ids=[m[0] for m in MISUSES])
def test_misuse(code: str, step: Callable[[], object]) -> None:
    with pytest.raises(Misuse) as caught:
        step()
    assert caught.value.code == code
    assert caught.value.message
    assert "9.7.13.15" in caught.value.section


@pytest.mark.parametrize(("phase", "parity", "done"), [(0, 1, 1), (0, 0, 0), (1, 0, 1), (1, 1, 0), (2, 1, 1)])
def test_wait_parity(phase: int, parity: int, done: int) -> None:
    state = State(phase, 1, 1)
    assert mb.wait_parity(state, parity) == bool(done)


def test_state_operands() -> None:
    before = State(7, 5, 4)
    token = mb.state_token(before, 0x40, no_complete=True)
    assert 0 < token < 1 << 64
    assert mb.pending_count(token) == 4
    assert not mb.wait_state(before, token, 0x40)
    assert mb.wait_state(State(8, 5, 5), token, 0x40)


# --- an independent model -------------------------------------------------------------------------------


class Ledger:
    """Counts every arrival and every byte of a phase on its own, and asks after each whether the phase is over."""

    def __init__(self, members: int) -> None:
        self.phases_done = 0
        self.members = members
        self.owed = members
        self.arrived = 0
        self.announced = 0
        self.delivered = 0

    def expect(self, tx: int) -> str | None:
        short = self.announced - self.delivered
        self.announced += tx
        spent = self.arrived == self.owed
        if self.announced - self.delivered > MAX_COUNT:
            return "UB205"
        return "UB217" if spent and short < 0 and self.announced == self.delivered else None

    def deliver(self, tx: int) -> str | None:
        self.delivered += tx
        if self.delivered - self.announced > MAX_COUNT:
            return "UB205"
        self.turn()
        return None

    def arrive(self, count: int, tx: int, drop: bool, no_complete: bool) -> str | None:
        self.announced += tx
        if self.announced - self.delivered > MAX_COUNT:
            return "UB205"
        for _ in range(count):
            self.arrived += 1
            if self.arrived > self.owed:
                return "UB205"
        if drop:
            self.members -= count
            if self.members <= 0:
                return "UB205" if self.members < 0 else "UB207"
        done = self.phases_done
        self.turn()
        return "UB206" if no_complete and self.phases_done > done else None

    def extra(self, noinc: bool) -> str | None:
        self.owed += 0 if noinc else 1
        return None

    def turn(self) -> None:
        if self.arrived == self.owed and self.announced == self.delivered:
            self.phases_done += 1
            self.owed, self.arrived, self.announced, self.delivered = self.members, 0, 0, 0


AMOUNTS = st.sampled_from([0, 16, 16, 16, 32, MAX_COUNT])
ACTIONS = st.one_of(
    st.tuples(st.just("expect"), AMOUNTS),
    st.tuples(st.just("complete"), AMOUNTS),
    st.tuples(st.just("arrive"), st.integers(1, 2), st.sampled_from([0, 0, 16]), st.booleans(), st.integers(0, 5)),
    st.tuples(st.just("extra"), st.booleans()),
)


def run_machine(state: State, action: tuple[object, ...]) -> tuple[State, bool]:
    match action:
        case ("expect", int(tx)):
            return mb.expect_tx(state, tx)
        case ("complete", int(tx)):
            return mb.complete_tx(state, tx)
        case ("arrive", int(count), int(tx), bool(drop), int(rare)):
            quiet = rare == 0
            if drop:
                return mb.arrive_drop(state, count, tx=tx, no_complete=quiet)
            if tx:
                return mb.arrive_expect_tx(state, tx, count, no_complete=quiet)
            return mb.arrive(state, count, no_complete=quiet)
        case ("extra", bool(noinc)):
            return mb.async_arrive_begin(state, noinc=noinc)
    raise AssertionError(action)


def run_ledger(ledger: Ledger, action: tuple[object, ...]) -> str | None:
    match action:
        case ("expect", int(tx)):
            return ledger.expect(tx)
        case ("complete", int(tx)):
            return ledger.deliver(tx)
        case ("arrive", int(count), int(tx), bool(drop), int(rare)):
            return ledger.arrive(count, tx, drop, rare == 0)
        case ("extra", bool(noinc)):
            return ledger.extra(noinc)
    raise AssertionError(action)


@given(st.integers(1, 4), st.lists(ACTIONS, max_size=30))
def test_against_the_ledger(count: int, actions: list[tuple[object, ...]]) -> None:
    state, _ = mb.init(count)
    ledger = Ledger(count)
    for action in actions:
        done = ledger.phases_done
        wrong = run_ledger(ledger, action)
        if wrong is not None:
            with pytest.raises(Misuse) as caught:
                run_machine(state, action)
            assert caught.value.code == wrong
            return
        state, completed = run_machine(state, action)
        assert completed == (ledger.phases_done > done)
        assert state == State(
            ledger.phases_done, ledger.members, ledger.owed - ledger.arrived, ledger.announced - ledger.delivered
        )
        assert mb.wait_parity(state, 1 - ledger.phases_done % 2)
