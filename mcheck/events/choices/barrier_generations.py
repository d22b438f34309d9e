"""Assignments of barrier arrivals to generations: which arrivals synchronise with which departures.

PTX (models from 9.0 on): a barrier with a count completes when that many threads have arrived, each warp counting 32;
without
a count it waits for every thread that has not exited, so the k-th executions meet. Arrival and resumption are
separate events;
``barrier`` relates every arrival of a generation to every resumption of it.

The peers' table dialect under its own models: barriers are static instances, see ``static_choices``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from mcheck.base.errors import Unsupported
from mcheck.base.records import replace
from mcheck.cat.tags import Tag
from mcheck.events.choices.barrier_rounds import MAX_WORK, MIXED, TOO_MANY, Arrival, LaneExits, Units, fill_rounds
from mcheck.events.choices.candidate import Choice, Option
from mcheck.events.event import BarrierStep
from mcheck.events.structure import Node, Structure
from mcheck.events.warpgroups import committing_threads
from mcheck.ir import ops
from mcheck.ir.ops import Barrier
from mcheck.ir.program import Program
from mcheck.ir.reachability import earliest_reachable, last_barrier_position, last_barrier_positions


def quorum_choice(relation: str, sources: list[int], targets: list[int], quorum: int) -> Choice:
    """The choice of ``quorum`` arrivals with which all waiting threads synchronise; if no thread waits, any will do."""
    sets = combinations(sources, quorum) if targets else [()]
    options = [Option(((relation, tuple((a, b) for a in chosen for b in targets)),)) for chosen in sets]
    return Choice("barrier", options, rank=0)


def rounds_choice(units: Units, leaving: LaneExits) -> Choice:
    """The choice of how arrivals fill the generations of a barrier with counts."""
    return Choice("barrier", fill_rounds(units, leaving), rank=0)


Quorum = Callable[[str, list[int], list[int], int], Choice]
"""Makes the choice of (relation, arrivals, those that wait, how many arrivals suffice)."""
Rounds = Callable[[Units, LaneExits], Choice]
"""Makes the choice of how rounds are filled; one without options if they cannot be."""


def static_choices(s: Structure, choose: Quorum = quorum_choice) -> list[Choice] | None:
    """``syncbar`` of the table dialect; ``None`` if some barrier of these paths cannot be passed.

    Without a quorum a barrier passes only if every static barrier of its CTA, instance and id is reached; with one,
    if that many
    are. A set of quorum size is then chosen, and its members synchronise with all that wait.
    """
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in s.nodes:
        source = node.source
        if source is None or source.barrier is None or Tag.BLOCKED in source.tags:
            continue
        if source.barrier.key[0] == "static":
            groups.setdefault(source.barrier.key, []).append(node)
    choices = []
    for key, members in groups.items():
        if not _passes(s, key, members):
            return None
        quorum = _quorum(members)
        targets = [m.index for m in members if m.source and m.source.barrier and m.source.barrier.kind != "arrive"]
        sources = [m.index for m in members]
        choices.append(
            choose("syncbar", sources, targets, len(sources) if quorum is None else min(quorum, len(sources)))
        )
    return choices


def _passes(s: Structure, key: tuple[object, ...], reached: list[Node]) -> bool:
    """Rule for blocking in the table dialect: quorum reached, or every static barrier of the group reached."""
    quorum = _quorum(reached)
    if quorum is not None:
        return len(reached) >= quorum
    arrived = {n.source.barrier.op_id for n in reached if n.source and n.source.barrier}
    elsewhere = {
        n.source.barrier.op_id for n in s.nodes if n.source and n.source.barrier and n.source.barrier.key != key
    }
    return static_members(s.program, key) - elsewhere <= arrived


def _quorum(members: list[Node]) -> int | None:
    """The number of arrivals that an instance needs: the maximum of those given, ``None`` if none is given."""
    given = [n.source.barrier.count for n in members if n.source and n.source.barrier]
    return max((q for q in given if q is not None), default=None)


def static_members(program: Program, key: tuple[object, ...]) -> set[int]:
    """The barrier instructions of the CTA with this instance that may have this id; those without one are a barrier of
    their own.
    """
    _, cta, instance, number = key
    found = set()
    for t in program.threads:
        if t.place.cta.number != cta:
            continue
        for op in t.code:
            if isinstance(op, Barrier) and op.instance == instance:
                constant = getattr(op.barrier, "value", None)  # none either in an id that a register gives
                same = op.barrier is None if number is None else op.barrier is not None and constant in (None, number)
                if same:
                    found.add(id(op))
    return found


def is_blocked(s: Structure, node: Node) -> bool:
    """Whether a thread that has reached this barrier of the table dialect stays blocked there."""
    assert node.source is not None and node.source.barrier is not None
    key = node.source.barrier.key
    reached = [
        n for n in s.nodes if n.source is not None and n.source.barrier is not None and n.source.barrier.key == key
    ]
    return not _passes(s, key, reached)


def dynamic_choices(
    s: Structure, choose: Quorum = quorum_choice, rounds: Rounds = rounds_choice
) -> list[Choice] | None:
    """``barrier`` for barriers whose arrival does not block; ``None`` if these paths cannot be: a thread passes a
    barrier
    that does not complete, or stands at one that does.
    """
    choices: list[Choice] = []
    for choice in each_choice(s, choose, rounds):
        if choice is None:
            return None
        choices.append(choice)
    return choices


def each_choice(
    s: Structure, choose: Quorum = quorum_choice, rounds: Rounds = rounds_choice
) -> Iterator[Choice | None]:
    """The choice of each barrier whose arrival does not block, ``None`` if these paths are impossible with it."""
    arrivals: dict[tuple[object, ...], dict[int, list[Node]]] = {}
    waits: dict[tuple[object, ...], dict[int, list[Node]]] = {}
    blocked: dict[tuple[object, ...], set[int]] = {}
    for node in s.nodes:
        source = node.source
        if source is None or source.barrier is None or source.barrier.key[0] == "static":
            continue
        if Tag.BLOCKED in source.tags:
            blocked.setdefault(source.barrier.key, set()).add(node.thread)
            continue
        target = arrivals if source.tags & {Tag.BARRIVE, Tag.MEET} else waits
        target.setdefault(source.barrier.key, {}).setdefault(node.thread, []).append(node)
    for key, by_thread in arrivals.items():
        steps = [n.source.barrier for nodes in by_thread.values() for n in nodes if n.source and n.source.barrier]
        waiting = waits.get(key, {})
        if key[0] == "group":
            option = _synchronise_group(s, key, by_thread, waiting, blocked.get(key, set()))
            yield None if option is None else Choice("barrier", [option], rank=0)
        elif key[0] == "inst":
            yield _synchronise_instance(s, key, by_thread, waiting, blocked.get(key, set()), choose)
        elif all(step.count is None for step in steps):
            relation = "meet" if key[0] == "lanes" else "barrier"
            options = _synchronise_all(s, by_thread, waiting, blocked.get(key, set()), steps[0], relation)
            yield Choice("barrier", options, rank=0) if options else None
        else:
            choice = rounds(*_units(s, by_thread, waiting, blocked.get(key, set())))
            yield choice if choice.options else None


def _synchronise_all(
    s: Structure,
    arrivals: dict[int, list[Node]],
    waits: dict[int, list[Node]],
    blocked: set[int],
    step: BarrierStep,
    relation: str,
) -> list[Option]:
    """The k-th executions meet; a thread that executes fewer must have exited, and before the others go on. Where two
    kinds meet there is an option for every two that may come first; nobody goes on from there before both have come.
    None if these paths cannot be.
    """
    expected = _participants(s, step)
    exits = [n for n in s.nodes if n.has(Tag.EXIT)]
    pairs: list[tuple[int, int]] = []
    exited: list[tuple[int, int]] = []
    for k in range(max(len(nodes) for nodes in arrivals.values())):
        members = [nodes[k] for nodes in arrivals.values() if k < len(nodes)]
        mixed = _mixed(members)
        if mixed:
            later = [n.index for nodes in waits.values() for n in nodes[k:]]
            if len(mixed) * len(later) > MAX_WORK:
                raise Unsupported(TOO_MANY)
            before = ((relation, tuple(pairs)), ("exited", tuple(exited)))
            return [
                Option(
                    (*before, ("rounds", tuple((n.index, b) for n in (one, other) for b in later))),
                    misstep=(*MIXED, other.source.uid if other.source else (0, 0)),
                )
                for one, other in mixed
            ]
        complete = not any(_is_stuck(s, t) for t in expected - {m.thread for m in members})
        resumed = [nodes[k] for nodes in waits.values() if k < len(nodes)]
        standing = [t for t in blocked if len(waits.get(t, ())) == k]
        if (resumed and not complete) or (standing and complete):
            return []
        pairs += [(a.index, b.index) for a in members for b in resumed]
        gone = [n for n in exits if n.thread in expected and n.thread not in {m.thread for m in members}]
        exited += [(n.index, b.index) for n in gone for b in resumed]
    return [Option(((relation, tuple(pairs)), ("exited", tuple(exited))))]


def _synchronise_group(
    s: Structure,
    key: tuple[object, ...],
    arrivals: dict[int, list[Node]],
    waits: dict[int, list[Node]],
    blocked: set[int],
) -> Option | None:
    """Waits for a wgmma-group of the warpgroup return once all its threads have committed it, or have exited."""
    _, cta, warpgroup, _ = key
    assert isinstance(cta, int) and isinstance(warpgroup, int)
    absent = set(committing_threads(s.program, (cta, warpgroup))) - set(arrivals)
    complete = not any(_is_stuck(s, t) for t in absent)
    resumed = [n.index for nodes in waits.values() for n in nodes]
    if (resumed and not complete) or (blocked and complete):
        return None
    met = tuple((n.index, w) for nodes in arrivals.values() for n in nodes for w in resumed)
    gone = tuple((n.index, w) for n in s.nodes if n.has(Tag.EXIT) and n.thread in absent for w in resumed)
    return Option((("meet", met), ("exited", gone)))


def _mixed(members: list[Node]) -> list[tuple[Node, Node]]:
    """All pairs of arrivals of a generation that are of different kinds."""
    kinds = [(n, n.source.barrier.kind == "red") for n in members if n.source and n.source.barrier]
    return [(a, b) for (a, one), (b, other) in combinations(kinds, 2) if one is not other]


def _synchronise_instance(
    s: Structure,
    key: tuple[object, ...],
    arrivals: dict[int, list[Node]],
    waits: dict[int, list[Node]],
    blocked: set[int],
    choose: Quorum,
) -> Choice | None:
    """A static instance of the table dialect under the models from 9.0 on: as ``static_choices``, but an arrive waits
    for nobody, so that it may be all that ever comes. Executions of one instance in a loop meet one by one.
    """
    members = [n for nodes in arrivals.values() for n in nodes]
    quorum = _quorum(members)
    if quorum is not None:
        passes = len(members) >= quorum
        resumed = [n.index for nodes in waits.values() for n in nodes]
        if (blocked and passes) or (resumed and not passes):
            return None
        return choose("barrier", [n.index for n in members], resumed, min(quorum, len(members)))
    missing = static_members(s.program, key) - {
        n.source.barrier.op_id for n in s.nodes if n.source and n.source.barrier and Tag.BLOCKED not in n.source.tags
    }
    pairs: list[tuple[int, int]] = []
    for k in range(max(len(nodes) for nodes in arrivals.values())):
        here = [nodes[k] for nodes in arrivals.values() if k < len(nodes)]
        complete = not missing and not any(_is_stuck(s, t) for t, nodes in arrivals.items() if k >= len(nodes))
        resumed_here = [n for t, nodes in waits.items() for n in _resumption(nodes, arrivals[t][k : k + 1])]
        standing = [t for t in blocked if len(arrivals[t]) - 1 == k]
        if (resumed_here and not complete) or (standing and complete):
            return None
        pairs += [(a.index, b) for a in here for b in resumed_here]
    return Choice("barrier", [Option((("barrier", tuple(pairs)),))], rank=0)


def find_divergent_arrivals(s: Structure) -> list[tuple[Node, Node]]:
    """Arrivals of every two lanes of a warp that execute different aligned barriers, as the first ones in which they
    differ (PTX ISA 9.7.13.1); what they do before these is all that counts.
    """
    warps: dict[tuple[int, int], dict[int, list[Node]]] = {}
    for node in s.nodes:
        step = node.source.barrier if node.source is not None else None
        if node.has(Tag.BARRIVE) and step is not None and step.key[0] == "bar" and step.aligned:
            place = s.program.threads[node.thread].place
            warps.setdefault(place.own_warp, {}).setdefault(node.thread, []).append(node)
    pairs = (pair for lanes in warps.values() for pair in combinations(lanes.values(), 2))
    found = (
        next((x for x in zip(*pair, strict=False) if _statement(x[0]) != _statement(x[1])), None) for pair in pairs
    )
    return [x for x in found if x is not None]


def _statement(node: Node) -> tuple[int, int]:
    assert node.source is not None and node.source.barrier is not None
    return node.source.barrier.statement


def _participants(s: Structure, step: BarrierStep) -> set[int]:
    kind, *rest = step.key
    out = set()
    for t in s.program.threads:
        cta = t.place.cta
        match kind:
            case "bar" | "inst":
                inside = cta.number == rest[0]
            case "cluster":
                inside = (cta.gpu, cta.cluster) == (rest[0], rest[1])
            case "warp" | "lanes":
                inside = (cta.number, t.place.warp) == (rest[0], rest[1]) and bool(int(rest[2]) >> t.place.lane & 1)  # type: ignore[call-overload]
            case _:
                inside = False
        if inside:
            out.add(t.index)
    return out


def _is_stuck(s: Structure, thread: int) -> bool:
    """Whether the thread is blocked on these paths: it has not exited, so the barrier waits for it."""
    path = next(p for p in s.paths if p.thread == thread)
    return path.end != "end"


def _units(
    s: Structure, arrivals: dict[int, list[Node]], waits: dict[int, list[Node]], blocked: set[int]
) -> tuple[Units, LaneExits]:
    """The arrivals at a barrier with counts, by warp (each counts 32), and the exits of the warps."""
    warps: dict[tuple[int, int], list[int]] = {}
    for thread in arrivals:
        place = s.program.threads[thread].place
        warps.setdefault(place.own_warp, []).append(thread)
    units: list[list[Arrival]] = []
    for warp, threads in warps.items():
        unit: list[Arrival] = []
        lanes = [t.index for t in s.program.threads if t.place.own_warp == warp]
        for k in range(max(len(arrivals[t]) for t in threads)):
            here = [_arrival(arrivals[t], k, waits.get(t, []), t in blocked) for t in threads if k < len(arrivals[t])]
            stopped = [t for t in lanes if k >= len(arrivals.get(t, ())) and _may_have_arrived(s, t, here[0].step)]
            unit.append(replace(_of_warp(here), stopped=tuple(n for t in stopped for n in _last_of(s, t))))
        units.append(unit)
    step = next(a.step for unit in units for a in unit)
    absent = [t for t in _participants(s, step) if t not in arrivals]
    return units, LaneExits(tuple(_exits(s, threads) for threads in warps.values()), _exits(s, absent))


def _arrival(arrivals: list[Node], k: int, waits: list[Node], blocked: bool) -> Arrival:
    """The k-th arrival of a thread."""
    node = arrivals[k]
    assert node.source is not None and node.source.barrier is not None
    standing = blocked and k == len(arrivals) - 1
    return Arrival(
        node.source.barrier, node.source.uid, (node.index,), tuple(_resumption(waits, [node])), standing
    )  # fmt: skip


def _of_warp(lanes: list[Arrival]) -> Arrival:
    """The arrival of a warp, of those of its lanes: they are one, or it is told that they are none (9.7.13.1)."""
    return replace(
        lanes[0],
        sources=tuple(n for lane in lanes for n in lane.sources),
        targets=tuple(n for lane in lanes for n in lane.targets),
        standing=any(lane.standing for lane in lanes),
        lanes=tuple(lanes) if len(lanes) > 1 else (),
        mixed=any(lane.use != lanes[0].use for lane in lanes),
    )


def _may_have_arrived(s: Structure, thread: int, step: BarrierStep) -> bool:
    """Whether a thread has stopped at undefined behaviour before a barrier at which it might have arrived."""
    path, code = s.paths[thread], s.program.threads[thread]
    if path.end != "undefined":
        return False
    at = path.misstep.op if path.misstep is not None else path.at
    pc = next((k for k, op in enumerate(code.code) if op is at or ops.performed_operation(op) is at), 0)
    number = step.key[2]
    assert isinstance(number, int)
    return last_barrier_position(last_barrier_positions(code), number) >= earliest_reachable(code)[pc]


def _last_of(s: Structure, thread: int) -> list[int]:
    """The last event of a thread in program order, if there is one."""
    mine = [n for n in s.nodes if n.thread == thread and n.source is not None and n.source.order is not None]
    return [n.index for n in mine[-1:]]


def _exits(s: Structure, threads: list[int]) -> tuple[int, ...] | None:
    """The exits of some threads, ``None`` if one of them does not exit."""
    if any(_is_stuck(s, t) for t in threads):
        return None
    return tuple(n.index for n in s.nodes if n.has(Tag.EXIT) and n.thread in threads)


def _resumption(waits: list[Node], arrivals: list[Node]) -> list[int]:
    """The resumptions of these executions of a barrier."""
    executed = {a.source.instruction for a in arrivals if a.source}
    return [w.index for w in waits if w.source and w.source.instruction in executed]
