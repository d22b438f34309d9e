"""The state machine of an mbarrier object (PTX ISA 9.0 section 9.7.13.15), shared by all engines.

An object is the value of a ``State``; an address without a valid object is the engine's to report (UB201).
Every operation is a pure function from a state to ``(new state, completed)``; what the ISA leaves undefined raises
``Misuse``. The phase completes when the pending count and the tx-count are both zero (9.7.13.15.6), and only
arrive-on and complete-tx test for it. Not modelled: the second object layout of PTX ISA 9.3 (smaller counts, reports).
"""

from __future__ import annotations

from mcheck.base.phrase import Case
from mcheck.base.records import dataclass, replace
from mcheck.semantics.undefined import Misuse

MAX_COUNT = 2**20 - 1
"""The largest expected or pending count, and the largest magnitude of the tx-count (9.7.13.15.2)."""

OBJECT_SIZE = 8
OBJECT_ALIGN = 8

_CONTENTS = "PTX ISA 9.0 section 9.7.13.15.2"
_COMPLETION = "PTX ISA 9.0 section 9.7.13.15.6"
_INIT = "PTX ISA 9.0 section 9.7.13.15.9"
_ARRIVE = "PTX ISA 9.0 section 9.7.13.15.13"
_DROP = "PTX ISA 9.0 section 9.7.13.15.14"
_ASYNC_ARRIVE = "PTX ISA 9.0 section 9.7.13.15.15"
_WAIT = "PTX ISA 9.0 section 9.7.13.15.16"
_PENDING_COUNT = "PTX ISA 9.0 section 9.7.13.15.17"


@dataclass(frozen=True, slots=True)
class State:
    """A valid object: current (incomplete) phase, arrivals expected of later phases, arrivals pending now, tx-count."""

    phase: int
    expected: int
    pending: int
    tx: int = 0


Step = tuple[State, bool]
"""The state after an operation, and whether the operation completed the phase that was current before it."""


# --- operations ---------------------------------------------------------------------------------------


def init(count: int) -> Step:
    """``mbarrier.init``: phase 0, ``count`` arrivals expected and pending, tx-count 0 (9.7.13.15.9)."""
    if not 1 <= count <= MAX_COUNT:
        raise Misuse("UB205", f"mbarrier.init with count {count}, which is not in 1..{MAX_COUNT}", _INIT)
    return State(0, count, count, 0), False


def expect_tx(state: State, tx: int) -> Step:
    """expect-tx raises the tx-count of the current phase (9.7.13.15.5.1) and never tests for completion.

    The text does not settle what happens if it lifts a negative tx-count to zero after the last arrival: 9.7.13.15.6
    reads as a condition on the state, while only arrive-on and complete-tx are said to test it. That is reported.
    """
    after = _add_tx(state, _unsigned(tx, "expect-tx"))
    if state.pending == 0 and state.tx < 0 and after.tx == 0:
        raise Misuse(
            "UB217",
            f"expect-tx of {tx} lifts the tx-count to 0 in phase {state.phase}, whose arrivals are all spent",
            _COMPLETION,
        )
    return after, False


def complete_tx(state: State, tx: int) -> Step:
    """complete-tx lowers the tx-count of the current phase and completes it if nothing is left (9.7.13.15.5.2, .6).

    The tx-count may become negative: as long as an arrival is pending the matching expect-tx may still come.
    """
    return _settle(_add_tx(state, -_unsigned(tx, "complete-tx")))


def arrive(state: State, count: int = 1, *, no_complete: bool = False) -> Step:
    """arrive-on ``count`` (9.7.13.15.7); with ``no_complete`` it must not complete the phase (9.7.13.15.13)."""
    return _arrive_on(state, count, no_complete, _ARRIVE)


def arrive_expect_tx(state: State, tx: int, count: int = 1, *, no_complete: bool = False) -> Step:
    """``mbarrier.arrive.expect_tx``: expect-tx, then arrive-on, as one operation (9.7.13.15.13)."""
    return _arrive_on(_add_tx(state, _unsigned(tx, "expect-tx")), count, no_complete, _ARRIVE)


def arrive_drop(state: State, count: int = 1, *, tx: int = 0, no_complete: bool = False) -> Step:
    """``mbarrier.arrive_drop{.expect_tx}``: fewer arrivals in all later phases, then arrive-on (9.7.13.15.14)."""
    announced = _add_tx(state, _unsigned(tx, "expect-tx"))
    _check_arrivals(announced, count, _DROP)
    expected = announced.expected - count
    if expected < 0:
        raise Misuse("UB205", f"arrive_drop of {count} with {announced.expected} expected arrivals", _DROP)
    if expected == 0:
        raise Misuse("UB207", f"arrive_drop of {count} leaves no expected arrival for the next phase", _DROP)
    return _arrive_on(replace(announced, expected=expected), count, no_complete, _DROP)


def async_arrive_begin(state: State, *, noinc: bool = False) -> Step:
    """What ``cp.async.mbarrier.arrive`` does at once: a further pending arrival, unless ``.noinc`` (9.7.13.15.15)."""
    if noinc:
        return state, False
    if state.pending + 1 > MAX_COUNT:
        raise Misuse("UB208", f"cp.async.mbarrier.arrive raises the pending count above {MAX_COUNT}", _ASYNC_ARRIVE)
    return replace(state, pending=state.pending + 1), False


def async_arrive_end(state: State) -> Step:
    """The arrive-on 1 that ``cp.async.mbarrier.arrive`` triggers once the thread's earlier cp.async are done."""
    return _arrive_on(state, 1, False, _ASYNC_ARRIVE)


# --- waiting ------------------------------------------------------------------------------------------


def wait_parity(state: State, parity: int) -> bool:
    """``test_wait.parity``/``try_wait.parity`` (9.7.13.15.16): is the phase of that parity complete?

    Parity 1 on a fresh object is true at once: it names the phase before phase 0. A parity names the current or the
    immediately preceding phase, whichever phase the thread may have had in mind (open question Q16).
    """
    if parity not in (0, 1):
        raise Misuse("UB109", f"phase parity {parity} is neither 0 nor 1", _WAIT)
    return parity != state.phase & 1


# --- state operands -----------------------------------------------------------------------------------
#
# The state that an arrive returns is opaque; ours packs what the waits and pending_count need to know:
# bits 0-19 the pending count before the arrive (never 0), 20 whether the arrive was .noComplete, 21-39 the
# phase, 40-63 the object's place in its shared window (not 0 at its start either: no half of a state is one).

NO_COMPLETE = 1 << 20
_PHASES = 1 << 19
_PLACES = 1 << 24


def state_token(state: State, address: int = 0, *, no_complete: bool = False) -> int:
    """The 64-bit state operand that an arrive on ``state`` at ``address`` returns (9.7.13.15.13)."""
    constant, shift = state_parts(address, no_complete=no_complete)
    return constant | state.pending | state.phase % _PHASES << shift


def state_parts(address: int, *, no_complete: bool) -> tuple[int, int]:
    """What of a state operand does not depend on the state, and the place of the phase; the count is lowest."""
    return no_complete * NO_COMPLETE | _place(address) << 40, 21


def wait_state(state: State, token: int, address: int = 0) -> bool:
    """``test_wait``/``try_wait`` with a state operand: is the phase of the arrive that returned it complete?

    The operand must come from an arrive on this object in the current or the preceding phase (9.7.13.15.16).
    """
    if not _is_token(token) or token >> 40 != _place(address):
        raise Misuse("UB210", "the state operand of the wait was not returned by an arrive on this mbarrier", _WAIT)
    behind = phases_behind(state, token)
    if behind > 1:
        phase = (token >> 21) % _PHASES
        raise Misuse("UB210", f"the state operand is of phase {phase}, the mbarrier is in phase {state.phase}", _WAIT)
    return behind == 1


def phases_behind(state: State, token: int) -> int:
    """How many phases have ended since the arrive that returned a state operand."""
    return (state.phase - (token >> 21)) % _PHASES


def pending_before(token: int) -> int | None:
    """``pending_count``, where there is one."""
    return token & MAX_COUNT if _is_token(token) and token & NO_COMPLETE else None


def pending_count(token: int) -> int:
    """``mbarrier.pending_count``: the count before the ``.noComplete`` arrive that gave ``token`` (9.7.13.15.17)."""
    count = pending_before(token)
    if count is None:
        raise Misuse("UB211", "pending_count of a state that no .noComplete arrive returned", _PENDING_COUNT)
    return count


# --- helpers ------------------------------------------------------------------------------------------


def _place(address: int) -> int:
    return (address // OBJECT_ALIGN + 1) % _PLACES


def _is_token(token: int) -> bool:
    return 0 <= token < 1 << 64 and token & MAX_COUNT != 0


def _unsigned(tx: int, what: str) -> int:
    if tx < 0:
        raise Misuse("UB205", f"{what} of {tx}, which is negative", _CONTENTS)
    return tx


def _add_tx(state: State, amount: int) -> State:
    tx = state.tx + amount
    if not -MAX_COUNT <= tx <= MAX_COUNT:
        raise Misuse("UB205", f"the tx-count becomes {tx}, outside -{MAX_COUNT}..{MAX_COUNT}", _CONTENTS)
    return replace(state, tx=tx)


def _check_arrivals(state: State, count: int, section: str) -> None:
    if not 1 <= count <= MAX_COUNT:
        raise Misuse("UB205", f"arrival count {count} is not in 1..{MAX_COUNT}", section)
    if count > state.pending:
        several = () if count == 1 else (Case("several arrivals"),)
        arrivals = f"{count} arrival{'s' if several else ''}"
        said = f"{arrivals} in phase {state.phase}, which has {state.pending} pending"
        raise Misuse("UB205", (said, *several), section)


def _arrive_on(state: State, count: int, no_complete: bool, section: str) -> Step:
    _check_arrivals(state, count, section)
    after, completed = _settle(replace(state, pending=state.pending - count))
    if completed and no_complete:
        raise Misuse("UB206", f"a .noComplete arrive of {count} would complete phase {state.phase}", section)
    return after, completed


def _settle(state: State) -> Step:
    """The completion test of 9.7.13.15.6; a new phase starts with the expected count pending and tx-count 0."""
    if state.pending == 0 and state.tx == 0:
        return State(state.phase + 1, state.expected, state.expected, 0), True
    return state, False
