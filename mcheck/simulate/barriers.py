"""Barriers of CTAs, clusters and warps (PTX ISA 9.0 sections 9.7.13.1 to 9.7.13.3).

Without a count a barrier waits for every thread of its CTA that has not exited. With one it waits until that many
threads have arrived, each arriving warp counting 32.
"""

from __future__ import annotations

from mcheck.executor.misuse import Misuse
from mcheck.program import ops
from mcheck.program.ops import Op
from mcheck.simulate.machine import Gathering, Machine, Runner, Value

WARP = 32
Key = tuple[object, ...]


def barrier(m: Machine, runner: Runner, op: ops.Barrier) -> None:
    """``bar``/``barrier.cta`` sync, arrive and red."""
    cta = runner.thread.place.cta.number
    number, count = m.maybe(runner, op.barrier), m.maybe(runner, op.count)
    if op.instance is None:
        if number is None or not 0 <= number <= 15:
            raise Misuse("UB302", f"barrier {number} is not one of 0 to 15", op.section)
        if count is not None and (count <= 0 or count % WARP):
            raise Misuse("UB301", f"{count} threads are not a positive multiple of the warp size", op.section)
        key: Key = ("bar", cta, number)
    else:
        key = ("inst", cta, op.instance, number)
    predicate: Value = None
    if op.src is not None:
        predicate = m.value(runner, op.src)
        if predicate is None:
            predicate = m.choose(f"the predicate of '{op.text}'")
    _arrive(m, runner, op, key, predicate, count, wait=op.kind != "arrive")


def cluster(m: Machine, runner: Runner, op: ops.ClusterBarrier) -> None:
    """``barrier.cluster.arrive`` and ``.wait``."""
    cta = runner.thread.place.cta
    key: Key = ("cluster", cta.gpu, cta.cluster)
    if op.kind == "arrive":
        if runner.cluster_arrived is not None:
            raise Misuse("UB306", "a thread arrives twice at the cluster barrier without waiting", op.section)
        runner.cluster_arrived = m.gatherings.setdefault(key, Gathering()).number
        _arrive(m, runner, op, key, None, None, wait=False)
        return
    if runner.cluster_arrived is None:
        raise Misuse("UB306", "a thread waits at the cluster barrier without having arrived", op.section)
    arrived = runner.cluster_arrived
    runner.cluster_arrived = None
    runner.waits = lambda: m.gatherings[key].number > arrived
    runner.pc += 1


def warp(m: Machine, runner: Runner, op: ops.WarpSync) -> None:
    """``bar.warp.sync``; its mask regards the declared lanes."""
    place = runner.thread.place
    mask = m.number(runner, op.mask, "mask") & 0xFFFFFFFF
    if not mask >> place.lane & 1:
        raise Misuse("UB109", "the member mask of bar.warp.sync leaves out the executing lane", op.section)
    _arrive(m, runner, op, ("warp", place.cta.number, place.warp, mask), None, None, wait=True)


def _arrive(m: Machine, runner: Runner, op: Op, key: Key, predicate: Value, count: int | None, *, wait: bool) -> None:
    gathering = m.gatherings.setdefault(key, Gathering())
    index = runner.thread.index
    if index in gathering.arrived:
        raise Misuse("UB303", f"{runner.thread.name} arrives twice in one generation of the barrier", op.section)
    if key[0] == "bar":
        _check_uses(m, gathering, runner, op, count)
    gathering.arrived[index] = (op, predicate)
    m.changes += 1
    runner.pc += 1
    if wait:
        here = gathering.number
        dst = getattr(op, "dst", None)

        def passed() -> bool:
            if gathering.number == here:
                return False
            if dst is not None:
                runner.registers[dst.name] = m.results[key, here]
            return True

        runner.waits = passed
    _settle(m, key, gathering)


def _check_uses(m: Machine, gathering: Gathering, runner: Runner, op: Op, count: int | None) -> None:
    """One generation has one kind of instruction and one count; the lanes of a warp one aligned instruction."""
    assert isinstance(op, ops.Barrier)
    place = runner.thread.place
    for other, (theirs, _) in gathering.arrived.items():
        assert isinstance(theirs, ops.Barrier)
        if (theirs.kind == "red") != (op.kind == "red") or (op.kind == "red" and op.red_op != theirs.red_op):
            raise Misuse("UB304", "bar.red meets another kind of barrier instruction", op.section)
        if m.maybe(m.runners[other], theirs.count) != count:
            raise Misuse("UB304", "threads give one barrier different counts", op.section)
        there = m.runners[other].thread.place
        same_warp = (there.cta, there.warp) == (place.cta, place.warp)
        if same_warp and op.aligned and theirs.aligned and _statement(op) != _statement(theirs):
            raise Misuse("UB305", "threads of one warp execute different aligned barriers", op.section)


def _statement(op: Op) -> object:
    return (op.span.line, op.span.column) if op.span is not None else id(op)


def _members(m: Machine, key: Key) -> list[Runner]:
    out = []
    for runner in m.runners:
        place = runner.thread.place
        match key[0]:
            case "cluster":
                inside = (place.cta.gpu, place.cta.cluster) == key[1:]
            case "warp":
                inside = (place.cta.number, place.warp) == key[1:3] and bool(int(str(key[3])) >> place.lane & 1)
            case _:
                inside = place.cta.number == key[1]
        if inside:
            out.append(runner)
    return out


def _settle(m: Machine, key: Key, gathering: Gathering, *, partial: bool = False) -> bool:
    """Completes the generation if everyone it waits for has arrived."""
    if not gathering.arrived:
        return False
    op = next(iter(gathering.arrived.values()))[0]
    count = None
    if isinstance(op, ops.Barrier):
        count = m.maybe(m.runners[next(iter(gathering.arrived))], op.count)
    members = _members(m, key)
    if count is None:
        if any(not r.ended and r.thread.index not in gathering.arrived for r in members):
            return False
    elif key[0] == "inst":
        if len(gathering.arrived) < count:
            return False
    elif WARP * len(_whole_warps(m, members, gathering, partial=partial)) < count:
        return False
    _complete(m, key, gathering)
    return True


def _whole_warps(m: Machine, members: list[Runner], gathering: Gathering, *, partial: bool) -> set[int]:
    """The warps all of whose lanes have arrived; with ``partial`` one lane is enough."""
    del m
    arrived: set[int] = set()
    missing: set[int] = set()
    for runner in members:
        if runner.thread.index in gathering.arrived:
            arrived.add(runner.thread.place.warp)
        elif not runner.ended:
            missing.add(runner.thread.place.warp)
    return arrived if partial else arrived - missing


def _complete(m: Machine, key: Key, gathering: Gathering) -> None:
    reds = [(op, value) for op, value in gathering.arrived.values() if isinstance(op, ops.Barrier) and op.kind == "red"]
    if reds:
        values = [int(bool(value)) for _, value in reds]
        combine = {"popc": sum(values), "and": int(all(values)), "or": int(any(values))}
        m.results[key, gathering.number] = combine[reds[0][0].red_op or "popc"]
    gathering.arrived = {}
    gathering.number += 1
    m.changes += 1


def after_exit(m: Machine, runner: Runner) -> None:
    """A thread that has exited is no longer waited for."""
    del runner
    for key, gathering in list(m.gatherings.items()):
        _settle(m, key, gathering)


def release_partial_warps(m: Machine) -> bool:
    """Nothing else can go on: a counted barrier may complete although some lanes of its warps are elsewhere."""
    return any(_settle(m, key, gathering, partial=True) for key, gathering in list(m.gatherings.items()))
