"""What an assignment of the operations on an mbarrier to phases (``mcheck.events.choices.mbarrier_phases``) says of an
execution.

It gives the base relations

* ``phase``: arrive or complete-tx -> waits that saw its phase complete; of an undefined init, the inits before it -> it
  -> what would come behind it;
* ``phase-order``: operations of earlier phases -> later ones; inside a phase what has to come in this order for the
  phases to be these (see ``phases.decides``); an undefined operation -> what its thread does by its answer;
* ``phase-fr``: a wait -> what completes the phase that it found incomplete, or invalidates the object that it found;
* ``complete``: memory operations of an asynchronous operation -> waits that observe it.
"""

from __future__ import annotations

from mcheck.base.phrase import Phrase
from mcheck.base.records import dataclass
from mcheck.events.choices.candidate import Option
from mcheck.events.choices.mbarrier_tokens import Belief
from mcheck.events.event import Event
from mcheck.events.structure import Structure
from mcheck.semantics import mbarrier as machine
from mcheck.semantics.terms import Uid

SIGNALS = frozenset({"arrive", "drop", "complete", "async-arrive"})
"""Operations that wait for nothing and for which others wait."""

Members = list[tuple[Event, int]]
"""The operations on one object with their nodes."""


@dataclass(slots=True)
class Record:
    """The outcome of a step: the phase in which it counted, its result, whether it completed that phase.

    ``life`` counts the objects that the memory held one after the other: each mbarrier.init begins one. ``before`` are
    the operations of its phase that came before one that ``decides``.
    """

    phase: int
    result: int | None
    completed: bool
    invalidated: bool = False
    life: int = 0
    waits: bool = False
    before: frozenset[Uid] | None = None
    left: machine.State | None = None
    """What an object was when it was invalidated."""

    @property
    def when(self) -> tuple[int, int]:
        """Its time, as given by phases."""
        return self.life, self.phase

    def saw(self, signal: Record) -> bool:
        """Whether this wait observed the completion of a signal's phase."""
        return self.life == signal.life and signal.phase < self.phase


def option_of(
    s: Structure,
    members: Members,
    records: dict[Uid, Record],
    misuse: tuple[str, str | Phrase, Uid] | None,
    beliefs: dict[Uid, Belief],
) -> Option:
    """The base relations of an assignment."""
    taken = [(e, n, records[e.uid]) for e, n in members if e.uid in records]
    pending = [n for e, n in members if e.uid not in records]
    waits = [(e, n, r) for e, n, r in taken if e.mbarrier and e.mbarrier.kind == "wait"]
    acts = [(e, n, r) for e, n, r in taken if e.mbarrier and e.mbarrier.kind != "wait"]
    signals = [(e, n, r) for e, n, r in acts if e.mbarrier and e.mbarrier.kind in SIGNALS]
    phase, order, fr, complete = [], [], [], []
    for _, n, r in acts:
        order += [(n, m) for _, m, q in acts if m != n and r.when < q.when]
        order += [(n, m) for _, m, q in waits if r.when < q.when]
        order += [(n, m) for m in pending]
    for decisive, n, r in acts:
        if r.before is None:
            continue
        inside = [(e, m) for e, m, q in acts if q.when == r.when and e is not decisive]
        order += [(m, n) if e.uid in r.before else (n, m) for e, m in inside]
    tracked: dict[Uid, list[int]] = {}
    for path in s.paths:
        for memory, signal in path.tracked:
            if signal in records:
                tracked.setdefault(signal, []).extend(s.nodes_of[memory])
    if misuse is not None:
        culprit = [(e, n) for e, n in members if e.uid == misuse[2] and e.uid not in records]
        order += [(n, m) for _, n in culprit for m in pending if m != n]
        order += [(n, m) for e, n in culprit for m in find_dependent_operations(s, e) if m not in pending]
        # nothing waits for an init, says the model: but one that is undefined is so by those before it, and what would
        # stand behind it has not come to be
        for n in (n for e, n in culprit if _is_init(e)):
            phase += [(n, m) for m in pending if m != n] + [(m, n) for e, m, _ in acts if _is_init(e)]
    for _, w, q in waits:
        fr += [(w, n) for _, n, r in acts if r.when > q.when or (r.when == q.when and (r.completed or r.invalidated))]
        if q.result:
            phase += [(n, w) for _, n, r in signals if q.saw(r)]
            complete += [(m, w) for e, _, r in signals if q.saw(r) for m in tracked.get(e.uid, ())]
        order += [(w, m) for m in pending]
    edges = (("phase", phase), ("phase-order", order), ("phase-fr", fr), ("complete", complete))
    results = tuple((e.uid, r.result) for e, _, r in taken if r.result is not None)
    return Option(
        tuple((name, tuple(pairs)) for name, pairs in edges if pairs),
        results=results,
        misstep=misuse,
        remarks=() if misuse else _unwaited(taken),
        phases=tuple((e.uid, r.phase) for e, _, r in taken),
        beliefs=tuple(beliefs.items()),
    )


def _is_init(event: Event) -> bool:
    return event.mbarrier is not None and event.mbarrier.kind == "init"


def find_dependent_operations(s: Structure, event: Event) -> list[int]:
    """The operations on mbarriers that wait for what an operation answers. Where it is undefined its thread stops, so
    that what has come before it in the life of its object owes nothing to these.
    """
    return [
        node.index
        for node in s.nodes
        if node.source is not None
        and node.source.mbarrier is not None
        and event.uid in node.source.ctrl | node.source.addr | node.source.data
    ]


def _unwaited(taken: list[tuple[Event, int, Record]]) -> tuple[tuple[str, str | Phrase, Uid], ...]:
    """Phases for which no wait returned true although an arrive of the next phase follows (9.7.13.15.4)."""
    seen = {(r.life, r.phase - 1) for e, _, r in taken if e.mbarrier and e.mbarrier.kind == "wait" and r.result}
    out = []
    for e, _, r in taken:
        if (
            e.mbarrier
            and e.mbarrier.kind in ("arrive", "drop", "async-arrive")
            and r.phase > 0
            and (r.life, r.phase - 1) not in seen
        ):
            seen.add((r.life, r.phase - 1))
            text = f"arrives in phase {r.phase} although no wait has returned true for phase {r.phase - 1}"
            out.append(("UB212", text, e.uid))
    return tuple(out)
