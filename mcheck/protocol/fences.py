"""Fences: what they release and acquire, what they carry over to other proxies (PTX ISA 9.0 sections 8.8 and
9.7.13.4).
"""

from __future__ import annotations

from mcheck.graph.event import Event
from mcheck.program import ops
from mcheck.program.ops import Op
from mcheck.protocol.clocks import Key, Know, Vector, join_coverage, joined, mutual
from mcheck.protocol.machine import Agent, Machine, does
from mcheck.protocol.objects import Done, Handed, Source, hand


def contributions(agent: Agent, releases: bool, scope: str) -> Handed:
    """What a strong write or an arrive hands over: its own release, and those of the fences before it."""
    handed: Handed = {}
    for source, know in agent.releases.items():
        hand(handed, source, know)
    if releases:
        hand(handed, (scope, agent.place, False), agent.know())
    return handed


def acquire(agent: Agent, handed: Handed, scope: str, acquires: bool) -> None:
    """Takes what is handed over where scopes include each other; the rest is kept for an acquire fence to come."""
    for source, know in handed.items():
        their_scope, place, half = source
        if acquires and not half and mutual(their_scope, place, scope, agent.place):
            agent.learn(know)
        else:
            hand(agent.pending, source, know)


def spaces_of(spaces: frozenset[str], cta: int) -> tuple[object, ...]:
    """The spaces that a fence covers, by the names that records use (Q14)."""
    if not spaces:
        return ("global", "shared", "other")
    out: list[object] = []
    for space in sorted(spaces):
        if space == "global":
            out.append("global")
        elif space == "shared::cta":
            out.append(("cta", cta))
        elif space.startswith("shared"):
            out.append("shared")
    return tuple(out)


@does(ops.Fence)
def fence(m: Machine, agent: Agent, op: Op) -> None:
    """``fence``, ``membar``, ``fence.mbarrier_init`` and the fences restricted to a space."""
    from mcheck.protocol.accesses import runs

    assert isinstance(op, ops.Fence)
    if not runs(m, agent, op):
        return
    event = m.emit(agent, 0, op)[0]
    scope = event.scope or "sys"
    if "MBARRIER_INIT_FENCE" in event.tags:
        if agent.inits:
            vector = m.zero.copy()
            for component, generation in agent.inits.items():
                vector[component] = generation
            hand(agent.releases, ("cluster", agent.place, False), Know(vector))
    elif "RESTRICTED" in event.tags:
        _restricted(m, agent, event, scope)
    else:
        if "SC" in event.tags:
            _sequential(m, agent, event, scope)
        if event.tags & {"ACQ", "ACQ_REL", "SC"}:
            _acquire_fence(agent, scope, False)
        if event.tags & {"REL", "ACQ_REL", "SC"}:
            source: Source = (scope, agent.place, False)
            know = agent.know()
            older = agent.releases.get(source)
            agent.releases[source] = know if older is None else older.join(know)
    agent.pc += 1


def _acquire_fence(agent: Agent, scope: str, half: bool) -> None:
    """Takes what relaxed observations before the fence left (8.8)."""
    for source in list(agent.pending):
        their_scope, place, theirs = source
        if theirs is half and mutual(their_scope, place, scope, agent.place):
            agent.learn(agent.pending.pop(source))
    if not half and agent.pending_seen:
        for component, phase in agent.pending_seen.items():
            agent.causal = _seen(agent.causal, component, phase)
        agent.pending_seen = {}


def _seen(vector: Vector, component: int, phase: int) -> Vector:
    from mcheck.protocol.clocks import raised

    return raised(vector, component, phase)


def _restricted(m: Machine, agent: Agent, event: Event, scope: str) -> None:
    """A fence restricted to a space: only accesses to objects in it are released or acquired."""
    covered = spaces_of(event.spaces, agent.place[2])
    if "REL" in event.tags:
        coverage: dict[Key, Vector] = {}
        for space in covered:
            vector = m.zero.copy()
            vector[agent.index] = agent.step
            coverage["cr", space] = vector
        hand(agent.releases, (scope, agent.place, False), Know(m.zero, coverage))
    if "ACQ" in event.tags:
        for source, know in agent.pending.items():
            their_scope, place, half = source
            if not half and mutual(their_scope, place, scope, agent.place):
                for space in covered:
                    older = agent.spaces.get(space)
                    agent.spaces[space] = know if older is None else older.join(know)
        for component, phase in agent.pending_seen.items():
            for space in covered:
                vector = m.zero.copy()
                vector[component] = phase
                older = agent.spaces.get(space)
                agent.spaces[space] = Know(vector) if older is None else older.join(Know(vector))


def _sequential(m: Machine, agent: Agent, event: Event, scope: str) -> None:
    """fence.sc: those whose scopes include each other are in one order (8.10.2).

    One that must have come before, since something behind it was observed, synchronises with this one. For others
    either order is followed, if that decides anything.
    """
    time = agent.now()
    done = Done(agent.index, agent.step, len(m.trace) - 1, time, event, "sc", 0)
    for their_scope, other, know in m.sc_fences:
        if other.agent == agent.index or not mutual(their_scope, m.agents[other.agent].place, scope, agent.place):
            continue
        if time[other.agent] >= other.step:
            agent.learn(know)
        elif m.setup.sequential:
            m.reverse(other, agent.index, time, agent.single)
            agent.learn(know)
            agent.time = joined(agent.time, other.time)
            m.assigned.append((agent.index, agent.step, "sc", other.agent, other.step))
    m.sc_fences.append((scope, done, agent.know()))


@does(ops.ProxyFence)
def proxy_fence(m: Machine, agent: Agent, op: Op) -> None:
    """``fence.proxy``: what comes before it, in causality, is carried over to the other proxy behind it."""
    from mcheck.protocol.accesses import runs

    if not runs(m, agent, op):
        return
    proxy_fence_event(m, agent, m.emit(agent, 0, op)[0])
    agent.pc += 1


def proxy_fence_event(m: Machine, agent: Agent, event: Event) -> None:
    """The effect of a proxy fence, also of the one in ``tensormap.cp_fenceproxy``."""
    tags = event.tags
    cta = agent.place[2]
    scope = event.scope or "cta"
    if "ALIAS" in tags:
        return
    if "PRELEASE" in tags:
        kind = "pr" if "ASYNC" in tags else "tr"
        covered = spaces_of(event.spaces, cta) if kind == "pr" else ("map",)
        _cover(agent, [(kind, space, scope, agent.place, agent.index) for space in covered])
        know = agent.know()
        hand(agent.releases, (scope, agent.place, True), know)
    elif "PACQUIRE" in tags:
        _acquire_fence(agent, scope, True)
        _acquire_half(agent, event, scope)
    elif "BOTH" in tags and "ASYNC" in tags:
        covered = spaces_of(event.spaces, cta)
        keys: list[Key] = [("pf", space) for space in covered]
        if m.setup.many_ctas:
            keys += [("pw", space, cta) for space in covered]
        _cover(agent, keys)


def _cover(agent: Agent, keys: list[Key]) -> None:
    """All that is before the present step in causality is covered by fences of these kinds."""
    agent.coverage = join_coverage(agent.coverage, dict.fromkeys(keys, agent.causal))
    for key in keys:
        agent.fenced[key] = agent.step


def _acquire_half(agent: Agent, event: Event, scope: str) -> None:
    """The acquire half: what release halves of including scopes have covered may be used through the proxy from here
    on.
    """
    wanted = "pr" if "ASYNC" in event.tags else "tr"
    for key in set(agent.coverage) | set(agent.fenced):
        if key[0] != wanted:
            continue
        _, space, their_scope, place, who = key
        assert isinstance(their_scope, str) and isinstance(place, tuple)
        if who != agent.index and not mutual(their_scope, place, scope, agent.place):
            continue
        targets: list[Key]
        if wanted == "pr":
            targets = [("pa", space, s) for s in spaces_of(event.spaces, agent.place[2])]
        else:
            targets = [("ta", *(event.covered or (0, 1 << 62)))]
        for target in targets:
            vector = agent.coverage.get(key)
            if vector is not None:
                mine = agent.coverage.get(target)
                agent.coverage = {**agent.coverage, target: vector if mine is None else joined(mine, vector)}
            if key in agent.fenced:
                agent.fenced[target] = max(agent.fenced.get(target, -1), agent.fenced[key])
