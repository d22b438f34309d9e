"""Which waits of a deadlock are its cause: the others only wait for threads that are stuck at these.

All engines ask here, with what they know of each stuck thread: its wait, and the code that it has still to execute.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mcheck.base.records import dataclass
from mcheck.effects.site import widened
from mcheck.ir import ops
from mcheck.ir.expr import Const, Expr
from mcheck.ir.ops import Op
from mcheck.ir.program import Place, Thread

Target = tuple[str, int]
"""What a thread tests: ``mbarrier`` or ``word``, and the address."""
Meeting = tuple[object, ...]
"""Where threads wait for each other: the kind of the place, and what tells it from others."""


@dataclass(frozen=True, slots=True)
class Steps:
    """What the code of a thread does for others, with the place of each: the mbarriers that it signals and the words
    that it writes, its barriers, its halves of cluster barriers; and its branches, with where they lead.
    """

    signals: tuple[tuple[int, Target], ...]
    barriers: tuple[tuple[int, Expr | None], ...]
    cluster_halves: tuple[tuple[int, str], ...]
    branches: tuple[tuple[int, int], ...]

    @staticmethod
    def create(thread: Thread) -> Steps:
        """The steps of a thread's code."""
        code = [(at, ops.performed_operation(op)) for at, op in enumerate(thread.code)]
        return Steps(
            signals=tuple((at, target) for at, op in code if (target := _signal(op)) is not None),
            barriers=tuple((at, op.barrier) for at, op in code if isinstance(op, ops.Barrier)),
            cluster_halves=tuple((at, op.kind) for at, op in code if isinstance(op, ops.ClusterBarrier)),
            branches=tuple((at, thread.labels[op.target]) for at, op in code if isinstance(op, ops.Branch)),
        )

    def first_to_come(self, pc: int) -> int:
        """The first place that is still to come behind this one: that after it, or the head of a loop around it."""
        first = pc + 1
        while (start := min([first, *(head for at, head in self.branches if at >= first)])) < first:
            first = start
        return first


@dataclass(frozen=True, slots=True)
class StuckThread:
    """A thread, or lanes that execute as one, that waits forever: the ``code`` of the deadlock at this wait, the
    operation, what it ``tests`` if that is memory, and whether its code still signals or comes to something.
    """

    places: tuple[Place, ...]
    op: Op
    code: str
    tests: frozenset[Target]
    signals: frozenset[Target]
    barriers: frozenset[Expr | None]
    arrived: bool

    @staticmethod
    def create(
        threads: Sequence[Thread], steps: Steps, pc: int, op: Op, code: str, tests: Iterable[Target]
    ) -> StuckThread:
        """The description of threads that are stuck at this place in their code, of which these are the ``steps``."""
        first = steps.first_to_come(pc)
        halves = [kind for at, kind in steps.cluster_halves if at >= first]
        return StuckThread(
            tuple(t.place for t in threads),
            ops.performed_operation(op),
            code,
            frozenset(tests),
            signals=frozenset(target for at, target in steps.signals if at >= first),
            barriers=frozenset(barrier for at, barrier in steps.barriers if at >= first),
            arrived=halves[:1] == ["wait"],
        )

    @property
    def meeting(self) -> Meeting | None:
        """Where the thread waits for others to come, if it does."""
        place, op = self.places[0], self.op
        match op:
            case _ if self.tests:
                return None
            case ops.ClusterBarrier():
                return "cluster", place.cta.gpu, place.cta.cluster
            case ops.Barrier():
                return "bar", place.cta.number, op.barrier
            case ops.WaitGroup():
                return "warpgroup", place.warpgroup
        return "warp", place.own_warp, type(op), op.text

    def needs(self, other: StuckThread) -> bool:
        """Whether another stuck thread would have to go on first: it has still to signal, or to come. Nothing is to be
        hoped for from those that wait for the same.
        """
        if self.tests:
            return not self.tests & other.tests and bool(self.tests & other.signals)
        if self.meeting == other.meeting:
            return False
        one, two = self.places[0], other.places[0]
        match self.op:
            case ops.ClusterBarrier():
                same = (one.cta.gpu, one.cta.cluster) == (two.cta.gpu, two.cta.cluster)
                return same and not other.arrived
            case ops.Barrier(count=None):
                return one.cta == two.cta
            case ops.Barrier(barrier=number):
                comes = number in other.barriers or any(not isinstance(b, Const) for b in other.barriers)
                return one.cta == two.cta and comes
            case ops.WaitGroup():
                return one.warpgroup == two.warpgroup
            case ops.WarpSync(mask=Const(mask)) | ops.Collective(mask=Const(mask)):
                return one.own_warp == two.own_warp and any(mask >> p.lane & 1 for p in other.places)
        return one.own_warp == two.own_warp

    @property
    def kind(self) -> tuple[object, ...]:
        """What it has in common with others that the same threads need, and that need the same."""
        mask = self.op.mask if isinstance(self.op, ops.WarpSync | ops.Collective) else None
        rest = self.signals, self.barriers, self.arrived
        return self.places[0].own_warp, self.code, self.tests, self.meeting, mask, getattr(self.op, "count", None), rest


@dataclass(frozen=True, slots=True)
class Causes:
    """The stuck threads that are the cause, and those that others need to go on, by index."""

    roots: frozenset[int]
    needed: frozenset[int]


def find_causes(stuck: Sequence[StuckThread]) -> Causes:
    """Find the causes of a deadlock of these threads."""
    kinds: dict[object, list[int]] = {}
    for k, thread in enumerate(stuck):
        kinds.setdefault(thread.kind, []).append(k)
    groups = list(kinds.values())
    firsts = [stuck[group[0]] for group in groups]
    needs = [{k for k, other in enumerate(firsts) if other is not one and one.needs(other)} for one in firsts]
    of = frozenset[int]
    return Causes(
        roots=of(k for g in find_roots(needs) for k in groups[g]),
        needed=of(k for g in frozenset[int]().union(*needs) for k in groups[g]),
    )


def find_roots(needs: Sequence[Collection[int]]) -> frozenset[int]:
    """The waits from which no chain of needs leads to one that does not lead back: those that need no other one, and
    the cycles. ``needs`` has for each wait those whose threads would have to go on first.
    """
    reached = [_reach(needs, k) for k in range(len(needs))]
    return frozenset(k for k, others in enumerate(reached) if all(k in reached[other] for other in others - {k}))


def _reach(needs: Sequence[Collection[int]], start: int) -> set[int]:
    found: set[int] = set()
    left = list(needs[start])
    while left:
        k = left.pop()
        if k not in found:
            found.add(k)
            left += needs[k]
    return found


def find_signal(code: Iterable[Op], address: int, *, mbarrier: bool) -> Op | None:
    """The first operation that signals the mbarrier, or writes the word, at a constant address."""
    target = "mbarrier" if mbarrier else "word", widened(address)
    return next((op for op in code if _signal(op) == target), None)


def _signal(op: Op) -> Target | None:
    """The mbarrier that an operation signals, or the word that it writes, at a constant address."""
    address = op.address if isinstance(op, ops.ScalarWrite) else ops.mbarrier_of(op) if op.facets.signals else None
    if not isinstance(address, Const):
        return None
    return "word" if isinstance(op, ops.ScalarWrite) else "mbarrier", widened(address.value)
