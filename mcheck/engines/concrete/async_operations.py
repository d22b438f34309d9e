"""Concrete execution of asynchronous operations (PTX ISA 9.0 sections 9.7.9.12, 9.7.9.25 to 9.7.9.27).

Preconditions are checked when the instruction executes; source and destination are accessed later, in two steps.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.effects import async_copies
from mcheck.effects.dispatch import tensor_copy_effect
from mcheck.effects.effect import Effect, Signal
from mcheck.engines.concrete.machine import Groups, Machine, Runner, Task
from mcheck.events.warpgroups import committing_threads
from mcheck.ir import ops
from mcheck.ir.ops import Op
from mcheck.semantics import arrays, mbarrier, tensor_footprint, tensor_transfer
from mcheck.semantics.reductions import element_size, reduce
from mcheck.semantics.tensor_map import replace_field
from mcheck.semantics.tensor_units import plan
from mcheck.semantics.undefined import Misuse
from mcheck.semantics.units import Units

MAP_BYTES = 128


def _free(m: Machine, address: int, size: int) -> None:
    if m.barriers and size:
        m.check_untouched(address, size)


def _signal(m: Machine, address: int, tx: int) -> None:
    """Executes the complete-tx of a copy on its mbarrier."""
    state = m.barriers.get(address)
    if state is None:
        raise Misuse("UB215", "a copy signals an mbarrier that is no longer valid", "PTX ISA 9.0 section 9.7.13.15")
    m.advance(address, mbarrier.complete_tx(state, tx))


def _signals(m: Machine, made: Effect) -> tuple[Signal, ...]:
    """The signals of a copy; their mbarrier objects have to be valid already when it is issued."""
    for signal in made.signals:
        m.mbarrier_state(signal.mbar)
    return made.signals


def note_unwaited(m: Machine, thread: int, op: Op, address: int, state: mbarrier.State) -> None:
    """Notes an arrive in a phase although no wait returned true for the phase before (9.7.13.15.4)."""
    if state.phase > 0 and m.waited.get(address, -1) < state.phase - 1:
        m.report(
            "UB212",
            f"arrives in phase {state.phase} although no wait has returned true for phase {state.phase - 1}",
            thread,
            op,
        )


# --- cp.async -----------------------------------------------------------------------------------------


def _cp_async(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.CpAsync)
    evaluated = m.effect_of(runner, op)
    runs = m.require_part(evaluated, evaluated.runs or None)
    dst, size = runs[0].dst, sum(run.size for run in runs)
    src, copied = next(((run.src, run.size) for run in runs if run.src is not None), (dst, 0))
    _free(m, dst, size)
    held: list[tuple[bytes, bytes | None]] = []

    def finish() -> None:
        data, known = held[0]
        rest = bytes(size - copied)
        m.memory.write(dst, data + rest, None if known is None else known + b"\1" * len(rest))

    task = Task(
        op, runner.thread.index, lambda: held.append(m.memory.read(src, copied)), finish, destinations=((dst, size),)
    )
    m.issue_task(task)
    runner.cp_async = [t for t in runner.cp_async if not t.done]
    runner.cp_async.append(task)
    runner.groups.setdefault("cp.async", Groups()).open.append(task)
    runner.pc += 1


def _cp_async_arrive(m: Machine, runner: Runner, op: Op) -> None:
    """Executes an arrive-on when all earlier cp.async of the thread are done.

    Without .noinc the pending count is raised first.
    """
    assert isinstance(op, ops.CpAsyncArrive)
    address = m.mbarrier_address(runner, op)
    _of_one_group(m, runner, op)
    m.advance(address, mbarrier.async_arrive_begin(m.mbarrier_state(address), noinc=op.noinc))
    earlier = list(runner.cp_async)

    def finish() -> None:
        for task in earlier:
            while not task.done:
                m.perform_half(task)
        state = m.barriers.get(address)
        if state is None:
            raise Misuse("UB215", "an asynchronous arrive on an mbarrier that is no longer valid", op.section)
        note_unwaited(m, runner.thread.index, op, address, state)
        m.advance(address, mbarrier.async_arrive_end(state))

    m.issue_task(Task(op, runner.thread.index, lambda: None, finish))
    runner.pc += 1


# --- groups -------------------------------------------------------------------------------------------


def _commit(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.Commit)
    _close(m, runner, op, op.family)
    runner.pc += 1


def _close(m: Machine, runner: Runner, op: Op, family: str) -> None:
    groups = runner.groups.setdefault(family, Groups())
    if family == "cp.async":
        _of_one_group(m, runner, op)
    groups.committed.append(groups.open)
    groups.open, groups.tracked = [], 0


def _of_one_group(m: Machine, runner: Runner, op: Op) -> None:
    """Checks that copies of one group, or of one arrive that tracks copies, do not write the same bytes."""
    groups = runner.groups.setdefault("cp.async", Groups())
    written = [place for task in groups.open[groups.tracked :] for place in task.destinations]
    m.check_preconditions(runner, op, async_copies.one_group(written))
    groups.tracked = len(groups.open)


def _wait_group(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.WaitGroup)
    if op.commits:
        _close(m, runner, op, op.family)
    pending = m.known_value(runner, op.pending)
    groups = runner.groups.setdefault(op.family, Groups())
    number = groups.count - pending
    if op.family == "wgmma":
        runner.wake_condition = lambda: all(_committed_over(r, number) for r in _warpgroup(m, runner))
    elif op.read:
        wanted = [task for group in groups.committed[: max(number - groups.forgotten, 0)] for task in group]
        runner.wake_condition = lambda: all(task.fetched for task in wanted)
    else:
        runner.wake_condition = lambda: groups.is_complete(number)
    runner.pc += 1


def _committed_over(runner: Runner, number: int) -> bool:
    """Whether the first ``number`` wgmma-groups of a thread are complete; a thread that has exited commits no more."""
    groups = runner.groups.setdefault("wgmma", Groups())
    return groups.is_complete(min(number, groups.count) if runner.ended else number)


def _warpgroup(m: Machine, runner: Runner) -> list[Runner]:
    """The threads that form the wgmma-groups of a warpgroup together: its wait is one for all of them (9.7.15.7.2)."""
    return [m.runners[k] for k in committing_threads(m.program, runner.thread.place.warpgroup)]


# --- bulk copies and reductions -----------------------------------------------------------------------


def _bulk(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.BulkCopy)
    made = m.effect_of(runner, op)
    signals = _signals(m, made)
    for run in made.runs:
        _free(m, run.dst, run.size)
    held: list[tuple[bytes, bytes | None]] = []

    def fetch() -> None:
        for run in made.runs:
            assert run.src is not None
            held.append(m.memory.read(run.src, run.size))

    def finish() -> None:
        for run, (data, known) in zip(made.runs, held, strict=True):
            if op.reduce is not None:
                _reduce(m, op.reduce, op.type or "", run.dst, data, known)
            else:
                m.memory.write(run.dst, data, known)
        for signal in signals:
            _signal(m, signal.mbar, signal.bytes)

    task = m.issue_task(Task(op, runner.thread.index, fetch, finish))
    if op.mbar is None:
        runner.groups.setdefault("bulk", Groups()).open.append(task)
    runner.pc += 1


def _reduce(m: Machine, op: str, type_: str, target: int, data: bytes, known: bytes | None) -> None:
    """Reduces element by element at the destination; results that depend on unknown bytes are unknown."""
    import numpy as np

    old, old_known = m.memory.read(target, len(data))
    before, operand = (np.frombuffer(x, np.uint8) for x in (old, data))
    new = arrays.reduce_array(op, type_, before, operand, flush=m.behaviour.flushes_f32)
    marks = None
    if known is not None or old_known is not None:
        both = np.ones(len(data), bool)
        for part in (known, old_known):
            if part is not None:
                both &= np.frombuffer(part, np.uint8) != 0
        size = element_size(type_)
        marks = np.repeat(both.reshape(-1, size).all(axis=1), size).astype(np.uint8).tobytes()
    m.memory.write(target, new.tobytes(), marks)


# --- st.async and red.async ---------------------------------------------------------------------------


def _async_store(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.AsyncStore)
    made = m.effect_of(runner, op)
    for access in made.accesses:
        _free(m, access.address, access.size)
    values = [m.value(runner, src) for src in op.srcs]
    signals = _signals(m, made)

    def finish() -> None:
        for access, value in zip(made.accesses, values, strict=False):
            if op.reduce is not None:
                old = m.memory.load(access.address, access.size)
                value = None if old is None or value is None else reduce(op.reduce, op.type, old, value)
            m.memory.store(access.address, access.size, value)
        for signal in signals:
            _signal(m, signal.mbar, signal.bytes)

    m.issue_task(Task(op, runner.thread.index, lambda: None, finish))
    runner.pc += 1


# --- tensor copies ------------------------------------------------------------------------------------


def _tensor(m: Machine, runner: Runner, op: Op) -> None:
    """Executes a tensor copy. The map is read at issue; correct programs order replacements of the map before it
    anyway.
    """
    assert isinstance(op, ops.TensorCopy)
    from mcheck.semantics.tensor_map_values import decode

    found = m.effect_of(runner, op)
    (place,) = m.require_part(found, found.accesses or None)
    contents = m.memory.load(place.address, MAP_BYTES)
    spec = None if contents is None else decode(contents)
    made = m.check_preconditions(runner, op, tensor_copy_effect(op, m.operands(runner, op), m.position(runner), spec))
    spec, box = m.require_part(made, spec), m.require_part(made, made.box)
    shared = box.targets[0]
    what = plan(spec, op.mode, box.coords, shared, kind=op.kind, info=box.info, reduce=op.reduce)
    if op.kind == "store" and m.behaviour.pads_stores:
        tensor_transfer.check_tensor(m.memory, tensor_transfer.padded(what))
    low, high = int(what.shared.min()), int(what.shared.max()) + what.unit
    for target in box.targets if op.kind == "load" else ():
        _free(m, low + target - shared, high - low)
    signals = _signals(m, made)
    m.open_points.update(tensor_footprint.open_points(spec, op.mode, box.coords, kind=op.kind, reduce=op.reduce))
    held: list[Units] = []

    def fetch() -> None:
        held.append((tensor_transfer.gather if op.kind == "load" else tensor_transfer.image_of)(m.memory, what))

    def finish() -> None:
        if op.kind == "load":
            for target in box.targets:
                tensor_transfer.deposit(m.memory, what, held[0], target - shared)
        else:
            tensor_transfer.scatter(m.memory, what, held[0], op.reduce, m.behaviour)
        for signal in signals:
            _signal(m, signal.mbar, signal.bytes)

    task = m.issue_task(Task(op, runner.thread.index, fetch, finish))
    if op.mbar is None:
        runner.groups.setdefault("bulk", Groups()).open.append(task)
    runner.pc += 1


def _replace(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.TensormapReplace)
    from mcheck.semantics.tensor_map_values import decode, encode

    made = m.effect_of(runner, op)
    where = m.require_part(made, made.accesses or None)[0].address
    contents = m.memory.load(where, MAP_BYTES)
    spec = None if contents is None else decode(contents)
    value, ordinal = m.known_value(runner, op.value, "new value"), m.optional_value(runner, op.ordinal, "ordinal")
    if spec is not None:
        m.memory.store(where, MAP_BYTES, encode(replace_field(spec, op.field_name, value, ordinal)))
    m.changes += 1
    runner.pc += 1


def _copy_fence(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.TensormapCopyFence)
    made = m.effect_of(runner, op)
    source, target = m.require_part(made, made.accesses or None)
    data, known = m.memory.read(source.address, source.size)
    m.memory.write(target.address, data, known)
    m.changes += 1
    runner.pc += 1


def _wgmma(m: Machine, runner: Runner, op: Op) -> None:
    """Reads ranges of shared memory; the product itself is not computed."""
    assert isinstance(op, ops.Wgmma)
    m.effect_of(runner, op)
    task = m.issue_task(Task(op, runner.thread.index, lambda: None, lambda: None))
    runner.groups.setdefault("wgmma", Groups()).open.append(task)
    runner.pc += 1


def _tensor_memory(m: Machine, runner: Runner, op: Op) -> None:
    """An operation on tensor memory is over at once; what it computes is not known, so neither is what it leaves."""
    for stored in m.effect_of(runner, op).stores:
        m.memory.store(stored.address, stored.size, None)
        m.changes += 1
    runner.pc += 1


def _tensor_commit(m: Machine, runner: Runner, op: Op) -> None:
    """An arrive-on on each mbarrier, since all that the commit is about is over."""
    signals = m.effect_of(runner, op).signals

    def finish() -> None:
        for signal in signals:
            state = m.barriers.get(signal.mbar)
            if state is None:
                raise Misuse("UB215", "an asynchronous arrive on an mbarrier that is no longer valid", op.section)
            m.advance(signal.mbar, mbarrier.async_arrive_end(state))

    m.issue_task(Task(op, runner.thread.index, lambda: None, finish))
    runner.pc += 1


HANDLERS: dict[type[Op], Callable[[Machine, Runner, Op], None]] = {
    ops.CpAsync: _cp_async,
    ops.CpAsyncArrive: _cp_async_arrive,
    ops.Commit: _commit,
    ops.WaitGroup: _wait_group,
    ops.BulkCopy: _bulk,
    ops.AsyncStore: _async_store,
    ops.TensorCopy: _tensor,
    ops.TensormapReplace: _replace,
    ops.TensormapCopyFence: _copy_fence,
    ops.Wgmma: _wgmma,
    ops.TensorCore: _tensor_memory,
    ops.TensorMove: _tensor_memory,
    ops.TensorCommit: _tensor_commit,
}
