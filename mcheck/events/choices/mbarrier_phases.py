"""Assignments of mbarrier operations to phases, as the state machine admits them.

The machine is ``mcheck.semantics.mbarrier``. Orders that put every operation into the same phase and give every wait
the same answer are one assignment, found once: two adjacent operations are swapped only if that changes the state or
an answer (sleep sets). That is for the few threads of a litmus test; whole warps on one object are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import field
from functools import partial
from itertools import product

from mcheck.base.errors import Unsupported
from mcheck.base.phrase import Phrase
from mcheck.base.records import dataclass
from mcheck.cat.tags import Tag
from mcheck.events.choices import mbarrier_tokens
from mcheck.events.choices.candidate import Choice, single_event
from mcheck.events.choices.mbarrier_tokens import Belief
from mcheck.events.choices.phase_assignment import Members, Record, option_of
from mcheck.events.event import Event, MbarrierStep
from mcheck.events.structure import Structure
from mcheck.findings.undefined_effects import continues_after
from mcheck.ir.ops import Op
from mcheck.semantics import mbarrier as machine
from mcheck.semantics.mbarrier_states import copied_value
from mcheck.semantics.terms import Term, Uid, evaluate
from mcheck.semantics.undefined import Misuse

MAX_OPTIONS = 20_000
MAX_STEPS = 100_000
MAX_SEQUENCES = 16


@dataclass(frozen=True, slots=True)
class Step:
    """An operation: its event and node, its sequence (a thread's program order, or its own), what must come before."""

    event: Event
    node: int
    what: MbarrierStep
    sequence: int
    after: tuple[tuple[int, int], ...]  # other sequences, and how many of their steps must have been taken
    allowed: frozenset[int] | None  # results that the path admits
    last: bool  # a wait that never succeeds: taken when all else is done
    first: bool = False  # an init that no thread can have waited for something before
    supposes: bool = False  # a wait that has to suppose what its state is


@dataclass(slots=True)
class _Search:
    steps: list[list[Step]]
    deadline: Callable[[], None]
    goes_on: Callable[[str, Op], bool]
    found: dict[object, tuple[dict[Uid, Record], tuple[str, str | Phrase, Uid] | None, dict[Uid, Belief]]] = field(
        default_factory=dict
    )
    budget: int = MAX_STEPS


Machine = machine.State | None
Supposition = Belief | Uid
"""A belief; or the arrive that will return the state, of a wait that finds the object as it was before."""
Beliefs = dict[Uid, Supposition]
_Position = tuple[int, ...]


def choices(
    s: Structure, stuck: frozenset[Uid] = frozenset(), deadline: Callable[[], None] = lambda: None
) -> list[Choice] | None:
    """One choice per mbarrier object, ``None`` if some object admits no assignment. ``deadline`` raises when time is
    up.
    """
    objects = members_of(s)
    if not objects:
        return []
    allowed = allowed_results(s)
    out = []
    for members in objects:
        sequences = sequences_of(s, members, allowed, stuck)
        if len(sequences) > MAX_SEQUENCES:
            raise Unsupported(f"an mbarrier that {len(sequences)} threads and copies use: too wide for this engine")
        search = _Search(sequences, deadline, partial(continues_after, s.program))
        _explore(search, tuple(0 for _ in search.steps), None, -1, {}, {}, frozenset())
        if not search.found:
            return None
        options = [option_of(s, members, *found) for found in search.found.values()]
        out.append(Choice("phase", options, rank=1))
    return out


def members_of(s: Structure) -> list[Members]:
    """The operations on each mbarrier object."""
    by_address: dict[int, Members] = {}
    for node in s.nodes:
        if node.source is not None and node.source.mbarrier is not None:
            by_address.setdefault(node.source.mbarrier.address, []).append((node.source, node.index))
    return list(by_address.values())


def allowed_results(s: Structure) -> dict[Uid, frozenset[int]]:
    """For each wait, the results that the branches of its path admit."""
    out: dict[Uid, frozenset[int]] = {}
    for path in s.paths:
        for term, truth in path.constraints:
            uid = single_event(term)
            event = s.events.get(uid) if uid is not None else None
            if uid is None or event is None or event.mbarrier is None or event.mbarrier.kind != "wait":
                continue
            fits = frozenset(v for v in (0, 1) if bool(evaluate(term, lambda _, v=v: v)) is truth)  # type: ignore[misc]
            out[uid] = out.get(uid, frozenset((0, 1))) & fits
    return out


def sequences_of(
    s: Structure, members: list[tuple[Event, int]], allowed: dict[Uid, frozenset[int]], stuck: frozenset[Uid]
) -> list[list[Step]]:
    """The steps of each thread in program order, and by itself every asynchronous signal, and every look that outlasts
    what its thread does behind it.
    """
    sequences: list[list[Step]] = []
    of_thread: dict[int, int] = {}

    def add(event: Event, node: int, sequence: int, before: Iterable[Event]) -> None:
        if sequence == len(sequences):
            sequences.append([])
        needed: dict[int, int] = {}
        for earlier in before:
            other, place = places[earlier.uid]
            if other != sequence:
                needed[other] = max(place, needed.get(other, 0))
        assert event.mbarrier is not None
        late, first = event.uid in stuck, comes_first(s, event)
        step = Step(
            event, node, event.mbarrier, sequence, tuple(needed.items()), allowed.get(event.uid), late, first,
            mbarrier_tokens.is_supposed(s, event),
        )  # fmt: skip
        sequences[sequence].append(step)
        places[event.uid] = sequence, len(sequences[sequence])

    places: dict[Uid, tuple[int, int]] = {}
    ordered = [(event, node) for event, node in members if event.order is not None]
    for k, (event, node) in enumerate(ordered):
        thread = event.uid[0]
        behind = [e for e, _ in ordered[k + 1 :] if e.uid[0] == thread]
        if all(precedes(event, e) for e in behind):
            sequence = of_thread.setdefault(thread, len(sequences))
        else:
            sequence = len(sequences)
        add(event, node, sequence, [e for e, _ in ordered[:k] if e.uid[0] == thread and precedes(e, event)])
    for event, node in members:
        if event.order is None:
            assert event.issue is not None
            issue = s.events[event.issue].order or 0
            before = [e for e, _ in ordered if e.uid[0] == event.uid[0] and (e.order or 0) < issue]
            add(event, node, len(sequences), [e for e in before if precedes(e, event)])
    return sequences


def precedes(earlier: Event, later: Event) -> bool:
    """Whether of two operations on one object that which is earlier in program order comes first, whatever a model
    says; for an asynchronous signal its issue counts.

    A ``try_wait`` suspends, and what does not wait for its answer goes on: other operations on the object come before
    it then, but for the end of the object, and what stands behind an acquire fence. A signal comes before any look that
    does not decide that there is an issue (PTX ISA 8.9.1.1; open questions, Q29).
    """
    look, then = earlier.mbarrier, later.mbarrier
    assert look is not None and then is not None
    if look.kind != "wait" or earlier.uid in later.ctrl:
        return True
    if later.order is None:
        return False
    if not look.blocking or look.parity is None or look.fences != then.fences:
        return True
    return then.kind in ("init", "inval") or earlier.uid in later.addr | later.data


def comes_first(s: Structure, event: Event) -> bool:
    """Whether this is an init before which its thread observes nothing, so that no other thread's events precede it."""
    return (
        event.mbarrier is not None
        and event.mbarrier.kind == "init"
        and not any(
            e.uid[0] == event.uid[0] and e.order is not None and e.order < (event.order or 0) and LEARNS & e.tags
            for e in s.events.values()
        )
    )


LEARNS = frozenset({Tag.R, Tag.WAIT, Tag.BWAIT, Tag.GROUPWAIT, Tag.PROXYWAIT})
"""Events by which a thread learns of others."""


def _explore(
    search: _Search,
    at: _Position,
    state: Machine,
    life: int,
    records: dict[Uid, Record],
    beliefs: Beliefs,
    asleep: frozenset[int],
) -> None:
    """All assignments from here. ``life`` is the number of the object that the memory holds or held last."""
    search.budget -= 1
    if search.budget % 256 == 0:
        search.deadline()
    if search.budget < 0:
        raise Unsupported("too many orders of the operations on one mbarrier")
    enabled = _enabled(search, at)
    if not enabled:
        if all(p == len(q) for p, q in zip(at, search.steps, strict=True)):
            over = find_unannounced_bytes(records, state)
            if over is not None:
                late = [x.event.uid for q in search.steps for x in q if x.what.kind == "complete"]
                _note(search, records, over_delivery(over, late[-1]), beliefs)
            _note(search, records, None, beliefs)
        return
    if state is None and not any(r.invalidated for r in records.values()):
        inits = [k for k in enabled if search.steps[k][at[k]].what.kind == "init"]
        if any(search.steps[k][at[k]].first for k in inits):
            # what may come before such an initialisation is told by a flag of the model, from causality
            enabled = inits
    done: set[int] = set()
    for k in enabled:
        step = search.steps[k][at[k]]
        ways = [x for x in _supposed(search, step, records) if k not in asleep or isinstance(x, frozenset)]
        left = k in asleep
        for belief in ways:
            outcome = take_step(step, state, life, records, belief)
            if outcome is None:
                continue  # a blocking wait that is not satisfied yet
            left = True
            believed = {**beliefs, **list_beliefs(step, belief, outcome)}
            if isinstance(outcome, Misuse):
                _note(search, records, (outcome.code, outcome.message, step.event.uid), believed)
                if state is None or not search.goes_on(outcome.code, step.event.op):
                    continue
                outcome = state, record_without_effect(step.what, state, life)
            after, record = outcome
            sleeping = frozenset(j for j in done if j != k and _independent(search, at, state, life, records, j, k))
            now = tuple(p + 1 if j == k else p for j, p in enumerate(at))
            _explore(search, now, after, record.life, {**records, step.event.uid: record}, believed, sleeping)
        if left:
            done.add(k)


def _supposed(search: _Search, step: Step, records: dict[Uid, Record]) -> list[Supposition | None]:
    """What a wait may suppose its state to be; the last is that no arrive returned it."""
    if not step.supposes:
        return [None]
    given = returned_states(records)
    others = (x.event.uid for sequence in search.steps for x in sequence if _returns(x))
    to_come = [uid for uid in others if uid not in records and uid[0] != step.event.uid[0]]
    return [*given, *to_come, frozenset(given)]


def list_beliefs(step: Step, belief: Supposition | None, outcome: object) -> Beliefs:
    """The belief that an operation depends on: without an object, the state of a wait does not matter."""
    if belief is None or (isinstance(outcome, Misuse) and outcome.code != "UB210"):
        return {}
    return {step.event.uid: belief}


def returned_states(records: dict[Uid, Record]) -> list[int]:
    """The states that arrives have returned."""
    return list(dict.fromkeys(r.result for r in records.values() if r.result is not None and not r.waits))


def record_without_effect(what: MbarrierStep, state: machine.State, life: int) -> Record:
    """An operation that is undefined here, and that the file accepts: it leaves the object as it is, and a wait says
    no.
    """
    return Record(state.phase, 0 if what.kind == "wait" else None, False, life=life)


def find_unannounced_bytes(records: dict[Uid, Record], end: Machine) -> machine.State | None:
    """The first object, of the invalidated ones and the last one, that was left with bytes that were not announced."""
    left = (*(r.left for r in records.values()), end)
    return next((state for state in left if state is not None and state.tx < 0), None)


def over_delivery(state: machine.State, uid: Uid) -> tuple[str, str | Phrase, Uid]:
    """The misuse of an object that is left with bytes that were not announced."""
    return "UB216", f"{-state.tx} bytes completed in phase {state.phase} that nobody announced", uid


def _enabled(search: _Search, at: _Position) -> list[int]:
    out: list[int] = []
    late: list[int] = []
    for k, sequence in enumerate(search.steps):
        if at[k] < len(sequence):
            step = sequence[at[k]]
            if all(at[other] >= taken for other, taken in step.after):
                (late if step.last else out).append(k)
    return out or late


def take_step(
    step: Step, state: Machine, life: int, records: dict[Uid, Record], belief: Supposition | None = None
) -> tuple[Machine, Record] | Misuse | None:
    """(state after, record); a misuse; or ``None`` if the step cannot be taken now.

    ``belief`` is what a wait supposes its state to be.
    """
    what = step.what
    try:
        if what.kind == "init":
            if state is not None:
                raise Misuse("UB202", "mbarrier.init of memory that holds a valid mbarrier object", "9.7.13.15.9")
            return machine.init(what.count)[0], Record(-1, None, False, life=life + 1)
        if state is None and step.event.order is None and any(r.invalidated for r in records.values()):
            raise Misuse("UB215", "the mbarrier was invalidated before this operation could signal it", "9.7.13.15.3")
        if state is None:
            raise Misuse("UB201", "an mbarrier operation on memory without a valid mbarrier object", "9.7.13.15")
        if what.kind == "inval":
            gone = Record(state.phase, None, False, invalidated=True, life=life, left=state)
            gone.before = _records_of_phase(records, gone.when)
            return None, gone
        if what.kind == "wait":
            return _wait(step, state, life, records, belief)
        after, completed = apply_step(what, state)
        result = None
        if step.event.order is not None and what.kind in ("arrive", "drop"):
            result = machine.state_token(state, what.address, no_complete=what.no_complete)
        record = Record(state.phase, result, completed, life=life)
        if decides_phases(what, state, after, completed=completed):
            record.before = _records_of_phase(records, record.when)
        return after, record
    except Misuse as misuse:
        return misuse


def decides_phases(what: MbarrierStep, state: machine.State, after: machine.State, *, completed: bool) -> bool:
    """Whether the phases depend on the operations before this one in its phase.

    It is the arrival that leaves none pending, and the operation that completes the phase: what comes later falls into
    the next one. Until then arrivals and bytes commute. When no arrival is pending and bytes are due, the phase would
    end as soon as they are none: completions commute while they leave some due, but not with an announcement. The
    number of pending arrivals grows by the increment of an asynchronous arrive, and is told by an arrive without
    completion.
    """
    if completed or what.kind == "increment" or what.no_complete:
        return True
    if what.kind in ("expect", "complete"):
        return state.pending == 0 and (what.kind == "expect" or state.tx > 0 > after.tx)
    return after.pending == 0


def _records_of_phase(records: dict[Uid, Record], when: tuple[int, int]) -> frozenset[Uid]:
    """The operations of a phase so far."""
    return frozenset(uid for uid, r in records.items() if r.when == when and not r.waits)


def apply_step(what: MbarrierStep, state: machine.State) -> machine.Step:
    """Apply the state machine to a step that is not an init, inval or wait; raises ``Misuse``."""
    match what.kind:
        case "expect":
            return machine.expect_tx(state, what.tx or 0)
        case "complete":
            return machine.complete_tx(state, what.tx or 0)
        case "increment":
            return machine.async_arrive_begin(state)
        case "async-arrive":
            return machine.async_arrive_end(state)
        case "drop":
            return machine.arrive_drop(state, what.count, tx=what.tx or 0, no_complete=what.no_complete)
    if what.tx is not None:
        return machine.arrive_expect_tx(state, what.tx, what.count, no_complete=what.no_complete)
    return machine.arrive(state, what.count, no_complete=what.no_complete)


def _wait(
    step: Step, state: machine.State, life: int, records: dict[Uid, Record], belief: Supposition | None
) -> tuple[Machine, Record] | None:
    """A wait answers for the current or the preceding phase, whichever its parity or its state operand names."""
    what = step.what
    if what.parity is not None:
        done = machine.wait_parity(state, what.parity)
    elif isinstance(belief, tuple):
        done = False
    else:
        assert what.state is not None
        token = belief if belief is not None else _direct_state(what.state, records)
        if not isinstance(token, int) or token not in returned_states(records):
            raise Misuse("UB210", "the state operand was not returned by an arrive on this mbarrier", "9.7.13.15.16")
        done = machine.wait_state(state, token, what.address)
    result = int(done)
    if step.allowed is not None and result not in step.allowed:
        return None
    return state, Record(state.phase, result, False, life=life, waits=True)


def _direct_state(state: Term, records: dict[Uid, Record]) -> int | None:
    """The state of a wait whose operand comes directly from an arrive, or is a constant."""
    plain = copied_value(state)
    if isinstance(plain, int):
        return plain & mbarrier_tokens.WORD
    record = records.get(plain[1]) if plain[0] == "e" else None
    return None if record is None else record.result


def _independent(
    search: _Search,
    at: _Position,
    state: Machine,
    life: int,
    records: dict[Uid, Record],
    j: int,
    k: int,
) -> bool:
    """Whether the next steps of sequences j and k commute here, so that only one order need be explored."""
    a, b = search.steps[j][at[j]], search.steps[k][at[k]]
    if any(other == k for other, _ in a.after) or any(other == j for other, _ in b.after):
        return False
    if (a.supposes and _returns(b)) or (b.supposes and _returns(a)):
        return False
    # That no arrive has returned a state is a misuse, which is looked at in every order.
    known = [[(step, x) for x in _supposed(search, step, records) if not isinstance(x, frozenset)] for step in (a, b)]
    return all(_commute(one, other, state, life, records) for one, other in product(*known))


def _returns(step: Step) -> bool:
    """Whether an operation returns a state."""
    return step.what.kind in ("arrive", "drop") and step.event.order is not None


_Taken = tuple[Step, Supposition | None]
"""A step, and what it supposes."""


def _commute(a: _Taken, b: _Taken, state: Machine, life: int, records: dict[Uid, Record]) -> bool:
    """Whether two steps have the same result in both orders."""
    first, second = _pair(a, b, state, life, records), _pair(b, a, state, life, records)
    if first is None or second is None:
        return False
    (end1, ra1, rb1), (end2, rb2, ra2) = first, second
    # Which operation completes a phase counts as well: what looked before that one came is before it.
    return end1 == end2 and ra1 == ra2 and rb1 == rb2


def _pair(
    a: _Taken, b: _Taken, state: Machine, life: int, records: dict[Uid, Record]
) -> tuple[Machine, Record, Record] | None:
    """The result of two steps in sequence; ``None`` if one cannot be taken, or is a misuse."""
    one = take_step(a[0], state, life, records, a[1])
    if one is None or isinstance(one, Misuse):
        return None
    middle, ra = one
    two = take_step(b[0], middle, ra.life, {**records, a[0].event.uid: ra}, b[1])
    if two is None or isinstance(two, Misuse):
        return None
    return two[0], ra, two[1]


def _note(
    search: _Search, records: dict[Uid, Record], misuse: tuple[str, str | Phrase, Uid] | None, suppositions: Beliefs
) -> None:
    beliefs = resolve_beliefs(suppositions, records)
    if beliefs is None:
        return
    key = (
        frozenset((u, r.life, r.phase, r.result, r.completed, r.before) for u, r in records.items()),
        misuse and (misuse[0], misuse[2]),
        frozenset(beliefs.items()),
    )
    search.found.setdefault(key, (dict(records), misuse, beliefs))
    if len(search.found) > MAX_OPTIONS:
        raise Unsupported("too many phase assignments of one mbarrier")


def resolve_beliefs(suppositions: Beliefs, records: dict[Uid, Record]) -> dict[Uid, Belief] | None:
    """Beliefs with the states that arrives have returned in the end, ``None`` if one did not in the phase of the wait.

    A look that finds an earlier phase than that says no as well, and owes more to what comes later.
    """
    out: dict[Uid, Belief] = {}
    for wait, belief in suppositions.items():
        if not isinstance(belief, tuple):
            out[wait] = belief
            continue
        arrive = records.get(belief)
        if arrive is None or arrive.result is None or wait not in records or arrive.when != records[wait].when:
            return None
        out[wait] = arrive.result
    return out
