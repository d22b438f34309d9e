"""Who meets whom at a barrier: the assignments of arrivals to generations.

PTX (models from 9.0 on): a barrier with a count completes when that many threads have arrived, each warp counting 32;
without
a count it waits for every thread that has not exited, so the k-th executions meet. Arrival and resumption are
separate events;
``barrier`` relates every arrival of a generation to every resumption of it.

The peers' table dialect under its own models: barriers are static instances, see ``static_choices``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from mcheck.errors import Unsupported
from mcheck.explore.choices import Choice, Option
from mcheck.graph.event import BarrierStep
from mcheck.graph.structure import Node, Structure
from mcheck.program.ops import Barrier
from mcheck.program.program import Program

WARP = 32
MAX_ASSIGNMENTS = 4096


def static_choices(s: Structure) -> list[Choice] | None:
    """``syncbar`` of the table dialect; ``None`` if some barrier of these paths cannot be passed.

    Without a quorum a barrier passes only if every static barrier of its CTA, instance and id is reached; with one,
    if that many
    are. A set of quorum size is then chosen, and its members synchronise with all that wait.
    """
    groups: dict[tuple[object, ...], list[Node]] = {}
    for node in s.nodes:
        source = node.source
        if source is None or source.barrier is None or "BLOCKED" in source.tags:
            continue
        if source.barrier.key[0] == "static":
            groups.setdefault(source.barrier.key, []).append(node)
    choices = []
    for key, members in groups.items():
        if not _passes(s, key, members):
            return None
        step = members[0].source.barrier if members[0].source else None
        assert step is not None
        quorum = step.count
        targets = [m.index for m in members if m.source and m.source.barrier and m.source.barrier.kind != "arrive"]
        sources = [m.index for m in members]
        if quorum is None or quorum >= len(sources):
            sets = [tuple(sources)]
        else:
            sets = list(combinations(sources, quorum))
        options = [Option((("syncbar", tuple((a, b) for a in chosen for b in targets)),)) for chosen in sets]
        choices.append(Choice("barrier", options, rank=0))
    return choices


def _passes(s: Structure, key: tuple[object, ...], reached: list[Node]) -> bool:
    """Rule for blocking in the table dialect: quorum reached, or every static barrier of the group reached."""
    quorums = [n.source.barrier.count for n in reached if n.source and n.source.barrier]
    if any(q is not None for q in quorums):
        return all(len(reached) >= (q or 0) for q in quorums)
    arrived = {n.source.barrier.op_id for n in reached if n.source and n.source.barrier}
    elsewhere = {
        n.source.barrier.op_id for n in s.nodes if n.source and n.source.barrier and n.source.barrier.key != key
    }
    return static_members(s.program, key) - elsewhere <= arrived


def static_members(program: Program, key: tuple[object, ...]) -> set[int]:
    """The barrier instructions of the CTA with this instance that may have this id."""
    _, cta, instance, number = key
    found = set()
    for t in program.threads:
        if t.place.cta.number != cta:
            continue
        for op in t.code:
            if isinstance(op, Barrier) and op.instance == instance:
                constant = getattr(op.barrier, "value", None)
                if constant is None or number is None or constant == number:
                    found.add(id(op))
    return found


def is_blocked(s: Structure, node: Node) -> bool:
    """Whether a thread that stands before this barrier of the table dialect stays there."""
    assert node.source is not None and node.source.barrier is not None
    key = node.source.barrier.key
    reached = [
        n for n in s.nodes if n.source is not None and n.source.barrier is not None and n.source.barrier.key == key
    ]
    return not _passes(s, key, reached)


def dynamic_choices(s: Structure) -> list[Choice] | None:
    """``barrier`` for barriers whose arrival does not block; ``None`` if these paths cannot be: a thread passes a
    barrier
    that does not complete, or stands at one that does.
    """
    arrivals: dict[tuple[object, ...], dict[int, list[Node]]] = {}
    waits: dict[tuple[object, ...], dict[int, list[Node]]] = {}
    blocked: dict[tuple[object, ...], set[int]] = {}
    for node in s.nodes:
        source = node.source
        if source is None or source.barrier is None or source.barrier.key[0] == "static":
            continue
        if "BLOCKED" in source.tags:
            blocked.setdefault(source.barrier.key, set()).add(node.thread)
            continue
        target = arrivals if "BARRIVE" in source.tags else waits
        target.setdefault(source.barrier.key, {}).setdefault(node.thread, []).append(node)
    choices = []
    for key, by_thread in arrivals.items():
        steps = [n.source.barrier for nodes in by_thread.values() for n in nodes if n.source and n.source.barrier]
        waiting = waits.get(key, {})
        if key[0] == "inst":
            options = _meet_instance(s, key, by_thread, waiting, blocked.get(key, set()))
            if not options:
                return None
            choices.append(Choice("barrier", options, rank=0))
        elif all(step.count is None for step in steps):
            option = _misused(s, by_thread) or _meet_all(s, by_thread, waiting, blocked.get(key, set()), steps[0])
            if option is None:
                return None
            choices.append(Choice("barrier", [option], rank=0))
        else:
            options = _meet_counted(s, by_thread, waiting, blocked.get(key, set()))
            if not options:
                return None
            choices.append(Choice("barrier", options, rank=0))
    return choices


def _meet_all(
    s: Structure, arrivals: dict[int, list[Node]], waits: dict[int, list[Node]], blocked: set[int], step: BarrierStep
) -> Option | None:
    """The k-th executions meet; a thread that executes fewer must have exited."""
    expected = _participants(s, step)
    pairs: list[tuple[int, int]] = []
    for k in range(max(len(nodes) for nodes in arrivals.values())):
        members = [nodes[k] for nodes in arrivals.values() if k < len(nodes)]
        complete = not any(_runs_on(s, t) for t in expected - {m.thread for m in members})
        resumed = [nodes[k] for nodes in waits.values() if k < len(nodes)]
        standing = [t for t in blocked if len(waits.get(t, ())) == k]
        if (resumed and not complete) or (standing and complete):
            return None
        pairs += [(a.index, b.index) for a in members for b in resumed]
    return Option((("barrier", tuple(pairs)),))


def _meet_instance(
    s: Structure,
    key: tuple[object, ...],
    arrivals: dict[int, list[Node]],
    waits: dict[int, list[Node]],
    blocked: set[int],
) -> list[Option]:
    """A static instance of the table dialect under the models from 9.0 on: as ``static_choices``, but an arrive waits
    for
    nobody. Executions of one instance in a loop meet one by one.
    """
    members = [n for nodes in arrivals.values() for n in nodes]
    quorum = next((n.source.barrier.count for n in members if n.source and n.source.barrier), None)
    if quorum is not None:
        passes = len(members) >= quorum
        resumed = [n.index for nodes in waits.values() for n in nodes]
        if passes is bool(blocked) or (resumed and not passes):
            return []
        sets = combinations([n.index for n in members], min(quorum, len(members)))
        return [Option((("barrier", tuple((a, b) for a in chosen for b in resumed)),)) for chosen in sets]
    missing = static_members(s.program, key) - {
        n.source.barrier.op_id for n in s.nodes if n.source and n.source.barrier and "BLOCKED" not in n.source.tags
    }
    pairs: list[tuple[int, int]] = []
    for k in range(max(len(nodes) for nodes in arrivals.values())):
        here = [nodes[k] for nodes in arrivals.values() if k < len(nodes)]
        complete = not missing and not any(_runs_on(s, t) for t, nodes in arrivals.items() if k >= len(nodes))
        resumed_here = [n for t, nodes in waits.items() for n in _resumption(nodes, arrivals[t][k : k + 1])]
        standing = [t for t in blocked if len(arrivals[t]) - 1 == k]
        if (resumed_here and not complete) or (standing and complete):
            return []
        pairs += [(a.index, b) for a in here for b in resumed_here]
    return [Option((("barrier", tuple(pairs)),))]


def _misused(s: Structure, arrivals: dict[int, list[Node]]) -> Option | None:
    """Undefined uses: .red mixed with other kinds in one generation, lanes of a warp at different aligned barriers."""
    for k in range(max(len(nodes) for nodes in arrivals.values())):
        members = [nodes[k] for nodes in arrivals.values() if k < len(nodes)]
        steps = [(m, m.source.barrier) for m in members if m.source and m.source.barrier]
        if any(b.key[0] != "bar" for _, b in steps):
            return None
        if len({b.kind == "red" for _, b in steps}) > 1:
            return _misuse("UB304", "bar.red meets another kind of barrier instruction", steps[0][0])
        at: dict[tuple[int, int], tuple[int, int]] = {}
        for m, b in steps:
            place = s.program.threads[m.thread].place
            if b.aligned and at.setdefault((place.cta.number, place.warp), b.statement) != b.statement:
                return _misuse("UB305", "threads of one warp execute different aligned barriers", m)
    return None


def _misuse(code: str, message: str, node: Node) -> Option:
    assert node.source is not None
    return Option(misstep=(code, message, node.source.uid))


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
            case "warp":
                inside = (cta.number, t.place.warp) == (rest[0], rest[1]) and bool(int(rest[2]) >> t.place.lane & 1)  # type: ignore[call-overload]
            case _:
                inside = False
        if inside:
            out.add(t.index)
    return out


def _runs_on(s: Structure, thread: int) -> bool:
    """Whether the thread is stuck on these paths: it has not exited, so the barrier waits for it."""
    path = next(p for p in s.paths if p.thread == thread)
    return path.end != "end"


@dataclass(frozen=True, slots=True)
class _Arrival:
    """One arrival of a warp: its barrier step, its events, the resumptions that wait for it, whether it is left
    standing.
    """

    step: BarrierStep
    sources: tuple[int, ...]
    targets: tuple[int, ...]
    standing: bool


def _meet_counted(
    s: Structure, arrivals: dict[int, list[Node]], waits: dict[int, list[Node]], blocked: set[int]
) -> list[Option]:
    """Every way to fill the generations of a barrier with counts, each arriving warp counting 32."""
    misuse = _misused(s, arrivals)
    if misuse is not None:
        return [misuse]
    warps: dict[tuple[int, int], list[int]] = {}
    for thread in arrivals:
        place = s.program.threads[thread].place
        warps.setdefault((place.cta.number, place.warp), []).append(thread)
    units: list[list[_Arrival]] = []
    for threads in warps.values():
        unit: list[_Arrival] = []
        for k in range(max(len(arrivals[t]) for t in threads)):
            here = [arrivals[t][k] for t in threads if k < len(arrivals[t])]
            source = here[0].source
            assert source is not None and source.barrier is not None
            targets = [
                b
                for t in threads
                if k < len(arrivals[t])
                for b in _resumption(waits.get(t, []), arrivals[t][k : k + 1])
            ]
            standing = any(t in blocked and k == len(arrivals[t]) - 1 for t in threads)
            unit.append(_Arrival(source.barrier, tuple(n.index for n in here), tuple(targets), standing))
        units.append(unit)
    found: dict[tuple[tuple[int, int], ...], Option] = {}
    _fill(s, units, tuple(0 for _ in units), (), found)
    return list(found.values())


def _resumption(waits: list[Node], arrivals: list[Node]) -> list[int]:
    """The resumptions of these executions of a barrier."""
    executed = {a.source.instruction for a in arrivals if a.source}
    return [w.index for w in waits if w.source and w.source.instruction in executed]


def _fill(
    s: Structure,
    units: list[list[_Arrival]],
    at: tuple[int, ...],
    pairs: tuple[tuple[int, int], ...],
    found: dict[tuple[tuple[int, int], ...], Option],
) -> None:
    """Completes one generation in every possible way, until no more can be completed."""
    if len(found) > MAX_ASSIGNMENTS:
        raise Unsupported("too many ways to fill a named barrier")
    ready = [u for u, unit in enumerate(units) if at[u] < len(unit)]
    counts = {units[u][at[u]].step.count for u in ready}
    if len(counts) > 1:
        node = s.nodes[units[ready[0]][at[ready[0]]].sources[0]]
        found[pairs] = _misuse("UB304", "threads give one barrier different counts", node)
        return
    completed = False
    needed = ((counts.pop() if counts else None) or WARP * len(units)) // WARP
    for chosen in combinations(ready, needed):
        completed = True
        if any(units[u][at[u]].standing for u in chosen):
            continue
        new = tuple(
            (a, b) for u in chosen for a in units[u][at[u]].sources for v in chosen for b in units[v][at[v]].targets
        )
        _fill(s, units, tuple(x + (u in chosen) for u, x in enumerate(at)), pairs + new, found)
    if not completed and all(not units[u][at[u]].targets for u in ready):
        found[pairs] = Option(
            (("barrier", pairs),)
        )  # what is left are arrivals that nobody waits for, or that wait for ever
