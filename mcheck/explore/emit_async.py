"""Events of asynchronous operations (PTX ISA 9.7.9.25, 8.9.1.1).

Each gives an issue event in program order and, outside it, its memory events: weak source reads, weak destination
writes or relaxed
read-modify-writes, and the signal of its completion on an mbarrier. Groups complete at the waits of the issuing thread.
"""

from __future__ import annotations

from mcheck.executor.misuse import Misuse
from mcheck.executor.tensor import box_bytes, footprint
from mcheck.executor.tensor_map import fill_pattern
from mcheck.explore.emit import Emitter, Stop, handles, mbarrier_event
from mcheck.explore.emit_mbarrier import object_address
from mcheck.explore.state import AsyncRecord, Groups, State
from mcheck.graph.event import Event, MbarrierStep
from mcheck.graph.maps import MAP_SIZE, decode
from mcheck.graph.terms import Term, join, raw, reads_of, rmw, slice_bytes, type_size
from mcheck.program import ops
from mcheck.program.memory import SHARED_BASE, SHARED_WINDOW, Instance, TensorMapSpec
from mcheck.program.ops import Op


def _issue(e: Emitter, op: Op, state: State, *tags: str) -> Event:
    event = e.event(state, op, ("ISSUE", *tags))
    state.order += 1
    state.effects += 1
    return event


def _groups(state: State, family: str) -> Groups:
    return state.groups.setdefault(family, Groups())


def _space_is(e: Emitter, op: Op, instance: Instance, space: str, what: str) -> None:
    """Whether the bytes are where the instruction says: global, this CTA's shared memory, or the cluster's."""
    if space == "global":
        if instance.object.space not in ("global", "const", "param"):
            raise e.stop("UB108", f"the {what} {instance.label} is not in .global", op)
        return
    here, there = e.thread.place.cta, instance.cta
    if there is None:
        raise e.stop("UB108", f"the {what} {instance.label} is not in shared memory", op)
    if space == "shared::cta" and there != here:
        raise e.stop("UB105", f"the {what} {instance.label} is not in the shared memory of the executing CTA", op)
    if (here.gpu, here.cluster) != (there.gpu, there.cluster):
        raise e.stop("UB105", f"the {what} {instance.label} is in another cluster", op)


def _destinations(e: Emitter, op: Op, address: int, mask: int | None) -> list[int]:
    """The destination itself, or its place in every CTA of a multicast mask."""
    if mask is None:
        return [address]
    ranks = [r for r in range(16) if mask >> r & 1]
    if not ranks:
        raise e.stop("UB107", "ctaMask names no CTA", op)
    return [e.in_rank(op, address, r, "UB107") for r in ranks]


def _signal(
    e: Emitter,
    op: Op,
    state: State,
    issue: Event,
    address: int,
    tx: int,
    memory: list[Event],
    *,
    kind: str = "complete",
) -> None:
    """The completion on an mbarrier: complete-tx, or the arrive of cp.async.mbarrier.arrive."""
    where = object_address(e, op, address, own_cta=False)
    instance = e.instance_at(where)
    assert instance is not None and instance.cta is not None
    done = mbarrier_event(
        e, state, op, MbarrierStep(where, kind, tx=tx if kind == "complete" else None), ("COMPLETE", "ASYNCSIGNAL"),
        ordered=False, issue=issue.uid, scope="cluster", block=instance.cta.number,
    )  # fmt: skip
    state.tracked += [(m.uid, done.uid) for m in memory]


def _read(e: Emitter, op: Op, state: State, issue: Event, address: int, size: int, proxy: str, *tags: str) -> Event:
    return e.memory(
        state, op, "R", address, size, "weak", proxy, None, align=False, ordered=False, issue=issue.uid, extra=tags
    )


def _write(
    e: Emitter, op: Op, state: State, issue: Event, address: int, size: int, proxy: str, value: Term, *tags: str
) -> Event:
    return e.memory(
        state, op, "W", address, size, "weak", proxy, None,
        value=value, align=False, ordered=False, issue=issue.uid, data=reads_of(value), extra=tags,
    )  # fmt: skip


# --- cp.async ----------------------------------------------------------------------------------------------


@handles(ops.CpAsync)
def _cp_async(e: Emitter, op: Op, state: State) -> list[State]:
    """Weak, in the generic proxy; bytes past ``src_size`` are zero (PTX ISA 9.7.9.25.3.1)."""
    assert isinstance(op, ops.CpAsync)
    dst, src, size = e.address(op.dst, state), e.address(op.src, state), e.number(op.size, state)
    taken = e.maybe(op.src_size, state)
    taken = size if taken is None else taken
    if taken > size:
        raise e.stop("UB104", f"src-size {taken} is above cp-size {size}", op)
    if e.maybe(op.ignore_src, state):
        taken = 0
    target = e.locate(dst, size, op, size)
    _space_is(e, op, target, "shared::cta", "destination")
    if src % size:
        raise e.stop("UB102", f"the source address is not a multiple of {size} bytes", op)
    issue = _issue(e, op, state)
    reads: list[Event] = []
    value: Term = 0
    if taken:
        _space_is(e, op, e.locate(src, taken, op), "global", "source")
        reads = [_read(e, op, state, issue, src, taken, "generic", "CPASYNC")]
        value = ("e", reads[0].uid)
        if taken < size:
            value = join(((value, taken), (0, size - taken)))
    write = _write(e, op, state, issue, dst, size, "generic", value, "CPASYNC")
    record = AsyncRecord(tuple(r.uid for r in reads), (write.uid,), "cp.async", ((write.address, size),))
    _groups(state, "cp.async").open.append(record)
    state.cp_async.append(record)
    return [state]


@handles(ops.CpAsyncArrive)
def _cp_async_arrive(e: Emitter, op: Op, state: State) -> list[State]:
    """An arrive-on once all earlier cp.async of the thread are done; without .noinc the count is raised first."""
    assert isinstance(op, ops.CpAsyncArrive)
    address = object_address(e, op, e.address(op.address, state), own_cta=True)
    if not op.noinc:
        mbarrier_event(e, state, op, MbarrierStep(address, "increment"), ("INCREMENT",))
        state.order += 1
    issue = _issue(e, op, state)
    by_uid = {ev.uid: ev for ev in state.events}
    memory = [by_uid[u] for r in state.cp_async for u in r.reads + r.writes]
    _signal(e, op, state, issue, address, 0, memory, kind="async-arrive")
    return [state]


# --- groups --------------------------------------------------------------------------------------------------


@handles(ops.Commit)
def _commit(e: Emitter, op: Op, state: State) -> list[State]:
    assert isinstance(op, ops.Commit)
    _close_group(e, op, state, op.family)
    return [state]


def _close_group(e: Emitter, op: Op, state: State, family: str) -> None:
    """Batches what is open; two cp.async of one group must not write one place (PTX ISA 9.7.9.25.3.2)."""
    groups = _groups(state, family)
    if family == "cp.async":
        ranges = [d for r in groups.open for d in r.destinations]
        for k, (a, n) in enumerate(ranges):
            if any(a < b + m and b < a + n for b, m in ranges[:k]):
                raise e.stop("UB106", "two cp.async of one group write the same place", op)
    groups.committed.append(tuple(groups.open))
    groups.open = []


@handles(ops.WaitGroup)
def _wait_group(e: Emitter, op: Op, state: State) -> list[State]:
    """Completes all but the ``pending`` most recent groups of this thread; ``.read`` only their source reads."""
    assert isinstance(op, ops.WaitGroup)
    if op.commits:
        _close_group(e, op, state, op.family)
    pending = e.number(op.pending, state)
    wait = e.event(state, op, ("GROUPWAIT",))
    state.order += 1
    committed = _groups(state, op.family).committed
    for group in committed[: max(len(committed) - pending, 0)]:
        for record in group:
            finished = record.reads if op.read else record.reads + record.writes
            state.completes += [(m, wait.uid) for m in finished]
    return [state]


# --- bulk copies and reductions ---------------------------------------------------------------------------------


@handles(ops.BulkCopy)
def _bulk(e: Emitter, op: Op, state: State) -> list[State]:
    """cp.async.bulk and cp.reduce.async.bulk: async proxy, weak or one relaxed reduction per element (9.7.9.25.4)."""
    assert isinstance(op, ops.BulkCopy)
    dst, src, size = e.address(op.dst, state), e.address(op.src, state), e.number(op.size, state)
    if size < 0 or size % 16:
        raise e.stop("UB101", f"the size {size} is not a multiple of 16 bytes", op)
    for address, what in ((dst, "destination"), (src, "source")):
        if address % 16:
            raise e.stop("UB102", f"the {what} address is not a multiple of 16 bytes", op)
    if size:
        _space_is(e, op, e.locate(src, size, op), op.src_space, "source")
    mask, byte_mask = e.maybe(op.cta_mask, state), e.maybe(op.byte_mask, state)
    targets = _destinations(e, op, dst, mask)
    for target in targets:
        instance = e.locate(target, max(size, 1), op)
        _space_is(e, op, instance, op.dst_space, "destination")
        if op.src_space == "shared::cta" and op.dst_space == "shared::cluster" and instance.cta == e.thread.place.cta:
            raise e.stop("UB105", "the destination is in the executing CTA, it must be in another one", op)
    issue = _issue(e, op, state)
    memory: list[Event] = []
    reads: list[Event] = []
    if size:
        if op.reduce is not None:
            assert op.type is not None
            reads, writes = _reduce(e, op, state, issue, src, targets, size, op.reduce, op.type)
        else:
            reads, writes = _copy(e, op, state, issue, src, targets, size, byte_mask)
        memory = reads + writes
    if op.mbar is not None:
        bar = e.address(op.mbar, state)
        bars = [bar] if mask is None else _destinations(e, op, bar, mask)
        by_bar = _by_destination(memory, reads, targets) if mask is not None else [memory]
        for where, part in zip(bars, by_bar, strict=True):
            _signal(e, op, state, issue, where, size, part)
    else:
        others = tuple(m.uid for m in memory if m not in reads)
        _groups(state, "bulk").open.append(AsyncRecord(tuple(r.uid for r in reads), others, "bulk"))
    return [state]


def _by_destination(memory: list[Event], reads: list[Event], targets: list[int]) -> list[list[Event]]:
    """Each destination's signal covers the source reads and the writes into that CTA."""
    out = []
    for target in targets:
        window = (target - SHARED_BASE) // SHARED_WINDOW
        out.append(
            reads + [m for m in memory if m not in reads and (m.address - SHARED_BASE) // SHARED_WINDOW == window]
        )
    return out


def _runs(size: int, byte_mask: int | None) -> list[tuple[int, int]]:
    """The runs of bytes (offset, length) that are copied: all, or those of the mask in every chunk of 16."""
    if byte_mask is None or byte_mask & 0xFFFF == 0xFFFF:
        return [(0, size)]
    out: list[tuple[int, int]] = []
    for k in range(size):
        if byte_mask >> (k % 16) & 1:
            if out and out[-1][0] + out[-1][1] == k:
                out[-1] = (out[-1][0], out[-1][1] + 1)
            else:
                out.append((k, 1))
    return out


def _copy(
    e: Emitter, op: Op, state: State, issue: Event, src: int, targets: list[int], size: int, byte_mask: int | None
) -> tuple[list[Event], list[Event]]:
    reads, writes = [], []
    for offset, length in _runs(size, byte_mask):
        read = _read(e, op, state, issue, src + offset, length, "async")
        reads.append(read)
        for target in targets:
            writes.append(_write(e, op, state, issue, target + offset, length, "async", ("e", read.uid)))
    return reads, writes


def _reduce(
    e: Emitter, op: Op, state: State, issue: Event, src: int, targets: list[int], size: int, name: str, type_name: str
) -> tuple[list[Event], list[Event]]:
    width = type_size(type_name)
    reads: list[Event] = []
    changes: list[Event] = []
    for target in targets:
        for k in range(0, size, width):
            source = _read(e, op, state, issue, src + k, width, "async")
            reads.append(source)
            changes += element_reduction(
                e,
                op,
                state,
                issue,
                target + k,
                name,
                type_name,
                ("e", source.uid),
                "async",
                e.semantics.reduction_scope,
            )
    return reads, changes


def element_reduction(
    e: Emitter,
    op: Op,
    state: State,
    issue: Event,
    address: int,
    name: str,
    type_name: str,
    operand: Term,
    proxy: str,
    scope: str,
) -> list[Event]:
    """One relaxed read-modify-write of an element."""
    width = type_size(type_name)
    read = e.memory(
        state, op, "R", address, width, "relaxed", proxy, scope,
        ordered=False, issue=issue.uid, extra=("RED", "RMW", "ASYNCREDUCTION"),
    )  # fmt: skip
    value = rmw(name, type_name, ("e", read.uid), (operand,))
    write = e.memory(
        state, op, "W", address, width, "relaxed", proxy, scope,
        value=value, ordered=False, issue=issue.uid, rmw=read.uid, data=reads_of(value),
        extra=("RED", "RMW", "ASYNCREDUCTION"),
    )  # fmt: skip
    return [read, write]


@handles(ops.Prefetch)
def _prefetch(e: Emitter, op: Op, state: State) -> list[State]:
    """No memory effect; its operands must still be legal (9.7.9.25.4.3)."""
    assert isinstance(op, ops.Prefetch)
    if op.src is not None and op.size is not None:
        src, size = e.address(op.src, state), e.number(op.size, state)
        if size < 0 or size % 16:
            raise e.stop("UB101", f"the size {size} is not a multiple of 16 bytes", op)
        if src % 16:
            raise e.stop("UB102", "the source address is not a multiple of 16 bytes", op)
    return [state]


# --- st.async and red.async ----------------------------------------------------------------------------------------


@handles(ops.AsyncStore)
def _async_store(e: Emitter, op: Op, state: State) -> list[State]:
    """Generic proxy; weak stores, or relaxed.cluster reductions, with a complete-tx of the bytes (9.7.9.12)."""
    assert isinstance(op, ops.AsyncStore)
    address, width = e.address(op.address, state), type_size(op.type)
    size = width * len(op.srcs)
    instance = e.locate(address, size, op, size)
    _space_is(e, op, instance, op.space if op.space != "generic" else "global", "destination")
    if op.reduce is not None and op.mbar is not None and instance.cta == e.thread.place.cta:
        raise e.stop("UB105", "the destination of red.async is in the executing CTA, it must be in another one", op)
    issue = _issue(e, op, state)
    memory: list[Event] = []
    for k, src in enumerate(op.srcs):
        value = raw(width, e.term(src, state))
        if op.reduce is not None:
            scope = op.scope or "cluster"
            memory += element_reduction(
                e, op, state, issue, address + k * width, op.reduce, op.type, value, "generic", scope
            )
        elif op.sem == "weak":
            memory.append(_write(e, op, state, issue, address + k * width, width, "generic", value))
        else:
            memory.append(
                e.memory(
                    state,
                    op,
                    "W",
                    address + k * width,
                    width,
                    op.sem,
                    "generic",
                    op.scope,
                    value=value,
                    ordered=False,
                    issue=issue.uid,
                )
            )
    if op.mbar is not None:
        bar = e.address(op.mbar, state)
        there = e.instance_at(bar)
        if there is not None and there.cta != instance.cta:
            raise e.stop("UB105", "the mbarrier is not in the CTA of the destination", op)
        _signal(e, op, state, issue, bar, size, memory)
    return [state]


# --- tensor copies ---------------------------------------------------------------------------------------------------


@handles(ops.TensorCopy)
def _tensor(e: Emitter, op: Op, state: State) -> list[State]:
    """cp.async.bulk.tensor and its reductions: the map is read through the tensormap proxy, the data through the
    async one.

    The fields of the map are what the read of the map returns: the path forks over the maps that may be found there.
    """
    assert isinstance(op, ops.TensorCopy)
    where = e.address(op.tensor_map, state)
    instance = e.locate(where, MAP_SIZE, op, 64)
    if instance.object.space not in ("global", "const", "param"):
        raise e.stop("UB404", f"the tensor map {instance.label} is in shared memory", op)
    issue = _issue(e, op, state)
    map_read = e.memory(
        state, op, "R", where, MAP_SIZE, "weak", "tensormap", None, align=False, ordered=False, issue=issue.uid
    )
    out: list[State] = []
    for contents in e.domain(map_read.uid, state) or ():
        fork = state.fork()
        fork.assume(("e", map_read.uid), contents)
        try:
            _tensor_copy(e, op, fork, issue, map_read, contents)
        except Stop as stop:
            fork.misstep, fork.ended = stop.misstep, "undefined"
        out.append(fork)
    return out


def _tensor_copy(e: Emitter, op: ops.TensorCopy, state: State, issue: Event, map_read: Event, contents: int) -> None:
    spec = decode(contents)
    if spec is None:
        raise e.stop("UB404", "the bytes at this address are no tensor map", op)
    coords = tuple(e.number(c, state) for c in op.coords)
    info = tuple(e.number(c, state) for c in op.im2col_info)
    shared, mask = e.address(op.shared, state), e.maybe(op.cta_mask, state)
    targets = _destinations(e, op, shared, mask)
    try:
        count = box_bytes(spec, op.mode)
        plans = [footprint(spec, op.mode, coords, t, kind=op.kind, info=info, reduce=op.reduce) for t in targets]
    except Misuse as misuse:
        raise e.stop(misuse.code, str(misuse), op) from None
    for target in targets:
        space = op.dst_space if op.kind == "load" else "shared::cta"
        _space_is(e, op, e.locate(target, max(count, 1), op), space, "shared address")
    reads, writes = [map_read], []
    cache: dict[tuple[int, int], Event] = {}
    for target, plan in zip(targets, plans, strict=True):
        for offset, address, length in plan:
            if address is not None:
                _space_is(e, op, e.locate(address, length, op), "global", "tensor")
            if op.kind == "load":
                writes.append(_load_run(e, op, state, issue, spec, target + offset, address, length, cache, reads))
            elif address is not None:
                read = _read(e, op, state, issue, target + offset, length, "async")
                reads.append(read)
                writes += _store_run(e, op, state, issue, spec, address, length, read)
    if op.mbar is not None:
        bar = e.address(op.mbar, state)
        _check_group(e, op, bar, shared)
        bars = [bar] if mask is None else _destinations(e, op, bar, mask)
        parts = [reads + writes] if mask is None else _by_destination(reads + writes, reads, targets)
        for where_bar, part in zip(bars, parts, strict=True):
            _signal(e, op, state, issue, where_bar, count, part)
    else:
        record = AsyncRecord(tuple(r.uid for r in reads), tuple(w.uid for w in writes), "bulk")
        _groups(state, "bulk").open.append(record)


def _load_run(
    e: Emitter, op: Op, state: State, issue: Event, spec: TensorMapSpec, inside: int, address: int | None, length: int,
    cache: dict[tuple[int, int], Event], reads: list[Event],
) -> Event:  # fmt: skip
    """One run of a box: from the tensor, each run read once however many CTAs receive it, or filled."""
    if address is None:
        pattern = fill_pattern(spec)
        value: Term = int.from_bytes((pattern * (length // len(pattern) + 1))[:length], "little")
    else:
        read = cache.get((address, length))
        if read is None:
            read = cache[address, length] = _read(e, op, state, issue, address, length, "async")
            reads.append(read)
        value = ("e", read.uid)
    return _write(e, op, state, issue, inside, length, "async", value)


def _store_run(
    e: Emitter,
    op: ops.TensorCopy,
    state: State,
    issue: Event,
    spec: TensorMapSpec,
    address: int,
    length: int,
    read: Event,
) -> list[Event]:
    """One run of a store or, element by element, of a reduction."""
    if op.reduce is None:
        return [_write(e, op, state, issue, address, length, "async", ("e", read.uid))]
    element = _element(spec.elemtype)
    width = type_size(element)
    out: list[Event] = []
    for k in range(0, length, width):
        part = slice_bytes(("e", read.uid), k, width, length)
        scope = e.semantics.reduction_scope
        out += element_reduction(e, op, state, issue, address + k, op.reduce, element, part, "async", scope)
    return out


def _check_group(e: Emitter, op: ops.TensorCopy, bar: int, shared: int) -> None:
    """The mbarrier is in the CTA of the destination or, with .cta_group::2, in its pair (9.7.9.27.1.2)."""
    one, other = e.instance_at(bar), e.instance_at(shared)
    if one is None or other is None or one.cta is None or other.cta is None:
        return
    same = one.cta == other.cta
    pair = (one.cta.gpu, one.cta.cluster, one.cta.rank // 2) == (other.cta.gpu, other.cta.cluster, other.cta.rank // 2)
    if not (same or (op.cta_group == 2 and pair)):
        raise e.stop("UB105", "the mbarrier is not in the CTA of the destination", op)


def _element(elemtype: str) -> str:
    """The PTX type of a tensor map's element type, for reductions."""
    return {"f32.ftz": "f32", "tf32": "f32", "tf32.ftz": "f32"}.get(elemtype, elemtype)


@handles(ops.TensormapReplace)
def _replace(e: Emitter, op: Op, state: State) -> list[State]:
    """A weak read and write of the whole 128-byte object through the generic proxy (9.7.9.26)."""
    assert isinstance(op, ops.TensormapReplace)
    where = e.address(op.address, state)
    _check_replaced(e, op, where)
    read = e.memory(state, op, "R", where, MAP_SIZE, "weak", "generic", None, align=False)
    state.order += 1
    value: Term = ("map", op.field_name, ("e", read.uid), e.number(op.value, state), e.maybe(op.ordinal, state))
    data = frozenset({read.uid})
    e.memory(state, op, "W", where, MAP_SIZE, "weak", "generic", None, value=value, data=data, align=False)
    state.order += 1
    state.effects += 1
    return [state]


def _check_replaced(e: Emitter, op: ops.TensormapReplace, where: int) -> None:
    instance = e.locate(where, MAP_SIZE, op, 64)
    space = instance.object.space
    if op.space != "generic" and space != op.space.partition("::")[0]:
        raise e.stop("UB108", f"{instance.label} is in .{space}, not in .{op.space}", op)


@handles(ops.TensormapCopyFence)
def _copy_fence(e: Emitter, op: Op, state: State) -> list[State]:
    """Copies the object through the generic proxy, then releases it to the tensormap proxy (9.7.13.16)."""
    assert isinstance(op, ops.TensormapCopyFence)
    dst, src, size = e.address(op.dst, state), e.address(op.src, state), e.number(op.size, state)
    if size != 128:
        raise e.stop("UB403", f"tensormap.cp_fenceproxy copies 128 bytes, not {size}", op)
    read = e.memory(state, op, "R", src, size, "weak", "generic", None, align=False)
    state.order += 1
    e.memory(
        state,
        op,
        "W",
        dst,
        size,
        "weak",
        "generic",
        None,
        value=("e", read.uid),
        align=False,
        data=frozenset({read.uid}),
    )
    state.order += 1
    state.effects += 1
    e.event(state, op, ("F", "PROXYFENCE", "TMAP", "PRELEASE"), scope=op.scope)
    state.order += 1
    return [state]


# --- wgmma
# --------------------------------------------------------------------------------------------------------------


@handles(ops.Wgmma)
def _wgmma(e: Emitter, op: Op, state: State) -> list[State]:
    """An asynchronous read of byte ranges of shared memory; not ordered after earlier instructions but by
    wgmma.fence.
    """
    assert isinstance(op, ops.Wgmma)
    issue = _issue(e, op, state)
    reads = []
    for address, size in op.reads:
        reads.append(_read(e, op, state, issue, e.address(address, state), e.number(size, state), "async", "WGMMA"))
    _groups(state, "wgmma").open.append(AsyncRecord(tuple(r.uid for r in reads), (), "wgmma"))
    return [state]


@handles(ops.WgmmaFence)
def _wgmma_fence(e: Emitter, op: Op, state: State) -> list[State]:
    e.event(state, op, ("WGFENCE",))
    state.order += 1
    return [state]
