"""What each operation does at once: local computation, generic memory, mbarriers, barriers, waits.

Asynchronous operations are in ``mcheck.simulate.asynchronous``.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.errors import InternalError
from mcheck.executor import copies, mbarrier
from mcheck.executor.misuse import Misuse
from mcheck.executor.reductions import atomic as reduce_atomic
from mcheck.program import alu, ops
from mcheck.program.expr import Reg, apply_binary
from mcheck.program.ops import Op
from mcheck.simulate import asynchronous, barriers
from mcheck.simulate.machine import Machine, Runner, Value

Handler = Callable[[Machine, Runner, Op], None]


def size_of(type_name: str) -> int:
    """Bytes of a PTX type; a predicate counts as one."""
    base, _, pair = type_name.partition("x")
    bits = 8 if base == "pred" else 16 if base == "bf16" else 32 if base == "tf32" else int(base[1:])
    return max(bits // 8, 1) * (int(pair) if pair else 1)


def typed(type_name: str, bits: Value) -> Value:
    """Raw bits as a value of the type: signed types are negative above their maximum."""
    if bits is None or type_name[0] != "s":
        return bits
    width = 8 * size_of(type_name)
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
    if op.op == "elect":
        place = runner.thread.place
        lanes = [
            r.thread.place.lane
            for r in m.runners
            if r.thread.place.cta == place.cta and r.thread.place.warp == place.warp and not r.ended
        ]
        mask = values[0] if values[0] is not None else 0xFFFFFFFF
        leader = min((lane for lane in lanes if mask >> lane & 1), default=0)
        results = (leader, int(leader == place.lane))
        dsts = dsts if len(dsts) > 1 else (None, *dsts)
    elif op.op == "mapa":
        address, rank = m.address(runner, op.srcs[0]), m.number(runner, op.srcs[1], "rank")
        results = (asynchronous.in_rank(m, runner, address, rank),)
    elif op.op == "mov" and op.type.startswith("b"):
        results = tuple(values)
    elif any(v is None for v in values):
        results = (None,) * len(dsts)
    else:
        known = [v for v in values if v is not None]
        results = alu.compute(op.op, op.type, op.src_type, known)
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
        m.jump(runner, runner.thread.labels[op.target])
    else:
        runner.pc += 1


def _exit(m: Machine, runner: Runner, op: Op) -> None:  # noqa: ARG001 - handlers have one signature
    m.end(runner)


def _nothing(m: Machine, runner: Runner, op: Op) -> None:  # noqa: ARG001 - handlers have one signature
    """Labels and fences: memory is sequentially consistent here."""
    runner.pc += 1


# --- generic memory -----------------------------------------------------------------------------------


def _check(m: Machine, runner: Runner, address: int, size: int, space: str, count: int = 1) -> None:
    m.memory.locate(address, size * count)
    copies.check_aligned(address, size * (count if count in (2, 4, 8) else 1), "address")
    if space not in ("generic", "local"):
        wanted = "shared::cta" if space == "shared" else space
        instance = m.memory.find(address)
        assert instance is not None
        here, there = runner.thread.place.cta, instance.cta
        actual = instance.object.space
        if actual != wanted.partition("::")[0]:
            raise Misuse("UB108", f"{instance.label} is in .{actual}, not in .{space}", copies.ADDRESSES)
        if there is not None and wanted == "shared::cta" and there != here:
            raise Misuse("UB108", f"{instance.label} is in the shared memory of another CTA", copies.ADDRESSES)
        if there is not None and (there.gpu, there.cluster) != (here.gpu, here.cluster):
            raise Misuse("UB108", f"{instance.label} is in the shared memory of another cluster", copies.ADDRESSES)
    if m.barriers:
        m.untouched(address, size * count)


def _load(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.Load)
    address, size = m.address(runner, op.address, "address", op.space), size_of(op.type)
    _check(m, runner, address, size, op.space, len(op.dsts))
    for k, reg in enumerate(op.dsts):
        _set(runner, reg, typed(op.type, m.memory.load(address + k * size, size)))
    runner.pc += 1


def _store(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.Store)
    address, size = m.address(runner, op.address, "address", op.space), size_of(op.type)
    _check(m, runner, address, size, op.space, len(op.srcs))
    for k, src in enumerate(op.srcs):
        if m.memory.store(address + k * size, size, m.value(runner, src)):
            m.changes += 1
    runner.pc += 1


def _atomic(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.Atomic)
    address, size = m.address(runner, op.address, "address", op.space), size_of(op.type)
    _check(m, runner, address, size, op.space)
    old = m.memory.load(address, size)
    operands = [m.value(runner, src) for src in op.srcs]
    new: Value = None
    mask = (1 << 8 * size) - 1
    if op.op == "exch":
        new = operands[0]
    elif old is not None and all(v is not None for v in operands):
        space = m.memory.locate(address)[0].instance.object.space
        known = [v & mask for v in operands if v is not None]
        new = reduce_atomic(op.op, op.type, old, known, flush_subnormals=space != "shared")
    elif op.op == "cas" and old is None:
        m.notes.add(f"'{op.text}' compares with contents that nothing has written")
    if m.memory.store(address, size, new):
        m.changes += 1
    _set(runner, op.dst, typed(op.type, old))
    runner.pc += 1


# --- mbarrier -----------------------------------------------------------------------------------------


def object_address(m: Machine, runner: Runner, address: int, *, own: bool) -> int:
    """The place of an mbarrier operand: 8 aligned bytes of shared memory, of the own CTA where only that is allowed."""
    section = "PTX ISA 9.0 section 9.7.13.15"
    m.memory.locate(address, mbarrier.OBJECT_SIZE)
    copies.check_aligned(address, mbarrier.OBJECT_ALIGN, "mbarrier", section)
    instance = m.memory.find(address)
    here = runner.thread.place.cta
    if instance is None or instance.cta is None:
        raise Misuse("UB204", "the mbarrier object is not in shared memory", section)
    if own and instance.cta != here:
        raise Misuse("UB204", "the mbarrier object is not in the shared memory of the executing CTA", section)
    if (instance.cta.gpu, instance.cta.cluster) != (here.gpu, here.cluster):
        raise Misuse("UB204", "the mbarrier object is in the shared memory of another cluster", section)
    return address


def _init(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.MbarrierInit)
    address = object_address(m, runner, m.address(runner, op.address), own=True)
    if any(place < address + 8 and address < place + 8 for place in m.barriers):
        raise Misuse("UB202", "mbarrier.init of memory that holds a valid mbarrier object", op.section)
    m.advance(address, mbarrier.init(m.number(runner, op.count, "count")))
    m.memory.store(address, 8, None)
    for each in m.runners:
        each.known_phase.pop(address, None)
    m.waited[address] = -1
    runner.pc += 1


def _inval(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.MbarrierInval)
    address = object_address(m, runner, m.address(runner, op.address), own=True)
    m.live(address)
    del m.barriers[address]
    m.changes += 1
    runner.pc += 1


def _tx(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.MbarrierTx)
    address = object_address(m, runner, m.address(runner, op.address), own=op.space == "shared::cta")
    step = mbarrier.expect_tx if op.kind == "expect" else mbarrier.complete_tx
    m.advance(address, step(m.live(address), m.number(runner, op.tx, "tx-count")))
    runner.pc += 1


def _arrive(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.MbarrierArrive)
    address = object_address(m, runner, m.address(runner, op.address), own=op.space == "shared::cta")
    count, tx = m.maybe(runner, op.count, "count"), m.maybe(runner, op.tx, "tx-count")
    target = m.program.target
    if count is not None and not op.no_complete and target is not None and _architecture(target) < 90:
        raise Misuse("UB213", "an arrive with a count needs sm_90 unless it has .noComplete", op.section)
    state = m.live(address)
    n = 1 if count is None else count
    if op.drop:
        step = mbarrier.arrive_drop(state, n, tx=tx or 0, no_complete=op.no_complete)
    elif tx is not None:
        step = mbarrier.arrive_expect_tx(state, tx, n, no_complete=op.no_complete)
    else:
        step = mbarrier.arrive(state, n, no_complete=op.no_complete)
    asynchronous.note_unwaited(m, runner.thread.index, op, address, state)
    m.advance(address, step)
    _set(runner, op.state, mbarrier.state_token(state, address, no_complete=op.no_complete))
    runner.pc += 1


def _architecture(target: str) -> int:
    return int("".join(c for c in target if c.isdigit()))


def wait_result(m: Machine, runner: Runner, op: ops.MbarrierWait, *, final: bool) -> bool:
    """The predicate of a test_wait or try_wait. ``final``: the thread acts on the answer, so it counts as observed.

    A wait on a parity means the first phase of it after the last that the thread saw complete; if the object is two
    phases further the answer is about another phase (9.7.13.15.16).
    """
    address = object_address(m, runner, m.address(runner, op.address), own=True)
    state = m.live(address)
    if op.parity is not None:
        parity = m.number(runner, op.parity, "parity")
        done = mbarrier.wait_parity(state, parity)
        last = runner.known_phase.get(address, -1)
        meant = last if state.phase - 1 == last and done else mbarrier.next_phase(last, parity)
        if meant < state.phase - 1:
            mbarrier.check_awaited(state, meant)
    else:
        assert op.state is not None
        token = m.value(runner, op.state)
        if token is None:
            raise Misuse("UB210", "the state operand was not returned by an arrive on this mbarrier", op.section)
        done = mbarrier.wait_state(state, token, address)
    if done and final:
        runner.known_phase[address] = state.phase - 1
        m.waited[address] = max(m.waited.get(address, -1), state.phase - 1)
    return done


def _wait(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.MbarrierWait)
    _set(runner, op.dst, int(wait_result(m, runner, op, final=True)))
    runner.pc += 1


def _pending(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.MbarrierPending)
    token = m.value(runner, op.state)
    if token is None:
        raise Misuse("UB211", "pending_count of a state that no .noComplete arrive returned", op.section)
    _set(runner, op.dst, mbarrier.pending_count(token))
    runner.pc += 1


# --- await --------------------------------------------------------------------------------------------


def _await(m: Machine, runner: Runner, op: Op) -> None:
    """Blocks until the awaited operation gives what is asked for; while it does not, it is tried again later."""
    assert isinstance(op, ops.Await)
    inner = op.inner
    if isinstance(inner, ops.MbarrierWait):
        wait = inner
        if wait_result(m, runner, wait, final=True):
            runner.pc += 1
            return
        runner.waits = lambda: wait_result(m, runner, wait, final=True)
        runner.pc += 1
        return
    here = runner.pc
    before = m.changes
    HANDLERS[type(inner)](m, runner, inner)
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
    barriers.barrier(m, runner, op)


def _cluster(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.ClusterBarrier)
    barriers.cluster(m, runner, op)


def _warp(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.WarpSync)
    barriers.warp(m, runner, op)


HANDLERS: dict[type[Op], Handler] = {
    ops.Alu: _alu,
    ops.Label: _nothing,
    ops.Branch: _branch,
    ops.Exit: _exit,
    ops.Await: _await,
    ops.Load: _load,
    ops.Store: _store,
    ops.Atomic: _atomic,
    ops.Fence: _nothing,
    ops.ProxyFence: _nothing,
    ops.Barrier: _barrier,
    ops.ClusterBarrier: _cluster,
    ops.WarpSync: _warp,
    ops.MbarrierInit: _init,
    ops.MbarrierInval: _inval,
    ops.MbarrierTx: _tx,
    ops.MbarrierArrive: _arrive,
    ops.MbarrierWait: _wait,
    ops.MbarrierPending: _pending,
    ops.WgmmaFence: _nothing,
    **asynchronous.HANDLERS,
}
