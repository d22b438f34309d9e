"""The mbarrier as a state machine (9.7.13.15): every operation is one step of it."""

from __future__ import annotations

from tests.interleavings.state import Mbarrier, Misuse, State, Token, Unclear, Value

MOST = 2**20 - 1


def init(state: State, address: int, count: int) -> State:
    """9.7.13.15.9: phase 0, no bytes outstanding."""
    if any(abs(place - address) < 8 for place, _ in state.objects):
        raise Misuse("UB202", "UB203")
    if not 1 <= count <= MOST:
        raise Misuse("UB205")
    return state.with_object(address, Mbarrier(count, count, 0, 0, first=True, seen=False))


def inval(state: State, address: int) -> State:
    """9.7.13.15.10: the object is gone."""
    _there(state, address)
    return _aged(state.with_object(address, None), address, 2)


def _there(state: State, address: int, *codes: str) -> Mbarrier:
    found = state.object(address)
    if found is None:
        raise Misuse("UB201", *codes)
    return found


def expect(state: State, address: int, amount: int) -> State:
    """9.7.13.15.5.1: the tx-count of the open phase grows; nothing is said to complete."""
    o = _there(state, address)
    if o.pending == 0 and o.tx < 0 and o.tx + amount == 0:
        raise Misuse("UB217")
    if abs(o.tx + amount) > MOST:
        raise Misuse("UB205")
    return state.with_object(address, o._replace(tx=o.tx + amount))


def complete(state: State, address: int, amount: int) -> State:
    """9.7.13.15.5.2: by an instruction, or by a copy whose object may be gone by now."""
    o = _there(state, address, "UB215")
    if abs(o.tx - amount) > MOST:
        raise Misuse("UB205")
    return _checked(state, address, o._replace(tx=o.tx - amount))


def announce(state: State, address: int) -> State:
    """9.7.13.15.15: without ``.noinc`` an arrival more is pending until the copies are done."""
    o = _there(state, address)
    if o.pending == MOST:
        raise Misuse("UB208")
    return state.with_object(address, o._replace(pending=o.pending + 1))


def arrive(
    state: State, address: int, count: int, tx: int | None = None, *, drop: bool = False, partial: bool = False
) -> tuple[State, Token]:
    """9.7.13.15.13 and .14: the bytes if they are fused, then the drop, then the arrival."""
    o = _there(state, address, "UB215")
    wrong = []
    if not 1 <= count <= o.pending:
        wrong.append("UB205")
    if drop and o.expected <= count:
        wrong.append("UB207")
    due = o.tx + (tx or 0)
    if abs(due) > MOST:
        wrong.append("UB205")
    if partial and o.pending == count and due == 0:
        wrong.append("UB206")
    if wrong:
        raise Misuse(*wrong)
    left = o.expected - count if drop else o.expected
    after = o._replace(expected=left, pending=o.pending - count, tx=due, owed=o.owed or not (o.first or o.seen))
    token = Token(address, 0, o.pending, partial)
    done = _checked(state, address, after)
    return done, token._replace(age=1) if after.pending == 0 and after.tx == 0 else token


def _checked(state: State, address: int, o: Mbarrier) -> State:
    """9.7.13.15.6: with nothing pending and no bytes due the next phase begins."""
    if o.pending or o.tx:
        return state.with_object(address, o)
    o = o._replace(
        pending=o.expected, parity=1 - o.parity, first=False, seen=False, owed=False, missed=o.missed or o.owed
    )
    return _aged(state.with_object(address, o), address, 1)


def _aged(state: State, address: int, phases: int) -> State:
    """State operands in registers are older by so many phases of an object."""
    threads = tuple(t._replace(registers=tuple(_older(v, address, phases) for v in t.registers)) for t in state.threads)
    return state._replace(threads=threads)


def _older(value: Value, address: int, phases: int) -> Value:
    if isinstance(value, Token) and value.object == address:
        return value._replace(age=min(2, value.age + phases))
    return value


def look(state: State, address: int, parity: int | None, token: Value) -> tuple[State, bool]:
    """9.7.13.15.16: false for the open phase, true for the one before."""
    o = _there(state, address)
    if parity is not None:
        if parity not in (0, 1):
            raise Misuse("UB109")
        passed = o.parity != parity
    elif token is None:
        raise Unclear
    elif isinstance(token, int) or token.object != address or token.age > 1:
        raise Misuse("UB210")
    else:
        passed = token.age == 1
    return (state.with_object(address, o._replace(seen=True, owed=False)), True) if passed else (state, False)


def pending(token: Value) -> int:
    """9.7.13.15.17: only of a state that a ``.noComplete`` arrive returned."""
    if token is None:
        raise Unclear
    if isinstance(token, int) or not token.partial:
        raise Misuse("UB211")
    return token.pending
