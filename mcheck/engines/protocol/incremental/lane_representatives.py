"""Decision whether one thread can represent all lanes of an agent that only reads and synchronises.

The lanes of an agent take the same steps, so exchanging two of them in an execution changes nothing but their names.
For such an agent, *folding* replaces the event of a hidden lane by that of the shown one in the same step. What a
relation holds of shown events is found without the hidden ones if every path through a hidden event folds to a path
through a shown one. Along a path there are three kinds of edges at a hidden event: from or to another agent (exchange
the lanes: the shown event has that edge as well), within the hidden lane (likewise), and from or to another lane of the
same agent. Only for the last kind something has to be known: that an edge from an event of one lane to one of another
also leads to the latter's counterpart in the first lane (the relation *folds*). Arrivals at a barrier do so, which lead
to the resumptions of all; that two events are of different threads does not.

If all flags and axioms are found in this way, whatever is flagged about a hidden event is flagged about the shown one.
What remains are flags about two lanes of the agent: the sets that never contain events of such an agent have to rule
them out.

All of this is derived from the tape of the model, definition by definition; for a model that does not allow it two
threads represent all, as for agents that write.
"""

from __future__ import annotations

from mcheck.base.records import dataclass, replace
from mcheck.cat.algebra.compiled_models import once_per_tape
from mcheck.cat.algebra.tape import Instr, Tape
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.incremental.kinds import is_set

ABSENT_SETS = frozenset(
    (
        Tag.W, Tag.RMW, Tag.ATOM, Tag.RED, Tag.SC, Tag.TMAP, Tag.ISSUE, Tag.COMPLETE, Tag.INIT, Tag.INVAL, Tag.SIGNAL,
        Tag.INCREMENT, Tag.ASYNCSIGNAL, Tag.SIGNALLED, Tag.CPASYNC, Tag.ASYNCREDUCTION, Tag.WGMMA, Tag.WGFENCE,
        Tag.PIPE, Tag.COMMIT, Tag.GROUPWAIT, Tag.PROXYWAIT, Tag.MBARRIER_INIT_FENCE, Tag.MEET, Tag.MET,
    )
)  # fmt: skip
"""Sets that contain no event of such an agent (``mcheck.engines.protocol.analysis.representative_lanes``)."""

SAME_THREAD = frozenset(("po", "rmw", "addr", "data", "issue", "si", "same-access", "id", "int", "regardless"))
"""Base relations between events of one thread."""
ABSENT_RELATIONS = frozenset(("rf", "co", "sync_fence", "meet"))
"""Relations that none of its events is in: a tracked access, fence.sc, a collective that orders nothing."""
LANE_INVARIANT = frozenset(("ctrl", "barrier", "exited", "rounds", "phase", "phase-order", "phase-fr"))
"""Relations that are the same for all lanes of an agent."""
LANE_INDEPENDENT = frozenset(
    (
        "loc", "overlap", "vloc", "complete-overlap", "sr", "scta", "scluster", "sgpu", "sblock", "mbarrier-object",
        "outlived", "own-outlived", "unborn", "covers", "object-access",
    )
)  # fmt: skip
"""Relations that do not distinguish two lanes of an agent."""

SAME, ACROSS, OUT, IN, REST = 1, 2, 4, 8, 16
"""Pairs of events: of one lane of the agent, of two of its lanes, from it to others, from others to it, of others."""
ALL = SAME | ACROSS | OUT | IN | REST


@dataclass(frozen=True, slots=True)
class LaneFacts:
    """Facts about a node.

    ``pairs``: the pairs that may be in it; ``folds``; ``spreads``: an edge from an event to its own lane exists to all
    lanes of the agent; ``exact``: it is found without the hidden events.
    """

    pairs: int
    folds: bool = True
    spreads: bool = True
    exact: bool = True


@once_per_tape
def lanes_are_representable(tape: Tape) -> bool:
    """Return whether one thread suffices for an agent whose events are in none of ``ABSENT_SETS``."""
    held = _find_lane_facts(tape)
    return all(held[a.node].exact and not (a.role == "flag" and held[a.node].pairs & ACROSS) for a in tape.checks)


def _find_lane_facts(tape: Tape) -> list[LaneFacts]:
    """Return the facts about each node; recursive definitions grow from the empty relation."""
    nothing = LaneFacts(0)
    held = [nothing] * len(tape.code)
    while True:
        before = list(held)
        for n, i in enumerate(tape.code):
            if i.op != "rec":
                held[n] = _combine(i, *(held[x] if x >= 0 else nothing for x in (i.a, i.b)))
        for group in tape.groups:
            for v, body, what in group:
                if what == 0:
                    held[v] = held[body]
        if held == before:
            return held


def _combine(i: Instr, a: LaneFacts, b: LaneFacts) -> LaneFacts:
    match i.op:
        case "empty":
            return LaneFacts(0)
        case "base":
            return _base(i.name)
        case "or":
            pairs = a.pairs | b.pairs
        case "and":
            pairs = a.pairs & b.pairs
        case "sub":
            b = replace(b, folds=b.spreads or not b.pairs & SAME, spreads=b.folds or not b.pairs & ACROSS)
            pairs = a.pairs
        case "comp":
            return _simplify(LaneFacts(ALL, a.spreads, a.folds, a.exact))
        case "compset":
            return _within(SAME | REST, exact=a.exact)
        case "inv":
            turned = a.pairs & (SAME | ACROSS | REST) | (OUT if a.pairs & IN else 0) | (IN if a.pairs & OUT else 0)
            return _simplify(LaneFacts(turned, a.folds, False, a.exact))
        case "opt":
            return _simplify(replace(a, pairs=a.pairs | SAME | REST, spreads=False))
        case "plus" | "star":
            more = _compose_pairs(a.pairs, a.pairs)
            pairs = a.pairs | more | _compose_pairs(more, a.pairs)
            pairs |= _compose_pairs(pairs, pairs)
            pairs |= SAME | REST if i.op == "star" else 0
            return _simplify(LaneFacts(pairs, a.folds, False, a.exact and a.folds))
        case "seq":
            folds = a.folds and b.folds
            return _simplify(LaneFacts(_compose_pairs(a.pairs, b.pairs), folds, False, a.exact and b.exact and folds))
        case "dom" | "rng":
            pairs = (SAME if a.pairs & (SAME | ACROSS | (OUT if i.op == "dom" else IN)) else 0) | (
                REST if a.pairs & (REST | (IN if i.op == "dom" else OUT)) else 0
            )
            return _within(pairs, exact=a.exact and a.folds)
        case "prod":
            mine, theirs = a.pairs & SAME, b.pairs & SAME
            pairs = (
                (SAME | ACROSS if mine and theirs else 0)
                | (OUT if mine and b.pairs & REST else 0)
                | (IN if theirs and a.pairs & REST else 0)
                | (REST if a.pairs & REST and b.pairs & REST else 0)
            )
            return LaneFacts(pairs, exact=a.exact and b.exact)
        case _:
            return LaneFacts(ALL, folds=False, spreads=False, exact=False)
    return _simplify(LaneFacts(pairs, a.folds and b.folds, a.spreads and b.spreads, a.exact and b.exact))


def _simplify(held: LaneFacts) -> LaneFacts:
    """Relations without pairs of two lanes need not fold; those without pairs in one lane need not spread."""
    return replace(
        held,
        folds=held.folds or not held.pairs & ACROSS,
        spreads=held.spreads or not held.pairs & SAME,
    )


def _within(pairs: int, *, exact: bool = True) -> LaneFacts:
    """Facts about a relation within one thread, or a set: it leads to no other lane."""
    return _simplify(LaneFacts(pairs, spreads=False, exact=exact))


def _compose_pairs(a: int, b: int) -> int:
    """Return the pairs of a composition: the event in between belongs to the agent or to another one."""
    inside = SAME | ACROSS
    out = 0
    for first, then, what in (
        (SAME, SAME, SAME), (SAME, ACROSS, ACROSS), (ACROSS, SAME, ACROSS), (ACROSS, ACROSS, inside),
        (inside, OUT, OUT), (OUT, REST, OUT), (OUT, IN, inside), (IN, inside, IN), (REST, IN, IN), (IN, OUT, REST),
        (REST, REST, REST),
    ):  # fmt: skip
        if a & first and b & then:
            out |= what
    return out


def _base(name: str) -> LaneFacts:
    if is_set(name):
        return _within(REST if name in ABSENT_SETS else SAME | REST)
    if name in SAME_THREAD:
        return _within(SAME | REST)
    if name in ABSENT_RELATIONS:
        return LaneFacts(REST)
    if name == "complete":  # from an access of an asynchronous operation
        return LaneFacts(IN | REST)
    if name == "object-access":  # accesses of such an agent meet no object
        return LaneFacts(OUT | IN | REST)
    if name in LANE_INVARIANT:
        return LaneFacts(ALL, spreads=False)
    if name in LANE_INDEPENDENT:
        return LaneFacts(ALL)
    return LaneFacts(ALL, folds=False, spreads=False)
