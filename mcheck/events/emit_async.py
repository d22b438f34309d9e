"""Events of asynchronous operations (PTX ISA 9.7.9.25, 8.9.1.1).

Each gives an issue event in program order and, outside it, its memory events: weak source reads, weak destination
writes or relaxed
read-modify-writes, and the signal of its completion on an mbarrier. Strong copies read and write by relaxed accesses.
Groups complete at the waits of the issuing thread.
"""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.effects.async_copies import covers, one_group
from mcheck.effects.dispatch import tensor_copy_effect
from mcheck.effects.effect import Box, Effect, Run
from mcheck.events.emit import Emitter, Stop, handles, mbarrier_event
from mcheck.events.emit_mbarrier import object_of
from mcheck.events.event import BarrierStep, Event, MbarrierStep
from mcheck.events.thread_state import AsyncRecord, Groups, State
from mcheck.events.warpgroups import committing_threads, group_key
from mcheck.ir import ops
from mcheck.ir.liveness import defined_and_used
from mcheck.ir.memory import TensorMapSpec
from mcheck.ir.ops import Op
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.tensor_footprint import extent
from mcheck.semantics.tensor_map import fill_pattern
from mcheck.semantics.tensor_map_values import MAP_SIZE, decode
from mcheck.semantics.terms import Term, Uid, join, raw, reads_of, rmw, slice_bytes


def put_issue(e: Emitter, op: Op, state: State, *tags: Tag, scope: str | None = None) -> Event:
    """The issue, in program order; its operands are what it depends on. ``scope`` is that of what it releases."""
    operands = (state.registers[name] for name in defined_and_used(op)[1] if name in state.registers)
    depends = frozenset[Uid]().union(*map(reads_of, operands))
    event = e.event(state, op, (Tag.ISSUE, *tags), addr=depends, scope=scope)
    state.order += 1
    state.effects += 1
    return event


def groups_of(state: State, family: str) -> Groups:
    """The groups of a family."""
    return state.groups.setdefault(family, Groups())


def put_signal(
    e: Emitter,
    op: Op,
    state: State,
    issue: Event,
    where: int,
    tx: int,
    memory: list[Event],
    *,
    kind: str = "complete",
    extra: tuple[Tag, ...] = (),
) -> None:
    """The completion on an mbarrier: complete-tx, or the arrive of cp.async.mbarrier.arrive."""
    instance = e.site.at(where)
    assert instance is not None and instance.cta is not None
    done = mbarrier_event(
        e, state, op, MbarrierStep(where, kind, tx=tx if kind == "complete" else None),
        (Tag.COMPLETE, Tag.ASYNCSIGNAL, *extra), ordered=False, issue=issue.uid, scope="cluster",
        block=instance.cta.number,
    )  # fmt: skip
    state.tracked += [(m.uid, done.uid) for m in memory]


def put_read(
    e: Emitter, op: Op, state: State, issue: Event, address: int, size: int, proxy: str, *tags: Tag,
    scope: str | None = None,
) -> Event:  # fmt: skip
    """A read outside program order, relaxed at the ``scope`` or weak."""
    if getattr(op, "mbar", None) is not None:
        tags = (*tags, Tag.SIGNALLED)
    sem = "weak" if scope is None else "relaxed"
    return e.memory(state, op, Tag.R, address, size, sem, proxy, scope, ordered=False, issue=issue.uid, extra=tags)


def put_write(
    e: Emitter, op: Op, state: State, issue: Event, address: int, size: int, proxy: str, value: Term, *tags: Tag,
    scope: str | None = None,
) -> Event:  # fmt: skip
    """A write outside program order, relaxed at the ``scope`` or weak."""
    return e.memory(
        state, op, Tag.W, address, size, "weak" if scope is None else "relaxed", proxy, scope,
        value=value, ordered=False, issue=issue.uid, data=reads_of(value), extra=tags,
    )  # fmt: skip


# --- cp.async ----------------------------------------------------------------------------------------------


@handles(ops.CpAsync)
def _cp_async(e: Emitter, op: ops.CpAsync, state: State) -> list[State]:
    """Weak, in the generic proxy; bytes past ``src_size`` are zero (PTX ISA 9.7.9.25.3.1)."""
    made = e.effect_of(op, state)
    runs = e.require_part(op, made, made.runs or None)
    dst, size = runs[0].dst, sum(run.size for run in runs)
    issue = put_issue(e, op, state)
    reads: list[Event] = []
    value: Term = 0
    first = runs[0]
    if first.src is not None:
        reads = [put_read(e, op, state, issue, first.src, first.size, "generic", Tag.CPASYNC)]
        value = ("e", reads[0].uid)
        if first.size < size:
            value = join(((value, first.size), (0, size - first.size)))
    write = put_write(e, op, state, issue, dst, size, "generic", value, Tag.CPASYNC)
    record = AsyncRecord(tuple(r.uid for r in reads), (write.uid,), "cp.async", ((write.address, size),))
    groups_of(state, "cp.async").open.append(record)
    state.cp_async.append(record)
    return [state]


@handles(ops.CpAsyncArrive)
def _cp_async_arrive(e: Emitter, op: ops.CpAsyncArrive, state: State) -> list[State]:
    """An arrive-on once all earlier cp.async of the thread are done; without .noinc the count is raised first."""
    address = object_of(e, op, state)
    _of_one_group(e, op, state)
    if not op.noinc:
        mbarrier_event(e, state, op, MbarrierStep(address, "increment"), (Tag.INCREMENT,))
        state.order += 1
    issue = put_issue(e, op, state)
    memory = [state.events[u[1]] for r in state.cp_async for u in r.reads + r.writes]
    put_signal(e, op, state, issue, address, 0, memory, kind="async-arrive")
    return [state]


# --- groups --------------------------------------------------------------------------------------------------


@handles(ops.Commit)
def _commit(e: Emitter, op: ops.Commit, state: State) -> list[State]:
    _close_group(e, op, state, op.family)
    return [state]


def _of_one_group(e: Emitter, op: Op, state: State) -> None:
    """Looks at the copies since the last commit, or the last arrive that tells of copies: one behind it is ordered by
    the mbarrier, or races.
    """
    groups = groups_of(state, "cp.async")
    e.admit(op, state, one_group([d for r in groups.open[groups.covered_by_signal :] for d in r.destinations]))
    groups.covered_by_signal = len(groups.open)


def _close_group(e: Emitter, op: Op, state: State, family: str) -> None:
    """Commit the open copies as a group; two cp.async of a group must not write one place (PTX ISA 9.7.9.25.3.2)."""
    groups = groups_of(state, family)
    if family == "cp.async":
        _of_one_group(e, op, state)
    groups.committed.append(tuple(groups.open))
    groups.open, groups.covered_by_signal = [], 0
    if family == "wgmma" and _shared(e):
        key = group_key(e.thread.place.warpgroup, len(groups.committed))
        e.event(state, op, (Tag.MEET,), barrier=BarrierStep(key, "arrive"))
        state.order += 1


def _shared(e: Emitter) -> bool:
    """Whether other threads take part in the wgmma-groups of the warpgroup."""
    return e.meets and len(committing_threads(e.program, e.thread.place.warpgroup)) > 1


@handles(ops.WaitGroup)
def _wait_group(e: Emitter, op: ops.WaitGroup, state: State) -> list[State]:
    """Completes all but the ``pending`` most recent groups of this thread; ``.read`` only their source reads.

    Of wgmma the groups are the warpgroup's: the wait lasts until all have committed them (9.7.15.7.2).
    """
    if op.commits:
        _close_group(e, op, state, op.family)
    pending = e.number(op.pending, state)
    committed = groups_of(state, op.family).committed
    number = max(len(committed) - pending, 0)
    out, step = [state], None
    if op.family == "wgmma" and number and _shared(e):
        step = BarrierStep(group_key(e.thread.place.warpgroup, number), "wait")
        blocked = state.fork()
        blocked.ended = "stuck"
        e.event(blocked, op, (Tag.BLOCKED,), barrier=step)
        out.append(blocked)
    wait = e.event(state, op, (Tag.PROXYWAIT if op.restrict else Tag.GROUPWAIT,), barrier=step)
    state.order += 1
    if step is not None:
        state.ctrl |= {wait.uid}
    for group in committed[:number]:
        for record in group:
            finished = record.reads if op.read else record.reads + record.writes
            state.completes += [(m, wait.uid) for m in finished]
    return out


# --- bulk copies and reductions ---------------------------------------------------------------------------------


@handles(ops.BulkCopy)
def _bulk(e: Emitter, op: ops.BulkCopy, state: State) -> list[State]:
    """cp.async.bulk and cp.reduce.async.bulk: async proxy, weak, or relaxed element by element (9.7.9.25.4)."""
    made = e.effect_of(op, state)
    issue = put_issue(e, op, state)
    if op.reduce is not None:
        assert op.type is not None
        reads, writes = _reduce(e, op, state, issue, made, op.reduce, op.type)
    else:
        reads, writes = _copy(e, op, state, issue, made)
    _done(e, op, state, issue, made, reads, writes)
    return [state]


def _done(
    e: Emitter, op: Op, state: State, issue: Event, made: Effect, reads: list[Event], writes: list[Event]
) -> None:
    """Emit the completion of a bulk copy: the signals on its mbarriers, or its group."""
    if getattr(op, "mbar", None) is None:
        record = AsyncRecord(tuple(r.uid for r in reads), tuple(w.uid for w in writes), "bulk")
        groups_of(state, "bulk").open.append(record)
    for signal in made.signals:
        part = reads + [w for w in writes if covers(signal, w.address)]
        put_signal(e, op, state, issue, signal.mbar, signal.bytes, part)


def _copy(e: Emitter, op: ops.BulkCopy, state: State, issue: Event, made: Effect) -> tuple[list[Event], list[Event]]:
    """Each source is read once, however many CTAs receive it; by a strong copy element by element, which are what is
    atomic of it (PTX ISA 9.4, 9.7.10.28.4.1).
    """
    scope = op.scope if e.strong_copies else None
    reads: dict[tuple[int, int], Event] = {}
    writes: list[Event] = []
    for run in made.runs:
        assert run.src is not None
        size = run.size if scope is None else type_size(op.type or "")
        for k in range(0, run.size, size):
            read = reads.get((run.src + k, size))
            if read is None:
                read = reads[run.src + k, size] = put_read(e, op, state, issue, run.src + k, size, "async", scope=scope)
            value: Term = ("e", read.uid)
            writes.append(put_write(e, op, state, issue, run.dst + k, size, "async", value, scope=scope))
    return list(reads.values()), writes


def _reduce(
    e: Emitter, op: ops.BulkCopy, state: State, issue: Event, made: Effect, name: str, type_name: str
) -> tuple[list[Event], list[Event]]:
    """Element by element."""
    width, scope = type_size(type_name), op.scope or e.semantics.reduction_scope
    reads: list[Event] = []
    changes: list[Event] = []
    for run in made.runs:
        assert run.src is not None
        for k in range(0, run.size, width):
            source = put_read(e, op, state, issue, run.src + k, width, "async")
            reads.append(source)
            value = ("e", source.uid)
            changes += element_reduction(e, op, state, issue, run.dst + k, name, type_name, value, "async", scope)
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
    sem: str = "relaxed",
) -> list[Event]:
    """One read-modify-write of an element, relaxed but for a release by its write."""
    width = type_size(type_name)
    read = e.memory(
        state, op, Tag.R, address, width, "relaxed", proxy, scope,
        ordered=False, issue=issue.uid, extra=(Tag.RED, Tag.RMW, Tag.ASYNCREDUCTION),
    )  # fmt: skip
    value = rmw(name, type_name, ("e", read.uid), (operand,))
    write = e.memory(
        state, op, Tag.W, address, width, sem, proxy, scope,
        value=value, ordered=False, issue=issue.uid, rmw=read.uid, data=reads_of(value),
        extra=(Tag.RED, Tag.RMW, Tag.ASYNCREDUCTION),
    )  # fmt: skip
    return [read, write]


# --- st.async and red.async ----------------------------------------------------------------------------------------


@handles(ops.AsyncStore)
def _async_store(e: Emitter, op: ops.AsyncStore, state: State) -> list[State]:
    """Generic proxy; weak stores, or relaxed.cluster reductions, with a complete-tx of the bytes (9.7.9.12)."""
    made, width = e.effect_of(op, state), type_size(op.type)
    releases = (Tag.REL, Tag.GEN) if op.sem == "release" else ()
    issue = put_issue(e, op, state, *releases, scope=op.scope if releases else None)
    memory: list[Event] = []
    for src, access in zip(op.srcs, made.accesses, strict=False):
        where, value = access.address, raw(width, e.term(src, state))
        if op.reduce is not None:
            scope = op.scope or "cluster"
            sem = "release" if releases else "relaxed"
            memory += element_reduction(e, op, state, issue, where, op.reduce, op.type, value, "generic", scope, sem)
        elif op.sem == "weak":
            memory.append(put_write(e, op, state, issue, where, width, "generic", value))
        else:
            memory.append(
                e.memory(
                    state, op, Tag.W, where, width, op.sem, "generic", op.scope,
                    value=value, ordered=False, issue=issue.uid,
                )
            )  # fmt: skip
    for signal in made.signals:
        put_signal(e, op, state, issue, signal.mbar, signal.bytes, memory)
    return [state]


# --- tensor copies ---------------------------------------------------------------------------------------------------


@handles(ops.TensorCopy)
def _tensor(e: Emitter, op: ops.TensorCopy, state: State) -> list[State]:
    """cp.async.bulk.tensor and its reductions: the map is read through the tensormap proxy, the data through the
    async one.

    The fields of the map are what the read of the map returns: the path forks over the maps that may be found there,
    and ends where it finds contents that nobody knows.
    """
    found = e.effect_of(op, state)
    (place,) = e.require_part(op, found, found.accesses or None)
    issue = put_issue(e, op, state)
    map_read = e.memory(
        state, op, Tag.R, place.address, MAP_SIZE, "weak", "tensormap", None, ordered=False, issue=issue.uid
    )
    out: list[State] = []
    possible = e.domain(map_read.uid, state) or ()
    for contents in possible:
        fork = state.fork()
        fork.assume(("e", map_read.uid), contents)
        try:
            _tensor_copy(e, op, fork, issue, map_read, contents)
        except Stop as stop:
            fork.misstep, fork.ended = stop.misstep, "undefined"
        out.append(fork)
    if e.unsure(map_read.uid, state):
        out.append(state.exclude_values(map_read.uid, possible))
    return out


def _tensor_copy(e: Emitter, op: ops.TensorCopy, state: State, issue: Event, map_read: Event, contents: int) -> None:
    spec = decode(contents)
    made = e.admit(op, state, tensor_copy_effect(op, e.operands(op, state), e.site, spec))
    spec = e.require_part(op, made, spec)
    reads = [map_read]
    writes: list[Event] = []
    if made.box is not None and (op.unplaced or (e.unwritten is not None and op.reduce is None)):
        more, writes = _touched(e, op, state, issue, made.box)
        _done(e, op, state, issue, made, reads + more, writes)
        return
    cache: dict[tuple[int, int], Event] = {}
    for run in made.moved():
        if op.kind == "load":
            writes.append(_load_run(e, op, state, issue, spec, run, cache, reads))
        else:
            assert run.src is not None
            read = put_read(e, op, state, issue, run.src, run.size, "async")
            reads.append(read)
            writes += _store_run(e, op, state, issue, spec, run, read)
    _done(e, op, state, issue, made, reads, writes)


def _touched(e: Emitter, op: ops.TensorCopy, state: State, issue: Event, box: Box) -> tuple[list[Event], list[Event]]:
    """A copy of which only the bytes matter: one event per range."""
    from_tensor = box.kind == "load"
    image = box.image()
    tensor: tuple[tuple[int, int], ...] = ()
    lowest, size = extent(box.spec)
    whole = e.site.at(lowest)
    known = whole is not None and lowest + size <= whole.base + whole.object.size
    unseen = from_tensor and known and whole is not None and whole.base in (e.unwritten or ())
    if not (unseen or op.unplaced):
        tensor = box.rows()
    sources, targets = (tensor, image) if from_tensor else (image, tensor)
    reads = [put_read(e, op, state, issue, at, size, "async") for at, size in sources]
    return reads, [put_write(e, op, state, issue, at, size, "async", 0) for at, size in targets]


def _load_run(
    e: Emitter, op: Op, state: State, issue: Event, spec: TensorMapSpec, run: Run,
    cache: dict[tuple[int, int], Event], reads: list[Event],
) -> Event:  # fmt: skip
    """One run of a box: from the tensor, each run read once however many CTAs receive it, or filled."""
    if run.src is None:
        pattern = fill_pattern(spec)
        value: Term = int.from_bytes((pattern * (run.size // len(pattern) + 1))[: run.size], "little")
    else:
        read = cache.get((run.src, run.size))
        if read is None:
            read = cache[run.src, run.size] = put_read(e, op, state, issue, run.src, run.size, "async")
            reads.append(read)
        value = ("e", read.uid)
    return put_write(e, op, state, issue, run.dst, run.size, "async", value)


def _store_run(
    e: Emitter,
    op: ops.TensorCopy,
    state: State,
    issue: Event,
    spec: TensorMapSpec,
    run: Run,
    read: Event,
) -> list[Event]:
    """One run of a store or, element by element, of a reduction."""
    if op.reduce is None:
        return [put_write(e, op, state, issue, run.dst, run.size, "async", ("e", read.uid))]
    element = _element(spec.elemtype)
    width = type_size(element)
    out: list[Event] = []
    for k in range(0, run.size, width):
        part = slice_bytes(("e", read.uid), k, width, run.size)
        scope = e.semantics.reduction_scope
        out += element_reduction(e, op, state, issue, run.dst + k, op.reduce, element, part, "async", scope)
    return out


def _element(elemtype: str) -> str:
    """The PTX type of a tensor map's element type, for reductions."""
    return {"f32.ftz": "f32", "tf32": "f32", "tf32.ftz": "f32"}.get(elemtype, elemtype)


@handles(ops.TensormapReplace)
def _replace(e: Emitter, op: ops.TensormapReplace, state: State) -> list[State]:
    """A weak read and write of the whole 128-byte object through the generic proxy (9.7.9.26)."""
    made = e.effect_of(op, state)
    where = e.require_part(op, made, made.accesses or None)[0].address
    read = e.memory(state, op, Tag.R, where, MAP_SIZE, "weak", "generic", None)
    state.order += 1
    value: Term = (
        "map",
        op.field_name,
        ("e", read.uid),
        e.number(op.value, state),
        e.optional_number(op.ordinal, state),
    )
    data = frozenset({read.uid})
    e.memory(state, op, Tag.W, where, MAP_SIZE, "weak", "generic", None, value=value, data=data)
    state.order += 1
    state.effects += 1
    return [state]


@handles(ops.TensormapCopyFence)
def _copy_fence(e: Emitter, op: ops.TensormapCopyFence, state: State) -> list[State]:
    """Copies the object through the generic proxy, then releases it to the tensormap proxy (9.7.13.16)."""
    made = e.effect_of(op, state)
    source, target = e.require_part(op, made, made.accesses or None)
    read = e.memory(state, op, Tag.R, source.address, source.size, "weak", "generic", None)
    state.order += 1
    e.memory(
        state,
        op,
        Tag.W,
        target.address,
        target.size,
        "weak",
        "generic",
        None,
        value=("e", read.uid),
        data=frozenset({read.uid}),
    )
    state.order += 1
    state.effects += 1
    e.event(state, op, (Tag.F, Tag.PROXYFENCE, Tag.TMAP, Tag.PRELEASE), scope=op.scope)
    state.order += 1
    return [state]


# --- wgmma
# --------------------------------------------------------------------------------------------------------------


@handles(ops.Wgmma)
def _wgmma(e: Emitter, op: ops.Wgmma, state: State) -> list[State]:
    """An asynchronous read of byte ranges of shared memory; not ordered after earlier instructions but by
    wgmma.fence.
    """
    accesses = e.effect_of(op, state).accesses
    issue = put_issue(e, op, state)
    reads = [put_read(e, op, state, issue, a.address, a.size, "async", Tag.WGMMA) for a in accesses]
    groups_of(state, "wgmma").open.append(AsyncRecord(tuple(r.uid for r in reads), (), "wgmma"))
    return [state]


@handles(ops.WgmmaFence)
def _wgmma_fence(e: Emitter, op: Op, state: State) -> list[State]:
    e.event(state, op, (Tag.WGFENCE,))
    state.order += 1
    return [state]
