"""Tracked locations: words whose values decide something, such as flags, counters and semaphores.

A read may return any write that the model allows, also a stale one; a write may precede others in coherence order, if
the model allows it. Every remaining way is explored. A read returns a later write of the order of the steps in an
execution with the two reversed.
"""

from __future__ import annotations

from collections.abc import Sequence

from mcheck.base.records import replace
from mcheck.cat.tags import Tag
from mcheck.engines.protocol.analysis.lane_groups import Split
from mcheck.engines.protocol.execution.executors import Blocked
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import Footprint, NewWord
from mcheck.engines.protocol.incremental.entries import Entry as Live
from mcheck.engines.protocol.operations import mbarrier_reordering
from mcheck.engines.protocol.operations.access_records import make_record
from mcheck.engines.protocol.operations.coherence_positions import (
    find_earlier_places,
    find_first_readable,
    find_readable_writes,
    is_allowed,
    is_allowed_for,
    may_satisfy,
    note_history_bound,
    split_coherence,
)
from mcheck.engines.protocol.operations.earlier_reads import check_earlier_read
from mcheck.engines.protocol.operations.races import enter_accesses
from mcheck.engines.protocol.passes import Pass
from mcheck.engines.protocol.state.access_history import Record
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.memory_values import evaluate_bytes, evaluate_value
from mcheck.engines.protocol.state.sync_objects import ASYNC_WRITE, NO_WRITE, NON_COMMUTING, SyncOperation, Word, Write
from mcheck.engines.protocol.state.vector_clocks import Vector, join_clocks
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.ir.def_use import registers_of
from mcheck.ir.expr import apply_binary
from mcheck.semantics.terms import typed

MIXED = "strong accesses of several sizes to the same bytes"
MIXED_WAIT = "a wait reads another number of bytes than other strong accesses of its address"
COPIED_OVER = "an asynchronous operation writes part of a word whose value decides something, or more than it"
UNKNOWN = "a wait or a compare-and-swap depends on memory that nothing has written"
MAX_OPERATIONS = 256
"""The number of latest operations on a word that later ones are checked against; earlier ones that nothing can precede
are dropped.
"""
INITIAL = frozenset(("IW", "W", "M"))


# --- tracking -----------------------------------------------------------------------------------------------------


def is_tracked(m: Machine, event: Event) -> bool:
    """Whether an access is to a tracked word."""
    words = m.setup.tracked_words
    if not words:
        return False
    if words.get(event.address) == event.size:
        return True
    if Tag.WEAK not in event.tags and m.setup.touches_word([(event.address, event.address + event.size)]):
        m.inexact_reason = MIXED
    return False


def word_at(m: Machine, address: int, size: int) -> Word:
    """The tracked word at an address, whose present contents are its first write; raises ``NewWord`` if it was not
    foreseen.
    """
    word = m.tracked_words.get(address)
    known = m.setup.tracked_words.get(address, size)
    if known != size:
        m.inexact_reason = MIXED
    if word is not None:
        return word
    if address not in m.setup.tracked_words:
        if m.setup.touches_word([(address, address + size)]):
            m.inexact_reason = MIXED
        raise NewWord(address, size)
    word = m.tracked_words[address] = Word(address, known)
    word.writes.append(Write(-1, 0, m.memory.load(address, known), m.zero_clock, _enter_contents(m, word)))
    return word


def _enter_contents(m: Machine, word: Word) -> tuple[Live, ...]:
    """Enter what a word contains, as a write that nothing orders, behind all others of the word."""
    event = Event((-1, word.address), ops.Exit(), INITIAL, 0, 0, -1, address=word.address, size=word.size)  # type: ignore[arg-type]
    edges = {"co": word.write_events} if word.write_events else {}
    entry = m.window.entry(event, -1, edges=edges, exact=True, where=word.address)
    m.add_entry(entry, ordered=False)
    word.write_events |= entry.bit
    return (entry,)


def record_async_write(m: Machine, event: Event) -> None:
    """Record the value that an asynchronous operation wrote, now that it is known."""
    for start in m.setup.words_in(event.address, event.address + event.size):
        word = m.tracked_words.get(start)
        if word is None:
            continue
        if (event.address, event.size) == (start, word.size):
            word.writes[-1].value = m.memory.load(start, word.size)
            word.version += 1
            wake(m, word)
        else:
            m.inexact_reason = COPIED_OVER
            _add_partial_write(m, m.agents[m.agent_of_thread[event.uid[0]]], word)


def set_value_between(m: Machine, event: Event) -> bool:
    """Set the value of a write by an asynchronous operation from the write directly before it, if later writes exist;
    memory does not hold it then. Return whether they do.
    """
    word = m.tracked_words.get(event.address)
    if word is None or word.writes[-1].event is event:  # nearly always
        return False
    at = next((k for k, w in enumerate(word.writes) if w.event is event), None)
    if at is None:
        return False
    value, size = word.writes[at - 1].value, word.size
    before = (bytes(size), bytes(size)) if value is None else evaluate_bytes(value, size, {})
    data, known = evaluate_bytes(event.value, size, {} if event.rmw is None else {event.rmw: before})
    word.writes[at].value = None if 0 in known else int.from_bytes(data, "little")
    return True


def record_partial_write(m: Machine, agent: Agent, address: int, size: int, own: Word | None = None) -> None:
    """Record a write to other bytes than those of a tracked word, of which it leaves the value that memory holds.
    ``own`` is the word that it is entered as a write of.

    A read is ordered behind it, and returns what it or a later write has left, or the two race.
    """
    for start in m.setup.words_in(address, address + size):
        word = m.tracked_words.get(start)
        if word is not None and word is not own and (address, size) != (start, word.size):
            m.inexact_reason = MIXED
            _add_partial_write(m, agent, word)


def _add_partial_write(m: Machine, agent: Agent, word: Word) -> None:
    """Add a write of more bytes than those of a word, or fewer: no earlier write may be read or followed any more."""
    value = m.memory.load(word.address, word.size)
    word.first = len(word.writes)
    word.writes.append(Write(agent.index, agent.step, value, agent.current_time(), _enter_contents(m, word)))
    word.version += 1
    wake(m, word)


def wake(m: Machine, word: Word) -> None:
    """Wake the agents that wait for a word."""
    for agent in m.agents:
        if agent.status == "blocked" and (agent.blocked_on is word or isinstance(agent.blocked_on, list)):
            agent.status, agent.blocked_on = "run", None


# --- reads ------------------------------------------------------------------------------------------------------


def enter_access(
    m: Machine, agent: Agent, event: Event, edges: dict[str, int], back: dict[str, int] | None = None, part: int = 0,
    own: list[dict[str, int]] | None = None,
) -> Record:  # fmt: skip
    """Enter an access to a word and return its record. ``own`` are edges of each representative of the agent."""
    record = make_record(m, agent, event, None)
    lanes = [{**edges, **(own[k] if own else {})} for k in range(len(agent.representatives))]
    enter_accesses(
        m, agent, [(record, event.address, event.address + event.size)], lanes, part=part, exact=True, back=back
    )
    return record


def enter_read(
    m: Machine,
    agent: Agent,
    event: Event,
    type_name: str,
    compare: tuple[str, int] | None,
    names: list[str],
    part: int = 0,
) -> tuple[int | None, Record]:
    """Enter a read of a word and return its value. With ``compare`` it blocks until some write satisfies it."""
    word = word_at(m, event.address, event.size)
    edges = {"addr": m.find_sources(agent, 0, names)} if names else {}
    condition = (type_name, *compare) if compare else None
    if event.size != word.size:
        return _read_other_size(m, agent, event, word, edges, part, condition)
    if m.waits is not None and condition is not None:
        index = _find_first_end(m, agent, word, event, edges, part, condition)
        m.waits.on_wait(m, agent, word, index, condition)
    else:
        found = find_readable_writes(m, agent, word, event, edges, part, condition)
        index = _choose_read(m, agent, word, type_name, compare, found)
    chosen = word.writes[index]
    if m.causality is not None and condition is not None:
        m.causality.add_acquire(agent, event, find_observed_chain(word, index))
    note_dependent_operations(m, agent, word, event, "read", agent.current_time(), condition)
    if condition is not None:
        check_earlier_read(m, agent, event, edges, failing_writes(m, word, condition))
    record = enter_access(m, agent, event, {**edges, "rf": chosen.event_set}, part=part)
    note_observation(m, agent, word, index)
    return chosen.value, record


def _read_other_size(
    m: Machine, agent: Agent, event: Event, word: Word, edges: dict[str, int], part: int,
    condition: tuple[str, str, int] | None,
) -> tuple[int | None, Record]:  # fmt: skip
    """Enter a read of more bytes than those of a word, or fewer: it returns what memory holds, or races."""
    value = m.memory.load(event.address, event.size)
    block_other_size(m, word, value, condition)
    last = len(word.writes) - 1
    note_dependent_operations(m, agent, word, event, "read", agent.current_time())
    record = enter_access(m, agent, event, {**edges, "rf": word.writes[last].event_set}, part=part)
    note_observation(m, agent, word, last)
    return value, record


def block_other_size(m: Machine, word: Word, value: int | None, condition: tuple[str, str, int] | None) -> None:
    """Block a wait for more bytes than those of a word, or fewer, that this value does not end."""
    if condition is not None:
        m.not_followed = MIXED_WAIT
        if not may_satisfy(value, *condition):
            raise Blocked(word)


def failing_writes(m: Machine, word: Word, condition: tuple[str, str, int]) -> list[int]:
    """The latest of the writes that do not end a wait, or may not."""
    return [
        w.event_set
        for w in word.writes[-m.setup.max_stale_writes :]
        if w.value is None or not may_satisfy(w.value, *condition)
    ]


def note_observation(m: Machine, agent: Agent, word: Word, index: int) -> None:
    """Note that an agent has observed the write at ``index``, and no other one."""
    w = word.writes[index]
    for first in word.writes[1 : index + 1] if m.waits is None else ():  # of commuting writes, it might see others
        for then in word.writes[index + 1 :]:
            if first.position >= 0 and first.position < then.position and then.kind == first.kind not in NON_COMMUTING:
                m.note_swap(first.position, then.position)
    awaited = m.waits is None or (agent.index, agent.step) in m.waits.steps
    for seen in find_observed_chain(word, index) if awaited else ():
        agent.time = join_clocks(agent.time, seen.time)
    m.decisions.append((agent.index, agent.step, "reads", word.address, w.agent, w.step))
    agent.polled_versions["word", word.address] = word.version if index == len(word.writes) - 1 else -1


def find_observed_chain(word: Word, index: int) -> list[Write]:
    """The write at ``index`` and, if it is an atomic, those whose values its own value is made of, the latest first."""
    chain = [word.writes[index]]
    for k in range(index - 1, -1, -1):
        if word.writes[k + 1].kind in ("write", ASYNC_WRITE, ""):
            break
        chain.append(word.writes[k])
    return chain


def _find_first_end(
    m: Machine, agent: Agent, word: Word, event: Event, edges: dict[str, int], part: int,
    condition: tuple[str, str, int],
) -> int:  # fmt: skip
    """The first write in coherence order that may end a wait; blocks while there is none."""
    for k, w in enumerate(word.writes):
        if (
            k >= word.first
            and may_satisfy(w.value, *condition)
            and is_allowed(m, agent, event, {**edges, "rf": w.event_set}, part=part)
        ):
            return k
    raise Blocked(word)


def _choose_read(
    m: Machine, agent: Agent, word: Word, type_name: str, compare: tuple[str, int] | None, found: list[int]
) -> int:
    """Choose the write that is read."""
    if compare is None:
        return found[0 if agent.spinning else choose_write(m, word, found)]
    operator, right = compare
    if any(word.writes[k].value is None for k in found):
        m.inexact_reason = UNKNOWN
    fits = [k for k in found if may_satisfy(word.writes[k].value, type_name, operator, right)]
    if not fits:
        raise Blocked(word)
    missed = fits[0] != found[0] or may_fail(agent, word.writes[fits[0]].value)
    # The wait may also miss a value that was overwritten, and an unknown value may be another one.
    taken = choose_write(m, word, [*fits, None] if missed else fits)
    if taken == len(fits):
        raise Blocked(word)
    return fits[taken]


def choose_write(m: Machine, word: Word, found: Sequence[int | None]) -> int:
    """Choose one of some writes, given by their indices, and return its position among them; ``None`` stands for no
    write. The others are explored later, also in other orders of the steps with other writes: so a choice names the
    agent and step of the write.
    """
    names = [NO_WRITE if k is None else word.writes[k].write_id for k in found]
    return names.index(m.choose_option(names)) if len(names) > 1 else 0


def may_fail(agent: Agent, value: int | None) -> bool:
    """Whether a wait may fail because the value is not known. In a module another execution has shown that it
    does not.
    """
    return value is None and not _followed(agent)


def _followed(agent: Agent) -> bool:
    """Whether the agent is at an await that stands for a branch of a module on a value: it does not wait there, and
    answers are bounded.
    """
    op = agent.code[agent.pc]
    return isinstance(op, ops.Await) and op.followed


def ends_before(word: Word, other: SyncOperation, type_name: str, operator: str, right: int) -> bool:
    """Whether the value before an earlier operation on the word ends a wait."""
    return may_satisfy(word.writes[other.phase - 1].value, type_name, operator, right)


def _may_end_without(word: Word, other: SyncOperation, type_name: str, operator: str, right: int) -> bool:
    """Whether a wait may end without an earlier operation on the word: by the value before it, or by operations after
    it that could come first.
    """
    if ends_before(word, other, type_name, operator, right):
        return True
    since = word.writes[other.phase :]
    if len(since) < 2:
        return False
    values = [None if w.value is None else typed(type_name, w.value) for w in word.writes[other.phase - 1 :]]
    known = [v for v in values if isinstance(v, int)]
    rising = len(known) == len(values) and known == sorted(known) and all(w.kind == "add" for w in since)
    if not rising or operator not in (">=", ">", "=="):
        return True
    most = known[-1] - (known[1] - known[0])  # the counter without this operation: no order of the others gives more
    return most >= right if operator == "==" else bool(apply_binary(operator, most, right))


def note_dependent_operations(
    m: Machine, agent: Agent, word: Word, event: Event, kind: str, time: Vector,
    compare: tuple[str, str, int] | None = None,
) -> None:  # fmt: skip
    """Note the earlier operations on the word that could come after this one, with another effect."""
    ends = ends_before if _followed(agent) else _may_end_without
    if m.waits is not None:
        m.waits.on_access(m, agent, word, event, kind, waits=compare is not None)
    for other in reversed(word.operations):
        if m.waits is not None and (compare is not None or (other.agent, other.step) in m.waits.steps):
            continue
        if other.agent == agent.index or (kind == other.kind and (kind == "read" or kind not in NON_COMMUTING)):
            continue
        if other.kind == "write":
            continue  # handled by readable writes and coherence positions
        skips = Pass.BLOCKED_EXECUTIONS in m.setup.passes
        if skips and compare is not None and other.phase and not ends(word, other, *compare):
            continue  # it would only wait for the other
        m.note_reversal(other, agent.index, time, agent.is_single_thread)
    word.operations.append(
        SyncOperation(agent.index, agent.step, len(m.trace) - 1, agent.current_time(), event, kind, len(word.writes))
    )
    if len(word.operations) > MAX_OPERATIONS and m.waits is None:
        word.operations = [done for done in word.operations if not m.is_past(done)]
        if len(word.operations) > MAX_OPERATIONS - MAX_OPERATIONS // 4:
            del word.operations[: MAX_OPERATIONS // 2]
            m.note_bound(f"the latest {MAX_OPERATIONS} operations on {m.thing_at(word.address)}")


def load_word(m: Machine, agent: Agent, op: ops.Load, compare: tuple[str, int] | None) -> None:
    """Execute a load of tracked words; with ``compare`` an awaited one, which blocks until some write satisfies it."""
    events = m.emit(agent, 0, op)
    names = registers_of(op.address)
    for k, event in enumerate(events):
        reg = op.dsts[k]
        value, record = enter_read(m, agent, event, op.type, compare if k == 0 else None, names)
        if compare is not None and k == 0:
            m.add_dependency(agent, record.entries)
        if reg is not None:
            for lane in range(len(agent.lanes)):
                m.set_register(agent, lane, reg.name, op.type, value)
            for lane, entry in enumerate(record.entries):
                agent.sources[lane][reg.name] = entry.bit


def load_if_tracked(m: Machine, agent: Agent, op: ops.Load, found: list[Footprint]) -> bool:
    """Execute a weak load if it reads tracked words: by all lanes together where all of them read one write."""
    if not m.setup.tracked_words or not any(is_tracked(m, event) for event, *_ in found):
        _track_deciding_load(m, agent, op, found)
        return False
    together = not agent.is_single_thread and Pass.COMMON_LOADS in m.setup.passes
    if not (together and _load_together(m, agent, op, found)):
        _require_single_thread(agent)
        load_word(m, agent, op, None)
    return True


def _load_together(m: Machine, agent: Agent, op: ops.Load, found: list[Footprint]) -> bool:
    """Execute a load of one word by several lanes, if the model allows each of them only the latest write; return
    whether it does.
    """
    if len(found) != 1 or found[0][3] is not None or len(op.dsts) != 1:
        return False
    event = found[0][0]
    word = word_at(m, event.address, event.size)
    last = len(word.writes) - 1
    names = registers_of(op.address)
    origins = [m.find_sources(agent, k, names) for k in range(len(agent.representatives))]
    edges = [{"addr": origin} if origin else {} for origin in origins]
    for thread, own in zip(agent.representatives, edges, strict=True) if not m.brief else ():
        first, more = find_first_readable(m, agent, thread, word, event, own)
        for k in range(first, last):
            if is_allowed_for(m, agent, (thread,), event, {**own, "rf": word.writes[k].event_set}):
                return False
        if more:
            note_history_bound(m, word, [last])
    note_dependent_operations(m, agent, word, event, "read", agent.current_time())
    chosen = word.writes[last].event_set
    record = enter_access(m, agent, event, {}, own=[{**own, "rf": chosen} for own in edges])
    note_observation(m, agent, word, last)
    register = op.dsts[0]
    if register is not None:
        for k in range(len(agent.lanes)):
            m.set_register(agent, k, register.name, op.type, word.writes[last].value)
        for k, entry in enumerate(record.entries):
            agent.sources[k][register.name] = entry.bit
    return True


def _track_deciding_load(m: Machine, agent: Agent, op: ops.Load, found: list[Footprint]) -> None:
    """Track the words of a weak load whose value decides something, if anything writes them."""
    wanted = m.setup.needed_registers[agent.threads[0]]
    if agent.is_single_thread and any(r is not None and r.name in wanted for r in op.dsts):
        for event, *_ in found:
            if m.setup.should_track(event.address):
                raise NewWord(event.address, event.size)


def _require_single_thread(agent: Agent) -> None:
    """Split an agent of several lanes into single threads."""
    if not agent.is_single_thread:
        raise Split([(t,) for t in agent.threads])


def without_acquire(event: Event) -> Event:
    """The read of an atomic that synchronises with nothing, as that of ``red`` does (8.8)."""
    return replace(event, tags=(event.tags - {Tag.ACQ, Tag.ACQ_REL, Tag.SC}) | {Tag.RLX, Tag.RED})


# --- writes -----------------------------------------------------------------------------------------------------


def enter_write(
    m: Machine, agent: Agent, event: Event, value: int | None, kind: str, edges: dict[str, int], time: Vector, *,
    after: int | None = None, part: int = 0, own: list[dict[str, int]] | None = None,
    compare: tuple[str, str, int] | None = None,
) -> tuple[Write, Record]:  # fmt: skip
    """Enter a write of a word at a position in coherence order: directly ``after`` a write, or where the model allows;
    ``compare`` is what an atomic has waited for.
    """
    word = word_at(m, event.address, event.size)
    note_dependent_operations(m, agent, word, event, kind, time, compare)
    places = [len(word.writes) if after is None else after + 1]
    whole = event.size == word.size
    if after is None and not m.brief and whole:
        places += find_earlier_places(m, agent, word, event, edges, part)
    if m.waits is not None:
        m.waits.on_write(m, agent, word)
    if m.causality is not None:
        m.causality.add_release(agent, event)
    at = places[choose_write(m, word, [k - 1 for k in places])]
    before, later = split_coherence(word, at)
    last = word.writes[at - 1]
    m.decisions.append((agent.index, agent.step, "after", word.address, last.agent, last.step))
    back = {"co": later} if later else None
    record = enter_access(m, agent, event, {**edges, "co": before}, back, part, own)
    written = Write(agent.index, agent.step, value, agent.current_time(), record.entries, event, kind, len(m.trace) - 1)
    word.writes.insert(at, written)
    word.write_events |= written.event_set
    word.version += 1
    if at == len(word.writes) - 1 and kind != ASYNC_WRITE:
        m.memory.store(event.address, event.size, value)
        record_partial_write(m, agent, event.address, event.size, word)
    if not whole:
        word.first, written.value = at, m.memory.load(word.address, word.size)
    wake(m, word)
    return written, record


def store_word(m: Machine, agent: Agent, op: ops.Store) -> None:
    """Execute a store to tracked words."""
    events = m.emit(agent, 0, op)
    names = [n for src in op.srcs for n in registers_of(src)]
    data, address = m.find_sources(agent, 0, names), m.find_sources(agent, 0, registers_of(op.address))
    for event in events:
        value = evaluate_value(event.value, {})
        enter_write(m, agent, event, value, "write", {"data": data, "addr": address}, agent.current_time())


def store_if_tracked(m: Machine, agent: Agent, op: ops.Store, found: list[Footprint]) -> bool:
    """Execute a weak store if it writes tracked words."""
    if not m.setup.tracked_words or not any(is_tracked(m, event) for event, *_ in found):
        return False
    _require_single_thread(agent)
    store_word(m, agent, op)
    return True


def access_asynchronously(m: Machine, agent: Agent, event: Event, edges: list[dict[str, int]], part: int) -> Record:
    """Enter an asynchronous access to a tracked word. Its write directly follows the write that it has read, or the
    latest write if it reads nothing or is weak.
    """
    word = word_at(m, event.address, event.size)
    if Tag.R in event.tags:
        note_dependent_operations(m, agent, word, event, "read", agent.current_time())
        _note_passing_reduction(m, agent, word, event, edges[0], part)
        places = [len(word.writes) - 1, *_find_readable_before(m, agent, word, event, edges[0], part)]
        word.read_index = places[choose_write(m, word, places)]
        return enter_access(m, agent, event, {"rf": word.writes[word.read_index].event_set}, part=part, own=edges)
    after = len(word.writes) - 1 if word.read_index is None or event.rmw is None else word.read_index
    word.read_index = None
    _, record = enter_write(
        m, agent, event, None, ASYNC_WRITE, {}, agent.current_time(), after=after, part=part, own=edges
    )
    return record


def _find_readable_before(
    m: Machine, agent: Agent, word: Word, event: Event, edges: dict[str, int], part: int
) -> list[int]:  # fmt: skip
    """The writes that a reduction may read although others, which are no reductions, come later: only the order in
    which their threads reached them puts those before it. Whether its own write may precede them shows then.
    """
    last = len(word.writes) - 1
    if Tag.WEAK in event.tags or m.brief:
        return []
    out: list[int] = []
    for k in range(last - 1, max(last - m.setup.max_stale_writes, word.first - 1), -1):
        if word.writes[k + 1].kind != ASYNC_WRITE and is_allowed(
            m, agent, event, {**edges, "rf": word.writes[k].event_set}, part=part
        ):
            out.append(k)
    note_history_bound(m, word, [last, *out])
    return out


def _note_passing_reduction(
    m: Machine, agent: Agent, word: Word, event: Event, edges: dict[str, int], part: int
) -> None:
    """Note a reduction that may precede the one before it: only the order in which its thread reached them separates
    them, and nothing orders their accesses (8.9.1.1). Those of unordered threads are run in either order.
    """
    other = word.writes[-1]
    if Tag.WEAK in event.tags or other.kind != ASYNC_WRITE or other.event is None or Tag.WEAK in other.event.tags:
        return
    ordered = agent.current_time()[other.agent] >= other.step
    if ordered and not m.brief and is_allowed(m, agent, event, {**edges, "rf": word.writes[-2].event_set}, part=part):
        mbarrier_reordering.note_reordering(m, other.event, event)
