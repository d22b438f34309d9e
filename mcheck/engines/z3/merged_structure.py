"""One structure for all combinations of paths of the threads, and the projection to a single combination."""

from __future__ import annotations

from collections.abc import Callable

from mcheck.base.errors import InternalError
from mcheck.base.records import dataclass
from mcheck.cat.algebra import bits
from mcheck.cat.algebra.bits import Rows
from mcheck.cat.algebra.bounds import Bounds
from mcheck.cat.algebra.tape import BOUND, TOTAL, Tape
from mcheck.cat.tags import Tag
from mcheck.engines.z3.guards import Guards
from mcheck.engines.z3.path_merge import Joined
from mcheck.engines.z3.symbolic_choices import Opened
from mcheck.events.choices.candidate import Candidate, Choice, Option
from mcheck.events.choices.prepared import Prepared
from mcheck.events.event import Path
from mcheck.events.structure import Structure
from mcheck.semantics.terms import Uid


class Guarded(Opened):
    """The choices and bounds of a structure that holds several paths of some threads."""

    def __init__(
        self, tape: Tape, s: Structure, choices: list[Choice], deadline: Callable[[], None], threads: list[Joined]
    ) -> None:
        self.threads = threads
        super().__init__(tape, s, choices, deadline)

    def _prepare(self) -> None:
        self.guards = Guards(self.s, self.threads, self.clauses)
        for choice in self.choices:
            if choice.kind == "rf":
                together = self.guards.together[choice.node]
                choice.options = [o for o in choice.options if together >> o.source & 1]

    def here(self, i: int) -> int:
        """The literal that an event is in the execution."""
        return self.guards.here(i)

    def compose(self, a: Rows, b: Rows) -> Rows:
        """The definite pairs of a composition."""
        return self.guards.compose(a, b)

    def base(self, name: str) -> tuple[Rows, Rows]:
        """The static bounds of a base set or relation."""
        low, high = super().base(name)
        together = self.guards.together
        if low is high:
            found = bits.meet(low, together)
            return found, found
        return bits.meet(low, together), bits.meet(high, together)

    def opened(self, name: str) -> list[tuple[int, int, int]]:
        """The pairs of a relation that open choices may give, and those that only some alternatives have."""
        if name in self.candidates:
            return self.candidates[name]
        found = super().opened(name)
        for joined in self.threads if name == "complete" else ():
            for (m, w), mask in joined.completes.items():
                if mask != self.guards.with_both(m, w):
                    literal = self.guards.any_taken(w[0], mask)
                    found += [(i, j, literal) for i in self.s.nodes_of[m] for j in self.s.nodes_of[w]]
        return found

    def _bounds(self) -> None:
        s, n, together = self.s, self.n, self.guards.together
        self.extra_edges = tuple(
            ("complete", i, j)
            for joined in self.threads
            for (m, w), mask in joined.completes.items()
            if mask == self.guards.with_both(m, w)
            for i in s.nodes_of[m]
            for j in s.nodes_of[w]
        )
        self.co_low, self.co_high, self.sf_high = bits.empty(n), bits.empty(n), bits.empty(n)
        for first, *others in s.writes.values():
            everyone = sum(1 << w for w in others)
            self.co_low[first] = self.co_high[first] = everyone
            for w in others:
                self.co_high[w] = everyone & ~(1 << w) & together[w]
        if "sync_fence" in self.tape.bases:
            sr = self.base("sr")[0]
            fences = sum(1 << x.index for x in s.nodes if x.has(Tag.SC) and x.has(Tag.F))
            for i in bits.bits(fences):
                self.sf_high[i] = sr[i] & fences & ~(1 << i)
        while True:
            bounds = self.guards.bound(self.tape, self.base)
            if not self._forced_co(bounds):
                break
        self.bounds = bounds
        self.checks, self.late, self.flags = [], [], []
        for a in self.tape.checks:
            if a.role == "flag":
                self.flags += [a] if any(bounds.high[a.node]) else []
            elif a.role in (BOUND, TOTAL):
                self.checks += [a] if any(bounds.high[a.node]) else []
            elif a.negated or self._fails(a, bounds.high[a.node]):
                (self.checks if a.monotone else self.late).append(a)

    def _forced_co(self, bounds: Bounds) -> bool:
        """Adds to co's lower bound the pairs that every execution with both events has."""
        before = list(self.co_low)
        for a in self.tape.checks:
            for i, row in enumerate(bounds.low[a.node] if a.role == BOUND else ()):
                self.co_low[i] |= row & self.co_high[i]
        if self.co_low == before:
            return False
        for i, row in enumerate(self.guards.closure(self.co_low)):
            self.co_low[i] |= row & self.co_high[i]
        for i in range(self.n):
            for j in bits.bits(self.co_low[i]):
                if not self.co_low[j] >> i & 1:
                    self.co_high[j] &= ~(1 << i)
        return True


@dataclass(frozen=True, slots=True)
class Single:
    """An execution of a merged structure as one of a single combination of paths: its choices, and the nodes of its
    events.
    """

    prepared: Prepared
    candidate: Candidate
    nodes: dict[int, int]

    def ordered(self, given: Callable[[str, int, int], bool]) -> Callable[[str, int, int], bool]:
        """The orders of the solution, on the events of the combination."""
        back = {own: shared for shared, own in self.nodes.items()}
        return lambda name, i, j: given(name, back[i], back[j])


class Singles:
    """The single combinations of a merged structure."""

    def __init__(
        self,
        guarded: Guarded,
        structure_of: Callable[[tuple[Path, ...]], tuple[Structure, list[Choice]]],
    ) -> None:
        self.guarded = guarded
        self.structure_of = structure_of
        self.known: dict[object, tuple[Structure, dict[Uid, Uid]]] = {}
        self.solvers: dict[object, Prepared] = {}

    def project(self, taken: dict[int, int], candidate: Candidate) -> Single:
        """The execution with these alternatives of the threads and these options."""
        paths = tuple(j.alternatives[taken[j.path.thread]] for j in self.guarded.threads)
        s, plain = self.structure_of(paths)
        names = {shared: own for j in self.guarded.threads for own, shared in j.names[taken[j.path.thread]].items()}
        nodes = self._nodes(s, names)
        met = [
            self._mapped(self.guarded.choices[k].options[o], nodes, names)
            for k, o in enumerate(candidate)
            if self.guarded.choices[k].kind in ("phase", "barrier")
        ]
        kinds = [c.kind for c in self.guarded.choices if c.kind in ("phase", "barrier")]
        plain += [Choice(kind, [option], rank=1) for kind, option in zip(kinds, met, strict=True)]
        key = (tuple(sorted(taken.items())), tuple(met))
        prepared = self.solvers.get(key)
        if prepared is None:
            prepared = self.solvers[key] = Prepared(self.guarded.tape, s, plain, self.guarded.deadline)
        if not prepared.possible:
            raise InternalError("the solver's execution is impossible on its paths")
        sources = self._sources(candidate)
        out = []
        for choice in prepared.choices:
            if choice.kind in ("phase", "barrier"):
                out.append(0)
                continue
            back = {own: shared for shared, own in nodes.items()}
            if choice.kind == "rf":
                wanted = nodes[sources["rf", back[choice.node]]]
            else:
                wanted = self._last(s, choice.address, sources, nodes)
            out.append(next(o for o, option in enumerate(choice.options) if option.source == wanted))
        return Single(prepared, tuple(out), nodes)

    def _sources(self, candidate: Candidate) -> dict[tuple[str, int], int]:
        """The writes that are read or last, in the merged structure."""
        found = {}
        for choice, o in zip(self.guarded.choices, candidate, strict=True):
            if choice.kind in ("rf", "final") and o >= 0:
                found[choice.kind, choice.node if choice.kind == "rf" else choice.address] = choice.options[o].source
        return found

    def _last(self, s: Structure, address: int, sources: dict[tuple[str, int], int], nodes: dict[int, int]) -> int:
        """The last write of a chunk; bytes that no access of the paths divides may be parts of a larger chunk."""
        whole = self.guarded.s.chunks(address, 1)[0][0]
        shared = sources["final", whole]
        node = self.guarded.s.nodes[shared]
        return s.writes[address][0] if node.source is None else nodes[shared]

    def _nodes(self, s: Structure, names: dict[Uid, Uid]) -> dict[int, int]:
        """A map from nodes of the merged structure to those of the combination."""
        found: dict[int, int] = {}
        for node in self.guarded.s.nodes:
            if node.source is None:
                if node.address in s.writes and s.chunk_size[node.address] == node.size:
                    found[node.index] = s.writes[node.address][0]
            elif node.source.uid in names:
                for i in s.nodes_of[names[node.source.uid]]:
                    if s.nodes[i].address == node.address:
                        found[node.index] = i
        return found

    @staticmethod
    def _mapped(option: Option, nodes: dict[int, int], names: dict[Uid, Uid]) -> Option:
        """An option on the events of the combination."""
        edges = tuple(
            (name, tuple((nodes[i], nodes[j]) for i, j in pairs if i in nodes and j in nodes))
            for name, pairs in option.edges
        )
        misstep = option.misstep
        return Option(
            edges,
            results=tuple((names[u], v) for u, v in option.results),
            misstep=None if misstep is None else (misstep[0], misstep[1], names[misstep[2]]),
            remarks=tuple((code, text, names[u]) for code, text, u in option.remarks),
            phases=tuple((names[u], phase) for u, phase in option.phases),
            beliefs=tuple((names[u], belief) for u, belief in option.beliefs),
        )


def divides_alike(s: Structure, threads: list[Joined]) -> bool:
    """Whether every access is divided into the same chunks as on any combination: by accesses that exist whenever it
    does.
    """
    edges: dict[int, list[tuple[int, Uid]]] = {}
    masks = {uid: (mask, j.all_mask) for j in threads for uid, mask in j.masks.items()}
    for joined in threads:
        for e in joined.path.events:
            if e.size:
                for x in (e.address, e.address + e.size):
                    edges.setdefault(x, []).append((joined.path.thread, e.uid))
    for joined in threads:
        for e in joined.path.events:
            for start, _ in s.chunks(e.address, e.size)[1:] if e.size else ():
                mask = masks[e.uid][0]
                if not any(
                    masks[u][0] == masks[u][1] or (t == joined.path.thread and not mask & ~masks[u][0])
                    for t, u in edges.get(start, ())
                ):
                    return False
    return True
