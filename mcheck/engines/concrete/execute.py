"""Concrete execution of synchronous operations: arithmetic, generic memory, mbarriers, barriers, waits.

Asynchronous operations are in ``mcheck.engines.concrete.async_operations``.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.base.errors import InternalError
from mcheck.effects.effect import Access
from mcheck.effects.registry import EFFECTS
from mcheck.engines.concrete import async_operations, execution_barriers
from mcheck.engines.concrete.machine import Machine, Runner, Value
from mcheck.findings.undefined_effects import continues_after
from mcheck.ir import alu, ops
from mcheck.ir.expr import Reg, apply_binary
from mcheck.ir.ops import Op
from mcheck.ir.type_sizes import type_size
from mcheck.semantics import mbarrier
from mcheck.semantics.reductions import atomic as reduce_atomic
from mcheck.semantics.undefined import Misuse

Handler = Callable[[Machine, Runner, Op], None]


def typed(type_name: str, bits: Value) -> Value:
    """Raw bits as a value of the type: signed types are negative above their maximum."""
    if bits is None or type_name[0] != "s":
        return bits
    width = 8 * type_size(type_name)
    bits &= (1 << width) - 1
    return bits - (1 << width) if bits >> (width - 1) else bits


def _set(runner: Runner, reg: Reg | None, value: Value) -> None:
    if reg is not None:
        runner.registers[reg.name] = value


# --- local computation and control flow ---------------------------------------------------------------


def _alu(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.Alu)
    values = [m.value(runner, src) for src in op.srcs]
    dsts = op.dsts
    results: tuple[Value, ...]
    if op.op == "activemask":
        m.notes.add(f"which lanes execute '{op.text}' together is not known")
        results = (None,)
    elif op.op == "opaque":
        results = (None,)
    elif op.op == "mapa":
        made = m.effect_of(runner, op)
        results = (m.require_part(made, made.result),)
    elif op.op == "mov" and op.type.startswith("b"):
        results = tuple(values)
    elif any(v is None for v in values):
        results = (None,) * len(dsts)
    else:
        known = [v for v in values if v is not None]
        if not alu.has_value(op.op, op.type, known):
            m.notes.add(f"'{op.text}' divides by zero, which gives an unspecified value")
            results = (None,) * len(dsts)
        else:
            results = alu.compute(op.op, op.type, op.src_type, known, len(dsts))
    for reg, result in zip(dsts, results, strict=False):
        _set(runner, reg, result)
    runner.pc += 1


def _branch(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.Branch)
    taken: Value = 1
    if op.condition is not None:
        taken = m.value(runner, op.condition)
        if taken is None:
            taken = m.choose(f"the branch '{op.text}'")
    if taken:
        m.branch_to(runner, runner.thread.labels[op.target])
    else:
        runner.pc += 1


def _trap(m: Machine, runner: Runner, op: Op) -> None:
    """The effect has its fault."""
    m.effect_of(runner, op)
    runner.pc += 1


def _exit(m: Machine, runner: Runner, op: Op) -> None:  # noqa: ARG001 - handlers have one signature
    m.end_thread(runner)


def _nothing(m: Machine, runner: Runner, op: Op) -> None:  # noqa: ARG001 - handlers have one signature
    """Labels and fences have no effect: memory is sequentially consistent here."""
    runner.pc += 1


def _proxy_fence(m: Machine, runner: Runner, op: Op) -> None:
    """Orders nothing here, but its operands are checked."""
    m.effect_of(runner, op)
    runner.pc += 1


def _parted(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.DivergentAligned)
    if not continues_after(m.program, op.code, op):
        raise Misuse(op.code, op.reason, op.section)
    m.report(op.code, op.reason, runner.thread.index, op, f"PTX ISA 9.0 section {op.section}")
    runner.pc += 1


# --- generic memory -----------------------------------------------------------------------------------


def _accesses(m: Machine, runner: Runner, op: Op) -> tuple[Access, ...]:
    """The scalars that an instruction accesses; none may overlap a valid mbarrier object."""
    made = m.effect_of(runner, op)
    accesses = m.require_part(made, made.accesses or None) if isinstance(op, ops.Atomic) else made.accesses
    for access in accesses if m.barriers else ():
        m.check_untouched(access.address, access.size)
    return accesses


def _load(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.Load)
    accesses = _accesses(m, runner, op)
    for reg in op.dsts[len(accesses) :]:
        _set(runner, reg, None)
    for reg, access in zip(op.dsts, accesses, strict=False):
        found = None if op.matrix_rows else m.memory.load(access.address, access.size)
        _set(runner, reg, typed(op.type, found))
    runner.pc += 1


def _store(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.Store)
    for src, access in zip(op.srcs, _accesses(m, runner, op), strict=False):
        if m.memory.store(access.address, access.size, None if op.matrix_rows else m.value(runner, src)):
            m.changes += 1
    runner.pc += 1


def _atomic(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.Atomic)
    (access,) = _accesses(m, runner, op)
    address, size = access.address, access.size
    old = m.memory.load(address, size)
    operands = [m.value(runner, src) for src in op.srcs]
    new: Value = None
    mask = (1 << 8 * size) - 1
    if op.op == "exch":
        new = operands[0]
    elif old is not None and all(v is not None for v in operands):
        space = m.memory.locate(address)[0].instance.object.space
        known = [v & mask for v in operands if v is not None]
        if op.op != "div" or known[0]:
            new = reduce_atomic(op.op, op.type, old, known, flush_subnormals=space != "shared")
    elif op.op == "cas" and old is None:
        m.notes.add(f"'{op.text}' compares with uninitialised contents")
    if m.memory.store(address, size, new):
        m.changes += 1
    _set(runner, op.dst, typed(op.type, old))
    runner.pc += 1


# --- mbarrier -----------------------------------------------------------------------------------------


def _init(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.MbarrierInit)
    address = m.mbarrier_address(runner, op)
    if any(place < address + 8 and address < place + 8 for place in m.barriers):
        raise Misuse("UB202", "mbarrier.init of memory that holds a valid mbarrier object", op.section)
    m.advance(address, mbarrier.init(m.known_value(runner, op.count, "count")))
    m.memory.store(address, 8, None)
    m.waited[address] = -1
    runner.pc += 1


def _inval(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.MbarrierInval)
    address = m.mbarrier_address(runner, op)
    m.mbarrier_state(address)
    del m.barriers[address]
    m.changes += 1
    runner.pc += 1


def _tx(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.MbarrierTx)
    address = m.mbarrier_address(runner, op)
    step = mbarrier.expect_tx if op.kind == "expect" else mbarrier.complete_tx
    m.advance(address, step(m.mbarrier_state(address), m.known_value(runner, op.tx, "tx-count")))
    runner.pc += 1


def _arrive(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.MbarrierArrive)
    address = m.mbarrier_address(runner, op)
    count, tx = m.optional_value(runner, op.count, "count"), m.optional_value(runner, op.tx, "tx-count")
    state = m.mbarrier_state(address)
    n = 1 if count is None else count
    if op.drop:
        step = mbarrier.arrive_drop(state, n, tx=tx or 0, no_complete=op.no_complete)
    elif tx is not None:
        step = mbarrier.arrive_expect_tx(state, tx, n, no_complete=op.no_complete)
    else:
        step = mbarrier.arrive(state, n, no_complete=op.no_complete)
    async_operations.note_unwaited(m, runner.thread.index, op, address, state)
    m.advance(address, step)
    token = mbarrier.state_token(state, address, no_complete=op.no_complete)
    m.tokens.add((address, token))
    _set(runner, op.state, token)
    runner.pc += 1


def wait_result(m: Machine, runner: Runner, op: ops.MbarrierWait) -> bool:
    """The predicate of a test_wait or try_wait (9.7.13.15.16)."""
    address = m.mbarrier_address(runner, op)
    state = m.mbarrier_state(address)
    if op.parity is not None:
        done = mbarrier.wait_parity(state, m.known_value(runner, op.parity, "parity"))
    else:
        assert op.state is not None
        token = m.value(runner, op.state)
        if token is None or (address, token) not in m.tokens:
            raise Misuse("UB210", "the state operand was not returned by an arrive on this mbarrier", op.section)
        done = mbarrier.wait_state(state, token, address)
    if done:
        m.waited[address] = max(m.waited.get(address, -1), state.phase - 1)
    return done


def _wait(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.MbarrierWait)
    _set(runner, op.dst, int(wait_result(m, runner, op)))
    runner.pc += 1


def _pending(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.MbarrierPending)
    token = m.value(runner, op.state)
    if token is None or all(token != given for _, given in m.tokens):
        raise Misuse("UB211", "pending_count of a state that no .noComplete arrive returned", op.section)
    _set(runner, op.dst, mbarrier.pending_count(token))
    runner.pc += 1


def handler_of(op: Op) -> Handler:
    """The function that executes an operation: its own handler, or the one that applies its effect."""
    found = HANDLERS.get(type(op)) or (_execute_by_effect if type(op) in EFFECTS else None)
    if found is None:
        raise InternalError(f"no execution of {type(op).__name__}")
    return found


def _execute_by_effect(m: Machine, runner: Runner, op: Op) -> None:
    """Executes an operation that its effect describes completely: checks the operands, then stores."""
    for stored in m.effect_of(runner, op).stores:
        if m.barriers and stored.size:
            m.check_untouched(stored.address, stored.size)
        m.memory.write(stored.address, stored.value.to_bytes(stored.size, "little"), None)
        m.changes += 1
    runner.pc += 1


# --- await --------------------------------------------------------------------------------------------


def _await(m: Machine, runner: Runner, op: Op) -> None:
    """Blocks until the awaited operation gives the expected result, which is tried again after each change."""
    assert isinstance(op, ops.Await)
    inner = op.inner
    if isinstance(inner, ops.MbarrierWait):
        wait = inner
        if wait_result(m, runner, wait):
            runner.pc += 1
            return
        runner.wake_condition = lambda: wait_result(m, runner, wait)
        runner.pc += 1
        return
    here = runner.pc
    before = m.changes
    handler_of(inner)(m, runner, inner)
    if op.compare is None:
        raise InternalError(f"await of '{inner.text}' without a comparison")
    operator, right = op.compare
    target = (getattr(inner, "dsts", None) or (getattr(inner, "dst", None),))[0]
    a = runner.registers.get(target.name) if target is not None else None
    b = m.value(runner, right)
    holds: Value = None if a is None or b is None else _compare(operator, a, b)
    if holds is None:
        holds = m.choose(f"'{op.text}'")
    if holds:
        return
    runner.pc = here
    if m.changes == before:
        runner.asleep_at = m.changes


def _compare(operator: str, a: int, b: int) -> int:
    """``a operator b`` of an await."""
    return apply_binary(operator, a, b)


def _barrier(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.Barrier)
    execution_barriers.barrier(m, runner, op)


def _cluster(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.ClusterBarrier)
    execution_barriers.cluster(m, runner, op)


def _collective(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.Collective)
    execution_barriers.collective(m, runner, op)


def _warp(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.WarpSync)
    execution_barriers.warp(m, runner, op)


HANDLERS: dict[type[Op], Handler] = {
    ops.Alu: _alu,
    ops.Label: _nothing,
    ops.Branch: _branch,
    ops.Exit: _exit,
    ops.Trap: _trap,
    ops.Await: _await,
    ops.Load: _load,
    ops.Store: _store,
    ops.Atomic: _atomic,
    ops.Fence: _nothing,
    ops.ProxyFence: _proxy_fence,
    ops.DivergentAligned: _parted,
    ops.Barrier: _barrier,
    ops.ClusterBarrier: _cluster,
    ops.WarpSync: _warp,
    ops.Collective: _collective,
    ops.MbarrierInit: _init,
    ops.MbarrierInval: _inval,
    ops.MbarrierTx: _tx,
    ops.MbarrierArrive: _arrive,
    ops.MbarrierWait: _wait,
    ops.MbarrierPending: _pending,
    ops.WgmmaFence: _nothing,
    ops.GridWait: _nothing,
    **async_operations.HANDLERS,
}
