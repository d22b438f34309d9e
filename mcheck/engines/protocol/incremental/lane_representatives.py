"""Whether one thread stands for all lanes of an agent that only reads and meets others.

The lanes of an agent take the same steps, so that two of them may change places in an execution, and nothing but their
names changes. For such an agent, *folding* is to take the event of a hidden lane for that of the shown one in the same
step. What a relation holds of shown events is found without the hidden ones if every way through a hidden event folds
to a way through a shown one. Along a way there are three kinds of edges at a hidden event: from or to another agent
(the lanes change places: the shown event has that edge as well), within the hidden lane (likewise), and from or to
another lane of the same agent. Only of the last kind something has to be known: that an edge from an event of one lane
to one of another leads to the latter's counterpart in the first lane as well (the relation *folds*). Arrivals at a
barrier do so, which lead to the resumptions of all; that two events are of different threads does not.

With all flags and axioms found so, what is flagged about a hidden event is flagged about the shown one. What is left
are flags about two lanes of the agent: the sets that the events of such an agent are never in have to rule them out.

All of this is read off the tape of the model, definition by definition; for a model that does not allow it two threads
stand for all, as for agents that write.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mcheck.cat.algebra.compiled_models import once_per_tape
from mcheck.cat.algebra.tape import Instr, Tape
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.incremental.kinds import is_set

NEVER = frozenset(
    (
        Tag.W, Tag.RMW, Tag.ATOM, Tag.RED, Tag.SC, Tag.TMAP, Tag.ISSUE, Tag.COMPLETE, Tag.INIT, Tag.INVAL, Tag.SIGNAL,
        Tag.INCREMENT, Tag.ASYNCSIGNAL, Tag.SIGNALLED, Tag.CPASYNC, Tag.ASYNCREDUCTION, Tag.WGMMA, Tag.WGFENCE,
        Tag.PIPE, Tag.COMMIT, Tag.GROUPWAIT, Tag.MBARRIER_INIT_FENCE, Tag.MEET, Tag.MET,
    )
)  # fmt: skip
"""What no event of such an agent is (``mcheck.engines.protocol.analysis.representative_lanes``)."""

WITHIN = frozenset(("po", "rmw", "addr", "data", "issue", "si", "same-access", "id", "int", "regardless"))
"""Base relations of events of one thread."""
ELSEWHERE = frozenset(("rf", "co", "sync_fence", "meet"))
"""Those that none of its events is in: a followed access, fence.sc, a meeting that orders nothing."""
FOLDED = frozenset(("ctrl", "barrier", "exited", "rounds", "phase", "phase-order", "phase-fr"))
"""Those that the lanes of an agent have in common, whoever of them it is."""
ALIKE = frozenset(
    (
        "loc", "overlap", "vloc", "complete-overlap", "sr", "scta", "scluster", "sgpu", "sblock", "mbarrier-object",
        "outlived", "own-outlived", "unborn", "covers", "object-access",
    )
)  # fmt: skip
"""Those that no two lanes of an agent are told apart by."""

SAME, ACROSS, OUT, IN, REST = 1, 2, 4, 8, 16
"""Pairs of events: of one lane of the agent, of two of its lanes, from it to others, from others to it, of others."""
ALL = SAME | ACROSS | OUT | IN | REST


@dataclass(frozen=True, slots=True)
class Held:
    """What is known of a node: the pairs that may be in it; whether it ``folds``; whether it ``spreads``, leads from an
    event to all lanes of the agent if it leads to the own one; whether it is found without the hidden events.
    """

    pairs: int
    folds: bool = True
    spreads: bool = True
    exact: bool = True


@once_per_tape
def lanes_are_representable(tape: Tape) -> bool:
    """Whether nothing is lost with one thread of an agent whose events are in none of the sets of ``NEVER``."""
    held = _held(tape)
    return all(held[a.node].exact and not (a.role == "flag" and held[a.node].pairs & ACROSS) for a in tape.axioms)


def _held(tape: Tape) -> list[Held]:
    """What is known of each node; recursive definitions grow from nothing."""
    nothing = Held(0)
    held = [nothing] * len(tape.code)
    while True:
        before = list(held)
        for n, i in enumerate(tape.code):
            if i.op != "rec":
                held[n] = _of(i, *(held[x] if x >= 0 else nothing for x in (i.a, i.b)))
        for group in tape.groups:
            for v, body, what in group:
                if what == 0:
                    held[v] = held[body]
        if held == before:
            return held


def _of(i: Instr, a: Held, b: Held) -> Held:
    match i.op:
        case "empty":
            return Held(0)
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
            return _settled(Held(ALL, a.spreads, a.folds, a.exact))
        case "compset":
            return _within(SAME | REST, exact=a.exact)
        case "inv":
            turned = a.pairs & (SAME | ACROSS | REST) | (OUT if a.pairs & IN else 0) | (IN if a.pairs & OUT else 0)
            return _settled(Held(turned, a.folds, False, a.exact))
        case "opt":
            return _settled(replace(a, pairs=a.pairs | SAME | REST, spreads=False))
        case "plus" | "star":
            more = _followed(a.pairs, a.pairs)
            pairs = a.pairs | more | _followed(more, a.pairs)
            pairs |= _followed(pairs, pairs)
            pairs |= SAME | REST if i.op == "star" else 0
            return _settled(Held(pairs, a.folds, False, a.exact and a.folds))
        case "seq":
            folds = a.folds and b.folds
            return _settled(Held(_followed(a.pairs, b.pairs), folds, False, a.exact and b.exact and folds))
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
            return Held(pairs, exact=a.exact and b.exact)
        case _:
            return Held(ALL, folds=False, spreads=False, exact=False)
    return _settled(Held(pairs, a.folds and b.folds, a.spreads and b.spreads, a.exact and b.exact))


def _settled(held: Held) -> Held:
    """What of two lanes is never in a relation need not fold; what is in one lane never in it need not spread."""
    return replace(
        held,
        folds=held.folds or not held.pairs & ACROSS,
        spreads=held.spreads or not held.pairs & SAME,
    )


def _within(pairs: int, *, exact: bool = True) -> Held:
    """A relation of events of one thread, or a set: it leads to no other lane."""
    return _settled(Held(pairs, spreads=False, exact=exact))


def _followed(a: int, b: int) -> int:
    """The pairs that come of one after the other: between them there is an event of the agent or another one."""
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


def _base(name: str) -> Held:
    if is_set(name):
        return _within(REST if name in NEVER else SAME | REST)
    if name in WITHIN:
        return _within(SAME | REST)
    if name in ELSEWHERE:
        return Held(REST)
    if name == "complete":  # from an access of an asynchronous operation
        return Held(IN | REST)
    if name == "object-access":  # accesses of such an agent meet no object
        return Held(OUT | IN | REST)
    if name in FOLDED:
        return Held(ALL, spreads=False)
    if name in ALIKE:
        return Held(ALL)
    return Held(ALL, folds=False, spreads=False)
