"""Asynchronous operations with their data (PTX ISA 9.0 sections 9.7.9.12, 9.7.9.25 to 9.7.9.27).

The conditions are tested when the instruction executes; source and destination are accessed later, in two steps.
"""

from __future__ import annotations

from collections.abc import Callable

from mcheck.executor import arrays, copies, mbarrier, tensor, transfer
from mcheck.executor.misuse import Misuse
from mcheck.executor.reductions import element_size, reduce
from mcheck.executor.tensor_map import replace_field
from mcheck.program import ops
from mcheck.program.alu import wrap
from mcheck.program.memory import SHARED_BASE, SHARED_WINDOW
from mcheck.program.ops import Op
from mcheck.simulate.machine import Groups, Machine, Runner, Task

MAP_BYTES = 128


def in_rank(m: Machine, runner: Runner, address: int, rank: int) -> int:
    """The address at the same offset in the shared memory of the CTA of ``rank`` in this cluster."""
    here = runner.thread.place.cta
    for cta in m.ctas:
        if (cta.gpu, cta.cluster, cta.rank) == (here.gpu, here.cluster, rank):
            return SHARED_BASE + cta.number * SHARED_WINDOW + (address - SHARED_BASE) % SHARED_WINDOW
    raise Misuse("UB108", f"the cluster has no CTA of rank {rank}", copies.ADDRESSES)


def _targets(m: Machine, runner: Runner, address: int, mask: int | None) -> list[int]:
    """The address itself, or its place in every CTA of a multicast mask."""
    if mask is None:
        return [address]
    here = runner.thread.place.cta
    cluster = {c.rank for c in m.ctas if (c.gpu, c.cluster) == (here.gpu, here.cluster)}
    return [in_rank(m, runner, address, rank) for rank in copies.multicast(mask, cluster)]


def _space(m: Machine, runner: Runner, address: int, space: str, what: str) -> None:
    instance = m.memory.find(address)
    here = runner.thread.place.cta
    if instance is None:
        raise Misuse("UB103", f"the {what} {address:#x} is in no object", copies.ADDRESSES)
    there = instance.cta
    if space == "global":
        if there is not None:
            raise Misuse("UB108", f"the {what} {instance.label} is not in .global", copies.ADDRESSES)
        return
    if there is None:
        raise Misuse("UB108", f"the {what} {instance.label} is not in shared memory", copies.ADDRESSES)
    if space == "shared::cta" and there != here:
        raise Misuse("UB105", f"the {what} {instance.label} is not in the executing CTA", copies.BULK)
    if (there.gpu, there.cluster) != (here.gpu, here.cluster):
        raise Misuse("UB105", f"the {what} {instance.label} is in another cluster", copies.BULK)


def _free(m: Machine, address: int, size: int) -> None:
    if m.barriers and size:
        m.untouched(address, size)


def _signal(m: Machine, address: int, tx: int) -> None:
    """complete-tx on the mbarrier of a copy."""
    state = m.barriers.get(address)
    if state is None:
        raise Misuse("UB215", "a copy signals an mbarrier that is no longer valid", "PTX ISA 9.0 section 9.7.13.15")
    m.advance(address, mbarrier.complete_tx(state, tx))


def _mbarrier(m: Machine, runner: Runner, address: int) -> int:
    from mcheck.simulate.execute import object_address

    where = object_address(m, runner, address, own=False)
    m.live(where)
    return where


def note_unwaited(m: Machine, thread: int, op: Op, address: int, state: mbarrier.State) -> None:
    """An arrive of a phase although no wait returned true for the one before (9.7.13.15.4)."""
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
    dst, src = m.address(runner, op.dst, "destination"), m.number(runner, op.src, "source")
    size, taken = m.number(runner, op.size), m.maybe(runner, op.src_size, "src-size")
    ignore = bool(m.maybe(runner, op.ignore_src, "predicate") or 0)
    if taken is not None:
        taken &= 0xFFFFFFFF
    copies.check_cp_async(dst, src, size, taken, m.program.memory, ignore)
    _space(m, runner, dst, "shared::cta", "destination")
    _free(m, dst, size)
    runs = copies.cp_async(size, taken, ignore)
    copied = sum(run.length for run in runs if run.src is not None)
    if copied:
        _space(m, runner, src, "global", "source")
    held: list[tuple[bytes, bytes | None]] = []

    def finish() -> None:
        data, known = held[0]
        rest = bytes(size - copied)
        m.memory.write(dst, data + rest, None if known is None else known + b"\1" * len(rest))

    task = Task(
        op, runner.thread.index, lambda: held.append(m.memory.read(src, copied)), finish, destinations=((dst, size),)
    )
    m.launch(task)
    runner.cp_async = [t for t in runner.cp_async if not t.done]
    runner.cp_async.append(task)
    runner.groups.setdefault("cp.async", Groups()).open.append(task)
    runner.pc += 1


def _cp_async_arrive(m: Machine, runner: Runner, op: Op) -> None:
    """An arrive-on once all earlier cp.async of the thread are done; without .noinc the count is raised first."""
    assert isinstance(op, ops.CpAsyncArrive)
    from mcheck.simulate.execute import object_address

    address = object_address(
        m, runner, m.address(runner, op.address, "address", getattr(op, "space", "shared")), own=True
    )
    m.advance(address, mbarrier.async_arrive_begin(m.live(address), noinc=op.noinc))
    earlier = list(runner.cp_async)

    def finish() -> None:
        for task in earlier:
            while not task.done:
                m.perform(task)
        state = m.barriers.get(address)
        if state is None:
            raise Misuse("UB215", "an asynchronous arrive on an mbarrier that is no longer valid", op.section)
        note_unwaited(m, runner.thread.index, op, address, state)
        m.advance(address, mbarrier.async_arrive_end(state))

    m.launch(Task(op, runner.thread.index, lambda: None, finish))
    runner.pc += 1


# --- groups -------------------------------------------------------------------------------------------


def _commit(m: Machine, runner: Runner, op: Op) -> None:  # noqa: ARG001 - handlers have one signature
    assert isinstance(op, ops.Commit)
    _close(runner, op.family)
    runner.pc += 1


def _close(runner: Runner, family: str) -> None:
    groups = runner.groups.setdefault(family, Groups())
    if family == "cp.async":
        ranges = [place for task in groups.open for place in task.destinations]
        for k, (address, size) in enumerate(ranges):
            copies.check_disjoint(ranges[:k], address, size)
    groups.committed.append(groups.open)
    groups.open = []


def _wait_group(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.WaitGroup)
    if op.commits:
        _close(runner, op.family)
    pending = m.number(runner, op.pending)
    groups = runner.groups.setdefault(op.family, Groups())
    count = max(len(groups.committed) - pending, 0)
    wanted = [task for group in groups.committed[:count] for task in group]
    if op.read:
        runner.waits = lambda: all(task.fetched for task in wanted)
    else:
        groups.committed = groups.committed[count:]
        runner.waits = lambda: all(task.done for task in wanted)
    runner.pc += 1


# --- bulk copies and reductions -----------------------------------------------------------------------


def _bulk(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.BulkCopy)
    dst = m.address(runner, op.dst, "destination", op.dst_space)
    src = m.address(runner, op.src, "source", op.src_space)
    size = m.number(runner, op.size, "size")
    mask, byte_mask = m.maybe(runner, op.cta_mask, "ctaMask"), m.maybe(runner, op.byte_mask, "byteMask")
    copies.check_bulk_size(size)
    for address, what in ((dst, "destination"), (src, "source")):
        copies.check_aligned(address, copies.CHUNK, what, copies.BULK)
    targets = _targets(m, runner, dst, mask)
    bars: list[int] = []
    if op.mbar is not None:
        bar = m.address(runner, op.mbar, "mbarrier")
        bars = [_mbarrier(m, runner, b) for b in _targets(m, runner, bar, mask)]
    if size:
        m.memory.locate(src, size)
        _space(m, runner, src, op.src_space, "source")
        for target in targets:
            m.memory.locate(target, size)
            _space(m, runner, target, op.dst_space, "destination")
            _free(m, target, size)
    if op.mbar is not None or op.dst_space.startswith("shared"):
        where = bars[0] if bars else None
        copies.check_bulk_places(targets[0], src, where, op.dst_space, op.src_space, runner.thread.place.cta, m.ctas)
    held: list[tuple[bytes, bytes | None]] = []

    def finish() -> None:
        data, known = held[0]
        for target in targets:
            if op.reduce is not None:
                _reduce(m, op.reduce, op.type or "", target, data, known)
            else:
                for run in copies.bulk(size, byte_mask):
                    assert run.src is not None
                    end = run.src + run.length
                    marks = None if known is None else known[run.src : end]
                    m.memory.write(target + run.dst, data[run.src : end], marks)
        for where in bars:
            _signal(m, where, size)

    task = m.launch(Task(op, runner.thread.index, lambda: held.append(m.memory.read(src, size)), finish))
    if op.mbar is None:
        runner.groups.setdefault("bulk", Groups()).open.append(task)
    runner.pc += 1


def _reduce(m: Machine, op: str, type_: str, target: int, data: bytes, known: bytes | None) -> None:
    """Element by element at the destination; results that depend on unknown bytes are unknown."""
    import numpy as np

    old, old_known = m.memory.read(target, len(data))
    before, operand = (np.frombuffer(x, np.uint8) for x in (old, data))
    new = arrays.reduced(op, type_, before, operand, flush=m.how.flushes_f32)
    marks = None
    if known is not None or old_known is not None:
        both = np.ones(len(data), bool)
        for part in (known, old_known):
            if part is not None:
                both &= np.frombuffer(part, np.uint8) != 0
        size = element_size(type_)
        marks = np.repeat(both.reshape(-1, size).all(axis=1), size).astype(np.uint8).tobytes()
    m.memory.write(target, new.tobytes(), marks)


def _prefetch(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.Prefetch)
    if op.src is not None and op.size is not None:
        copies.check_bulk_size(m.number(runner, op.size, "size"))
        copies.check_aligned(m.number(runner, op.src, "source"), copies.CHUNK, "source", copies.BULK)
    runner.pc += 1


# --- st.async and red.async ---------------------------------------------------------------------------


def _async_store(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.AsyncStore)
    from mcheck.simulate.execute import size_of

    address, width = m.address(runner, op.address, "destination", op.space), size_of(op.type)
    size = width * len(op.srcs)
    m.memory.locate(address, size)
    copies.check_aligned(address, size, "destination")
    _space(m, runner, address, "global" if op.space == "generic" else op.space, "destination")
    _free(m, address, size)
    values = [m.value(runner, src) for src in op.srcs]
    bar = None
    if op.mbar is not None:
        bar = _mbarrier(m, runner, m.address(runner, op.mbar, "mbarrier"))
        copies.check_remote_places(address, bar, runner.thread.place.cta, m.ctas, other=op.reduce is not None)

    def finish() -> None:
        for k, value in enumerate(values):
            where = address + k * width
            if op.reduce is not None:
                old = m.memory.load(where, width)
                value = None if old is None or value is None else reduce(op.reduce, op.type, old, value)
            m.memory.store(where, width, value)
        if bar is not None:
            _signal(m, bar, size)

    m.launch(Task(op, runner.thread.index, lambda: None, finish))
    runner.pc += 1


# --- tensor copies ------------------------------------------------------------------------------------


def _tensor(m: Machine, runner: Runner, op: Op) -> None:
    """The map is read when the instruction executes; the programs that replace it must have ordered that anyway."""
    assert isinstance(op, ops.TensorCopy)
    from mcheck.graph.maps import decode

    where = m.number(runner, op.tensor_map, "tensor map")
    copies.check_aligned(where, 64, "tensor map", tensor.SECTION)
    contents = m.memory.load(where, MAP_BYTES)
    spec = None if contents is None else decode(contents)
    if spec is None:
        raise Misuse("UB404", "the bytes at this address are no tensor map", tensor.SECTION)
    coords = tuple(wrap("s32", m.number(runner, c, "coordinate")) for c in op.coords)
    info = tuple(m.number(runner, c, "im2col operand") for c in op.im2col_info)
    shared, mask = m.address(runner, op.shared, "shared address"), m.maybe(runner, op.cta_mask, "ctaMask")
    what = transfer.plan(spec, op.mode, coords, shared, kind=op.kind, info=info, reduce=op.reduce)
    pads = op.kind == "store" and m.how.pads_stores
    transfer.check_tensor(m.memory, transfer.padded(what) if pads else what)
    targets = _targets(m, runner, shared, mask)
    low, high = int(what.shared.min()), int(what.shared.max()) + what.unit
    for target in targets:
        shift = target - shared
        m.memory.locate(low + shift, high - low)
        _space(m, runner, low + shift, op.dst_space if op.kind == "load" else "shared::cta", "shared address")
        if op.kind == "load":
            _free(m, low + shift, high - low)
    bars: list[int] = []
    if op.mbar is not None:
        bar = _mbarrier(m, runner, m.address(runner, op.mbar, "mbarrier"))
        here = runner.thread.place.cta
        copies.check_tensor_places(op.kind, shared, bar, op.dst_space, op.cta_group, here, m.ctas)
        bars = [_mbarrier(m, runner, b) for b in _targets(m, runner, bar, mask)]
    count = tensor.box_bytes(spec, op.mode, info)
    m.open_points.update(tensor.open_points(spec, op.mode, coords, kind=op.kind, reduce=op.reduce))
    held: list[transfer.Bytes] = []
    unknown = False

    def fetch() -> None:
        nonlocal unknown
        if op.kind == "load":
            held.append(transfer.gather(m.memory, what))
        else:
            held.append(transfer.image_of(m.memory, what))
            unknown = transfer.unknown_bytes(m.memory, what.shared, what.unit)

    def finish() -> None:
        if op.kind == "load":
            for target in targets:
                transfer.deposit(m.memory, what, held[0], target - shared)
        else:
            if unknown:
                m.notes.add(f"'{op.text}' stores contents that nothing has written, taken as zero")
            transfer.scatter(m.memory, what, held[0], op.reduce, m.how)
        for where_bar in bars:
            _signal(m, where_bar, count)

    task = m.launch(Task(op, runner.thread.index, fetch, finish))
    if op.mbar is None:
        runner.groups.setdefault("bulk", Groups()).open.append(task)
    runner.pc += 1


def _replace(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.TensormapReplace)
    from mcheck.graph.maps import decode, encode

    where = m.address(runner, op.address, "address", getattr(op, "space", "shared"))
    copies.check_aligned(where, 64, "tensor map", op.section)
    contents = m.memory.load(where, MAP_BYTES)
    spec = None if contents is None else decode(contents)
    value, ordinal = m.number(runner, op.value, "new value"), m.maybe(runner, op.ordinal, "ordinal")
    if spec is not None:
        m.memory.store(where, MAP_BYTES, encode(replace_field(spec, op.field_name, value, ordinal)))
    m.changes += 1
    runner.pc += 1


def _copy_fence(m: Machine, runner: Runner, op: Op) -> None:
    assert isinstance(op, ops.TensormapCopyFence)
    dst, src = m.number(runner, op.dst), m.address(runner, op.src)
    size = m.number(runner, op.size)
    if size != MAP_BYTES:
        raise Misuse("UB403", f"tensormap.cp_fenceproxy copies 128 bytes, not {size}", op.section)
    data, known = m.memory.read(src, size)
    m.memory.write(dst, data, known)
    m.changes += 1
    runner.pc += 1


def _wgmma(m: Machine, runner: Runner, op: Op) -> None:
    """Reads ranges of shared memory; the product itself is not computed."""
    assert isinstance(op, ops.Wgmma)
    for address, size in op.reads:
        m.memory.locate(m.address(runner, address), max(m.number(runner, size), 1))
    task = m.launch(Task(op, runner.thread.index, lambda: None, lambda: None))
    runner.groups.setdefault("wgmma", Groups()).open.append(task)
    runner.pc += 1


HANDLERS: dict[type[Op], Callable[[Machine, Runner, Op], None]] = {
    ops.CpAsync: _cp_async,
    ops.CpAsyncArrive: _cp_async_arrive,
    ops.Commit: _commit,
    ops.WaitGroup: _wait_group,
    ops.BulkCopy: _bulk,
    ops.Prefetch: _prefetch,
    ops.AsyncStore: _async_store,
    ops.TensorCopy: _tensor,
    ops.TensormapReplace: _replace,
    ops.TensormapCopyFence: _copy_fence,
    ops.Wgmma: _wgmma,
}
