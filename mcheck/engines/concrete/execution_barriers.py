"""Barriers of CTAs, clusters and warps (PTX ISA 9.0 sections 9.7.13.1 to 9.7.13.3).

Without a count a barrier waits for every thread of its CTA that has not exited. With one it waits until that many
threads have arrived, every arrival of a warp counting 32, also a second one of a warp that did not wait (Q22).
"""

from __future__ import annotations

from mcheck.engines.concrete.machine import Arrival, Gathering, Machine, Runner, Value
from mcheck.ir import ops
from mcheck.ir.aligned_operations import DIVERGENT_BARRIERS
from mcheck.ir.alu import wrap
from mcheck.ir.ops import Op
from mcheck.semantics.undefined import Misuse
from mcheck.semantics.warp_collectives import result

WARP = 32
Key = tuple[object, ...]


def barrier(m: Machine, runner: Runner, op: ops.Barrier) -> None:
    """``bar``/``barrier.cta`` sync, arrive and red."""
    cta = runner.thread.place.cta.number
    number, count = m.effect_of(runner, op).result, m.optional_value(runner, op.count)
    key: Key = ("bar", cta, number) if op.instance is None else ("inst", cta, op.instance, number)
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
    runner.wake_condition = lambda: m.gatherings[key].number > arrived
    runner.pc += 1


def warp(m: Machine, runner: Runner, op: ops.WarpSync) -> None:
    """``bar.warp.sync``; its mask applies to the declared lanes."""
    place = runner.thread.place
    mask = m.effect_of(runner, op).result
    _arrive(m, runner, op, ("warp", place.cta.number, place.warp, mask), None, None, wait=True)


def collective(m: Machine, runner: Runner, op: ops.Collective) -> None:
    """``elect.sync`` and other collectives: the declared lanes of the mask synchronise and exchange values."""
    place = runner.thread.place
    mask = m.effect_of(runner, op).result
    assert mask is not None
    key = ("lanes", place.cta.number, place.warp, mask, op.op, op.type)
    own = tuple(m.value(runner, x) for x in op.srcs[1:])
    value = m.value(runner, op.srcs[0]) if op.srcs else 0
    arrival = _arrive(m, runner, op, key, value, None, wait=False)

    def passed() -> bool:
        if arrival.round is None:
            return False
        given = _given(op, mask, place.lane, _brought(m, op, key, arrival.round), own)
        for reg, value in zip(op.dsts, given, strict=True):
            if reg is not None:
                runner.registers[reg.name] = value
        return True

    runner.wake_condition = passed


def _brought(m: Machine, op: ops.Collective, key: Key, number: int) -> dict[int, Value]:
    """The values of the lanes that have arrived; the elected lane of a mask is always the same, whoever arrives
    (9.7.13.14).
    """
    if op.op == "elect":
        return {runner.thread.place.lane: 0 for runner in _members(m, key)}
    return m.exchanged[key, number]


def _arrive(
    m: Machine, runner: Runner, op: Op, key: Key, predicate: Value, count: int | None, *, wait: bool
) -> Arrival:
    gathering = m.gatherings.setdefault(key, Gathering())
    if key[0] == "bar":
        _check_uses(m, gathering, runner, op, count)
    arrival = Arrival(op, predicate)
    gathering.arrived.setdefault(runner.thread.index, []).append(arrival)
    m.changes += 1
    runner.pc += 1
    if wait:
        dst = getattr(op, "dst", None)

        def passed() -> bool:
            if arrival.round is None:
                return False
            if dst is not None:
                runner.registers[dst.name] = m.results[key, arrival.round]
            return True

        runner.wake_condition = passed
    _settle(m, key, gathering)
    return arrival


def _given(
    op: ops.Collective, mask: int, lane: int, brought: dict[int, Value], own: tuple[Value, ...]
) -> tuple[Value, Value]:
    """The value and the predicate that a lane gets, unknown if they depend on unknown values."""
    known = {k: v for k, v in brought.items() if v is not None}
    operands = tuple(v for v in own if v is not None)
    if len(operands) < len(own) or (len(known) < len(brought) and not op.op.startswith("shfl")):
        return None, None
    value, predicate = result(op.op, op.type, mask, lane, known, operands)
    return (value if value is None else wrap(op.type, value)), predicate


def _check_uses(m: Machine, gathering: Gathering, runner: Runner, op: Op, count: int | None) -> None:
    """Checks that one generation has one kind of instruction and one count, and the lanes of a warp one aligned
    instruction.
    """
    assert isinstance(op, ops.Barrier)
    place = runner.thread.place
    own = len(gathering.arrived.get(runner.thread.index, ()))
    for other, arrivals in gathering.arrived.items():
        there = m.runners[other].thread.place
        same_warp = (there.cta, there.warp) == (place.cta, place.warp)
        for k, arrival in enumerate(arrivals):
            theirs = arrival.op
            assert isinstance(theirs, ops.Barrier)
            if (theirs.kind == "red") != (op.kind == "red") or (op.kind == "red" and op.red_op != theirs.red_op):
                raise Misuse("UB304", "bar.red meets another kind of barrier instruction", op.section)
            if m.optional_value(m.runners[other], theirs.count) != count:
                raise Misuse("UB304", "threads give one barrier different counts", op.section)
            if same_warp and k == own and op.aligned and theirs.aligned and _statement(op) != _statement(theirs):
                raise Misuse("UB305", DIVERGENT_BARRIERS, op.section)


def _statement(op: Op) -> object:
    return (op.span.line, op.span.column) if op.span is not None else id(op)


def _members(m: Machine, key: Key) -> list[Runner]:
    out = []
    for runner in m.runners:
        place = runner.thread.place
        match key[0]:
            case "cluster":
                inside = (place.cta.gpu, place.cta.cluster) == key[1:]
            case "warp" | "lanes":
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
    first, arrivals = next(iter(gathering.arrived.items()))
    op = arrivals[0].op
    count = m.optional_value(m.runners[first], op.count) if isinstance(op, ops.Barrier) else None
    members = _members(m, key)
    if count is None:
        if any(not r.ended and r.thread.index not in gathering.arrived for r in members):
            return False
        _complete(m, key, gathering, dict.fromkeys(gathering.arrived, 1))
    elif key[0] == "inst":
        if len(gathering.arrived) < count:
            return False
        _complete(m, key, gathering, dict.fromkeys(gathering.arrived, 1))
    else:
        warps = _whole_warps(members, gathering, partial=partial)
        if WARP * sum(warps.values()) < count:
            return False
        taken = {r.thread.index: warps.get(r.thread.place.warp, 0) for r in members}
        _complete(m, key, gathering, taken)
    return True


def _whole_warps(members: list[Runner], gathering: Gathering, *, partial: bool) -> dict[int, int]:
    """How often each warp has arrived with all its lanes; with ``partial`` one lane is enough."""
    lanes: dict[int, list[int]] = {}
    for runner in members:
        times = len(gathering.arrived.get(runner.thread.index, ()))
        if times or not runner.ended:
            lanes.setdefault(runner.thread.place.warp, []).append(times)
    return {warp: max(times) if partial else min(times) for warp, times in lanes.items()}


def _complete(m: Machine, key: Key, gathering: Gathering, taken: dict[int, int]) -> None:
    """Ends a generation with the first ``taken`` arrivals of each thread."""
    done = [arrival for thread, n in taken.items() for arrival in gathering.arrived.get(thread, ())[:n]]
    reds = [a for a in done if isinstance(a.op, ops.Barrier) and a.op.kind == "red"]
    if reds:
        values = [int(bool(a.predicate)) for a in reds]
        combine = {"popc": sum(values), "and": int(all(values)), "or": int(any(values))}
        assert isinstance(reds[0].op, ops.Barrier)
        m.results[key, gathering.number] = combine[reds[0].op.red_op or "popc"]
    for arrival in done:
        arrival.round = gathering.number
    if key[0] == "lanes":
        m.exchanged[key, gathering.number] = {
            m.runners[thread].thread.place.lane: arrivals[0].predicate for thread, arrivals in gathering.arrived.items()
        }
    gathering.arrived = {t: left for t, a in gathering.arrived.items() if (left := a[taken.get(t, 0) :])}
    gathering.number += 1
    m.changes += 1


def release_exited(m: Machine, runner: Runner) -> None:
    """Completes barriers that only waited for a thread that has exited."""
    del runner
    for key, gathering in list(m.gatherings.items()):
        _settle(m, key, gathering)


def release_partial_warps(m: Machine) -> bool:
    """Completes a counted barrier although some lanes of its warps are elsewhere; called when no thread can proceed."""
    return any(_settle(m, key, gathering, partial=True) for key, gathering in list(m.gatherings.items()))
