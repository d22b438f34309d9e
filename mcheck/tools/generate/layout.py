"""Layout of a cycle: the thread, placement, location and value of each end.

Along the cycle, an edge between threads continues in the next thread and an edge between locations at the next
location; the last one of each kind returns to the first. Consecutive writes of one location are in coherence order. A
cycle without a layout, or that the final state could not show, has no test.
"""

from __future__ import annotations

from dataclasses import field

from mcheck.base.records import dataclass
from mcheck.tools.generate.alphabet import HANDOVERS, Alphabet, Arc, CopyKind, End
from mcheck.tools.generate.cycles import Cycle

LOCATIONS = "xyzabcdef"
MOST_WRITES = 2
"""The maximum number of writes to a location, whose order the final state shows: the last remains."""


class NoTest(Exception):
    """The cycle has no litmus test; the message says why."""


@dataclass(slots=True)
class Location:
    """A location. ``owner`` is the CTA of a shared one, ``init`` the initial value of its first word."""

    name: str
    space: str = "global"
    owner: int = 0
    init: int = 0
    wide: bool = False
    final: int | None = None
    mapped: bool = False


@dataclass(slots=True)
class Copy:
    """An asynchronous copy of the test: its issuer, source, target, and the owner of its mbarrier."""

    number: int
    kind: CopyKind
    home: int
    source: Location | None = None
    target: Location | None = None
    value: int | None = None
    owner: int = 0


@dataclass(slots=True)
class Node:
    """An end in the layout. ``value`` is the value read or written; a read of ``None`` is unconstrained."""

    end: End
    thread: int
    location: Location
    value: int | None = None
    copy: Copy | None = None


@dataclass(slots=True)
class Layout:
    """The layout of a cycle: ``nodes[i]`` is before ``arcs[i]``; ``ctas`` has (gpu, cluster, rank) per thread."""

    alphabet: Alphabet
    arcs: Cycle
    nodes: list[Node] = field(default_factory=list)
    threads: int = 1
    ctas: list[tuple[int, int, int]] = field(default_factory=list)
    clustered: bool = False
    locations: list[Location] = field(default_factory=list)
    copies: list[Copy] = field(default_factory=list)

    def cta(self, thread: int) -> int:
        """The number of the CTA of a thread, among those of the test."""
        return sorted(set(self.ctas)).index(self.ctas[thread])

    def rank(self, cta: int) -> int:
        """The rank of a CTA in its cluster."""
        return sorted(set(self.ctas))[cta][2]

    def in_one_cluster(self, cta: int, other: int) -> bool:
        """Whether two CTAs are in one cluster."""
        every = sorted(set(self.ctas))
        return self.clustered and every[cta][:2] == every[other][:2]


def lay_out(alphabet: Alphabet, cycle: Cycle) -> Layout:
    """Lay out a cycle; raises ``NoTest``."""
    far = [bool(a.edge.far) for a in cycle]
    if not any(a.communicates for a in cycle):
        raise NoTest("the cycle has only order edges")
    if all(a.communicates for a in cycle):
        raise NoTest("the cycle has only communication edges")
    if sum(far) == 1:
        raise NoTest("the cycle leaves a thread and does not return")
    cut = [n for n, a in enumerate(cycle) if (a.edge.far if any(far) else a.communicates)]
    start = cut[0] + 1
    layout = Layout(alphabet, (*cycle[start:], *cycle[:start]))
    _threads(layout)
    _places(layout)
    _copies(layout)
    _spaces(layout)
    _values(layout)
    return layout


def _threads(layout: Layout) -> None:
    arcs = layout.arcs
    moves = sum(a.edge.moved for a in arcs)
    if moves == 1:
        raise NoTest("the cycle leaves a location and does not return")
    layout.locations = [Location(LOCATIONS[n]) for n in range(max(moves, 1))]
    thread = place = 0
    for arc in arcs:
        layout.nodes.append(Node(arc.source, thread, layout.locations[place % len(layout.locations)]))
        thread += bool(arc.edge.far)
        place += arc.edge.moved
    layout.threads = max(n.thread for n in layout.nodes) + 1


def _places(layout: Layout) -> None:
    """Place threads in CTAs, clusters and GPUs such that their distances are those of the edges."""
    count = layout.threads
    cta, cluster, gpu = list(range(count)), list(range(count)), list(range(count))
    pairs = []
    for n, arc in enumerate(layout.arcs):
        if arc.edge.far:
            pairs.append((layout.nodes[n].thread, layout.nodes[(n + 1) % len(layout.arcs)].thread, arc.edge.far))

    def join(groups: list[int], a: int, b: int) -> None:
        old, new = groups[b], groups[a]
        groups[:] = [new if g == old else g for g in groups]

    for a, b, far in pairs:
        if far == "cta":
            join(cta, a, b)
        if far in ("cta", "cluster"):
            join(cluster, a, b)
        if far != "sys":
            join(gpu, a, b)
    for a, b, far in pairs:
        if far != "cta" and cta[a] == cta[b]:
            raise NoTest("the distances are contradictory")
        if (far == "gpu" and cluster[a] == cluster[b]) or (far == "sys" and gpu[a] == gpu[b]):
            raise NoTest("the distances are contradictory")
    layout.clustered = any(far == "cluster" for _, _, far in pairs)
    clusters = {c: n for n, c in enumerate(dict.fromkeys(cluster))}
    ranks: dict[int, dict[int, int]] = {}
    for t in range(count):
        ranks.setdefault(cluster[t], {}).setdefault(cta[t], len(ranks[cluster[t]]) if cluster[t] in ranks else 0)
    gpus = {g: n for n, g in enumerate(dict.fromkeys(gpu))}
    layout.ctas = [(gpus[gpu[t]], clusters[cluster[t]], ranks[cluster[t]][cta[t]]) for t in range(count)]
    if layout.clustered and len({len(r) for r in ranks.values()}) > 1:
        raise NoTest("the clusters have different sizes")
    whole = [s for a in layout.arcs for s in a.edge.path if s in ("cluster", "cluster.relaxed")]
    if whole and (count > 2 or len(whole) > 1):
        raise NoTest("a cluster barrier must include all threads of the cluster")


def _copies(layout: Layout) -> None:
    nodes = layout.nodes
    for n, node in enumerate(nodes):
        if not node.end.copied:
            continue
        before = layout.arcs[n - 1]
        if before.edge.relation == "copy" and n == 0:
            raise NoTest("the cycle starts inside a copy")
        if before.edge.relation == "copy":
            copy = nodes[n - 1].copy
            assert copy is not None
        else:
            copy = Copy(len(layout.copies), layout.alphabet.copies[node.end.note], node.thread)
            layout.copies.append(copy)
        node.copy = copy
        if node.end.kind == "r":
            copy.source = node.location
        else:
            copy.target = node.location
        node.location.wide = True
    for copy in layout.copies:
        if copy.source is None and copy.kind.source != "register":
            copy.source = Location(f"s{copy.number}", wide=True, init=41 + copy.number)
            layout.locations.append(copy.source)
        if copy.target is None:
            copy.target = Location(f"d{copy.number}", wide=True)
            layout.locations.append(copy.target)


def _spaces(layout: Layout) -> None:
    """Choose the state spaces that the copies require, and the CTAs that own shared locations and mbarriers."""
    asked: dict[str, set[tuple[str, int]]] = {}
    for copy in layout.copies:
        home = layout.cta(copy.home)
        for location, space in ((copy.source, copy.kind.source), (copy.target, copy.kind.target)):
            if location is None:
                continue
            if space == "global":
                wish = ("global", -1)
            elif space == "shared":
                wish = ("shared", home)
            else:
                wish = ("shared", _peer(layout, copy, home))
                copy.owner = wish[1]
            asked.setdefault(location.name, set()).add(wish)
        if copy.kind.target != "peer":
            copy.owner = home
    for location in layout.locations:
        wishes = asked.get(location.name, {("global", -1)})
        if len(wishes) > 1:
            raise NoTest(f"{location.name} would be in two state spaces")
        location.space, owner = next(iter(wishes))
        location.owner = max(owner, 0)
    for node in layout.nodes:
        location = node.location
        if location.space == "shared" and not node.end.copied:
            here = layout.cta(node.thread)
            if here != location.owner and not layout.in_one_cluster(here, location.owner):
                raise NoTest(f"{location.name} is in the shared memory of a CTA too far away")
    for copy in layout.copies:
        for mapped, side in ((copy.source, "source"), (copy.target, "target")):
            if mapped is not None and copy.kind.map == side:
                mapped.mapped = True
    _check_waits(layout)


def _peer(layout: Layout, copy: Copy, home: int) -> int:
    """The other CTA of the cluster: that of a thread that accesses the target, otherwise the first."""
    others = sorted({layout.cta(t) for t in range(layout.threads)} - {home})
    others = [c for c in others if layout.in_one_cluster(c, home)]
    if not others:
        raise NoTest("a copy to another CTA needs a second CTA in the cluster")
    near = [layout.cta(n.thread) for n in layout.nodes if n.location is copy.target and not n.end.copied]
    return next((c for c in near if c in others), others[0])


def _check_waits(layout: Layout) -> None:
    """Check that waits on an mbarrier are in its own CTA."""
    for n, arc in enumerate(layout.arcs):
        node = layout.nodes[n]
        if node.copy is None:
            continue
        after = layout.nodes[(n + 1) % len(layout.nodes)].thread
        for step in arc.edge.path:
            waiter = after if step == "wait.elsewhere" else node.thread
            waits = step.startswith("wait") and node.copy.kind.signal == "mbarrier"
            if waits and layout.cta(waiter) != node.copy.owner:
                raise NoTest("the mbarrier of the copy is in another CTA")


def _values(layout: Layout) -> None:
    nodes, arcs = layout.nodes, layout.arcs
    size = len(nodes)
    for index, location in enumerate(layout.locations):
        if layout.copies and not location.init:
            location.init = 1 + index
    # The nodes of one location in coherence order, from the first one after an edge between locations.
    for location in layout.locations:
        mine = [n for n in range(size) if nodes[n].location is location]
        if not mine:
            continue
        first = next((n for n in mine if arcs[n - 1].edge.moved), 0)
        run = [nodes[(first + k) % size] for k in range(len(mine))]
        _number(layout, run, location)
    _follow(layout)
    for n, node in enumerate(nodes):
        _demand(layout, n, node)
    _observe(layout)


def _number(layout: Layout, run: list[Node], location: Location) -> None:
    writes = [node for node in run if node.end.writes]
    if len(writes) > MOST_WRITES:
        raise NoTest(f"the order of {len(writes)} writes to {location.name} would not be observable")
    for node in writes:
        if node.end.kind == "W":
            layout_values = [n.value or 10 for n in layout.nodes if n.end.kind == "W"]
            at = writes.index(node) + 1
            node.value = at if not layout.copies else max(layout_values, default=10) + 1


def _follow(layout: Layout) -> None:
    """Set the values that copies write: those that they read, or the contents of their source."""
    for _ in layout.copies:
        for n, node in enumerate(layout.nodes):
            if node.end.kind == "r":
                assert node.copy is not None
                node.value = node.copy.value = _read(layout, n)
        for copy in layout.copies:
            inside = any(node.end.kind == "r" and node.copy is copy for node in layout.nodes)
            if not inside:
                copy.value = copy.source.init if copy.source is not None else 61 + copy.number
        for node in layout.nodes:
            if node.end.kind == "w":
                assert node.copy is not None
                node.value = node.copy.value


def _read(layout: Layout, n: int) -> int | None:
    """The value that node ``n`` must read for the cycle: from its rf edge, or the one before its fr edge's write."""
    nodes, arcs = layout.nodes, layout.arcs
    before, after = arcs[n - 1], arcs[n]
    if before.edge.relation == "rf":
        return nodes[n - 1].value
    if after.edge.relation == "fr":
        return _before(layout, (n + 1) % len(nodes))
    if any(m.end.writes and m.location is nodes[n].location for m in nodes):
        return None
    return nodes[n].location.init


def _before(layout: Layout, n: int) -> int | None:
    """The value that the write ``n`` replaces."""
    nodes, arcs = layout.nodes, layout.arcs
    at = n
    for _ in range(len(nodes) - 1):
        if arcs[at - 1].edge.moved:
            break
        at = (at - 1) % len(nodes)
        if nodes[at].end.writes:
            return nodes[at].value
    return nodes[n].location.init


def _demand(layout: Layout, n: int, node: Node) -> None:
    if node.end.kind == "R":
        node.value = _read(layout, n)
    if node.end.kind == "w":
        assert node.copy is not None
        if node.value is None:
            raise NoTest("the value written by the copy is unknown")
        if node.copy.kind.most:
            old = _before(layout, n)
            if old is None or node.value <= old:
                raise NoTest("the reduction would leave the old value")
    if node.value is not None and node.end.writes and node.value == _before(layout, n):
        raise NoTest("a write would not change the value")


def _observe(layout: Layout) -> None:
    """Set the final values that show the order of writes and the values that copies read."""
    nodes, arcs = layout.nodes, layout.arcs
    for n, node in enumerate(nodes):
        if arcs[n].edge.relation == "co":
            following = nodes[(n + 1) % len(nodes)]
            node.location.final = following.value
    for n, node in enumerate(nodes):
        constrained = arcs[n - 1].edge.relation == "rf" or arcs[n].edge.relation == "fr"
        if node.end.kind != "r" or not constrained:
            continue
        assert node.copy is not None
        target = node.copy.target
        assert target is not None
        written = next((m for m, w in enumerate(nodes) if w.copy is node.copy and w.end.kind == "w"), None)
        if written is None:
            target.final = node.value
        elif arcs[written].edge.relation == "co":
            raise NoTest("what the copy read would not be observable")
        elif arcs[written].edge.relation != "rf":
            target.final = node.value


def handover_step(arc: Arc) -> str:
    """The step of an edge that continues in another thread, or an empty string."""
    return next((s for s in arc.edge.path if s in HANDOVERS), "")
