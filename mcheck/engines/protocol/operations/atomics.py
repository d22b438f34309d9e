"""Atomics on tracked words, and awaits.

An atomic may read any write that the model allows, and its own write directly follows that one in coherence order.
Every remaining position is explored.
"""

from __future__ import annotations

from mcheck.effects.site import widened
from mcheck.engines.protocol.analysis.shared_words import may_contain, word_of
from mcheck.engines.protocol.execution.executors import Blocked, executes
from mcheck.engines.protocol.execution.machine import Machine
from mcheck.engines.protocol.execution.setup import MAX_STALE_WRITES
from mcheck.engines.protocol.operations.coherence_positions import (
    FEW_STALE_WRITES,
    describe_latest,
    find_latest_before,
    may_satisfy,
    split_coherence,
)
from mcheck.engines.protocol.operations.control_flow import evaluate_guard
from mcheck.engines.protocol.operations.earlier_reads import check_earlier_read
from mcheck.engines.protocol.operations.joint_arrivals import arrive_together
from mcheck.engines.protocol.operations.mbarrier_waits import wait_on_mbarrier
from mcheck.engines.protocol.operations.races import is_commutative
from mcheck.engines.protocol.operations.remembered_trials import answer_trial
from mcheck.engines.protocol.operations.tracked_locations import (
    UNKNOWN,
    block_other_size,
    choose_write,
    enter_access,
    enter_write,
    failing_writes,
    find_observed_chain,
    load_word,
    may_fail,
    note_dependent_operations,
    note_observation,
    without_acquire,
    word_at,
)
from mcheck.engines.protocol.operations.unsplit_atomics import splits_atomic
from mcheck.engines.protocol.operations.weakened_atomics import enter_weakened_atomic
from mcheck.engines.protocol.passes import Pass
from mcheck.engines.protocol.state.agent import Agent
from mcheck.engines.protocol.state.sync_objects import NON_COMMUTING, Word
from mcheck.events.event import Event
from mcheck.ir import ops
from mcheck.ir.def_use import registers_of
from mcheck.ir.ops import Op
from mcheck.ir.type_sizes import type_size
from mcheck.semantics.terms import rmw, scalar_kind

ANY = "any"
"""The kind of an atomic whose function does not matter, because nothing depends on the contents of memory."""


@executes(ops.Atomic)
def execute_atomic(m: Machine, agent: Agent, op: Op) -> None:
    """Execute ``atom`` or ``red``."""
    assert isinstance(op, ops.Atomic)
    if not evaluate_guard(m, agent, op):
        return
    if op.sem == "weak":
        enter_weakened_atomic(m, agent, op)
    else:
        _execute_atomic(m, agent, op, None)
    agent.pc += 1


def _execute_atomic(m: Machine, agent: Agent, op: ops.Atomic, compare: tuple[str, int] | None) -> None:
    """Execute an atomic; with ``compare`` an awaited one, which blocks until its result satisfies it."""
    base, size = m.known_value(agent, op.address), type_size(op.type)
    assert base is not None
    if not agent.is_single_thread:
        arrive_together(m, agent, op, base)
        return
    operands = [m.evaluate(agent, 0, s) for s in op.srcs]  # before the destination is set, which may be one of them
    names = [n for src in op.srcs for n in registers_of(src)]
    data_from = m.find_sources(agent, 0, names)
    read_event, write_event = m.emit(agent, 0, op)[:2]
    word = word_at(m, read_event.address, size)
    whole = word.size == size
    values = [v if isinstance(v, int) else None for v in operands]
    kind = "atomic" if compare is not None else _commutation_kind(m, agent, op, values)
    if m.waits is not None and kind != "atomic":
        read_event = without_acquire(read_event)
    edges = {"addr": m.find_sources(agent, 0, registers_of(op.address))}
    ways: list[int | None] = [len(word.writes) - 1]
    if whole:
        ways = _find_readable_writes(m, agent, op, word, read_event, write_event, edges, values, kind, compare)
    index = ways[choose_write(m, word, ways)]
    if index is None:
        raise Blocked(word)
    old = word.writes[index].value
    if not whole:
        old = m.memory.load(read_event.address, size)
        block_other_size(m, word, old, None if compare is None else (op.type, *compare))
    stores, new = _compute_result(m, op, size, old, values, base)
    before = agent.current_time()
    if not stores:
        note_dependent_operations(m, agent, word, read_event, "read", before)
    if compare is not None:
        check_earlier_read(m, agent, read_event, edges, failing_writes(m, word, (op.type, *compare)))
    record = enter_access(m, agent, read_event, {**edges, "rf": word.writes[index].event_set})
    if kind == "atomic":
        note_observation(m, agent, word, index)
        if m.causality is not None and not op.is_red:
            m.causality.add_acquire(agent, read_event, find_observed_chain(word, index))
    agent.polled_versions["word", word.address] = word.version if index == len(word.writes) - 1 else -1
    if compare is not None:
        m.add_dependency(agent, record.entries)
    if stores:
        data = data_from | (record.event_set if op.op != "exch" else 0)
        version = word.version
        own = [{"rmw": record.event_set, "data": data}]
        waited = None if compare is None else (op.type, *compare)
        enter_write(m, agent, write_event, new, kind, dict(edges), before, after=index, part=1, own=own, compare=waited)
        if op.op == "exch" and new is not None and new == old:
            word.version = version  # a loop that repeats this has no effect: it is a wait
        else:
            agent.effect_count += 1
    if op.dst is not None:
        m.set_register(agent, 0, op.dst.name, op.type, old)
        agent.sources[0][op.dst.name] = record.event_set


def _find_readable_writes(
    m: Machine, agent: Agent, op: ops.Atomic, word: Word, read_event: Event, write_event: Event, edges: dict[str, int],
    values: list[int | None], kind: str, compare: tuple[str, int] | None,
) -> list[int | None]:  # fmt: skip
    """The writes that the atomic may read, its own write following directly; ``None``: it keeps waiting."""
    last = len(word.writes) - 1
    found = [last]
    if not agent.spinning and not m.brief:  # an earlier iteration of a spin loop covers stale reads
        ordered = kind in NON_COMMUTING
        places = [k for k in range(last - 1, word.first - 1, -1) if ordered or word.writes[k + 1].kind != kind]
        if compare is not None:  # writes that do not end the wait need no test
            places = [k for k in places if may_satisfy(word.writes[k].value, op.type, *compare)]
        places = [
            k for k in places
            if not (_stores(op, word, k, values) and splits_atomic(m, agent, word, k, write_event))
        ]  # fmt: skip
        if len(places) >= FEW_STALE_WRITES and Pass.OVERWRITTEN_WRITES in m.setup.passes:
            first = find_latest_before(m, agent, agent.threads[0], word, read_event, edges)
            places = [k for k in places if k >= first]
        for k in places[: MAX_STALE_WRITES - 1]:
            if _may_follow(m, agent, op, word, k, read_event, write_event, edges, values):
                found.append(k)
        if len(places) >= MAX_STALE_WRITES and found[-1] == places[MAX_STALE_WRITES - 2]:
            m.note_bound(describe_latest(m, word))  # earlier ones might be readable, too
    if compare is None:
        return list(found)
    if any(word.writes[k].value is None for k in found):
        m.inexact_reason = UNKNOWN
    fits: list[int | None] = [k for k in found if may_satisfy(word.writes[k].value, op.type, *compare)]
    if not fits:
        raise Blocked(word)
    sure = fits[0] == last and not may_fail(agent, word.writes[last].value)
    return fits if sure else [*fits, None]


def _stores(op: ops.Atomic, word: Word, k: int, values: list[int | None]) -> bool:
    """Whether the atomic certainly stores if it reads write ``k``."""
    old, wanted = word.writes[k].value, values[0]
    if op.op != "cas":
        return True
    return old is not None and wanted is not None and old == wanted & ((1 << (8 * word.size)) - 1)


def _may_follow(
    m: Machine, agent: Agent, op: ops.Atomic, word: Word, k: int, read_event: Event, write_event: Event,
    edges: dict[str, int], values: list[int | None],
) -> bool:  # fmt: skip
    """Whether the model allows an atomic to read write ``k`` and directly follow it."""
    thread, source = agent.threads[0], word.writes[k]
    stores, _ = _compute_result(m, op, word.size, source.value, values, read_event.address)
    before, later = split_coherence(word, k + 1)

    def ask() -> bool:
        saved = m.save()
        read = m.make_entry(
            thread, read_event, {**edges, "rf": source.event_set}, agent.step * 8, ordered=True, exact=True,
            where=read_event.address,
        )  # fmt: skip
        m.add_entry(read, ordered=True, flags=False)
        if stores and m.broken_axiom is None:
            write = m.make_entry(
                thread, write_event, {**edges, "co": before, "rmw": read.bit}, agent.step * 8 + 1, ordered=True,
                exact=True, where=write_event.address, back={"co": later} if later else None,
            )  # fmt: skip
            m.add_entry(write, ordered=True, flags=False)
        allowed = m.broken_axiom is None
        m.restore(saved)
        return allowed

    what = "follows", source.event_set, before, later, stores, agent.step
    return answer_trial(m, (thread,), (read_event, write_event), edges, None, what, ask)


def _compute_result(
    m: Machine, op: ops.Atomic, size: int, old: int | None, values: list[int | None], base: int
) -> tuple[bool, int | None]:
    """Whether the atomic stores, and which value."""
    stores = True
    if op.op == "cas":
        if old is not None and values[0] is not None:
            stores = old == values[0] & ((1 << (8 * size)) - 1)
        else:
            m.inexact_reason = UNKNOWN
    known = [v for v in values if v is not None]
    if len(known) < len(values) or (old is None and op.op != "exch"):
        return stores, None
    instance = m.program.memory.find(widened(base))
    kind = scalar_kind(op.op, op.type, instance.object.space if instance else op.space)
    result = rmw(kind, op.type, old if old is not None else 0, tuple(known))
    return stores, result if isinstance(result, int) else None


def _commutation_kind(m: Machine, agent: Agent, op: ops.Atomic, values: list[int | None]) -> str:
    """The kind of an atomic. Atomics of one function commute if nothing observes their order: neither the values that
    they wrote nor what their threads have acquired since.
    """
    used = op.dst is not None and op.dst.name in m.setup.needed_registers[agent.threads[0]]
    acquires = op.sem in ("acquire", "acq_rel") or agent.pc < m.setup.last_fence[agent.index]
    if used or (acquires and not op.is_red and m.waits is None and _may_be_released(m, word_of(op.address))):
        return "atomic"
    if Pass.COMMUTING_ATOMICS not in m.setup.passes or m.known_value(agent, op.address) in m.setup.ordered_words:
        return "atomic"
    if not m.setup.contents_matter:
        return ANY
    if is_commutative(op.op, op.type):
        return f"{op.op}.{op.type[0]}" if op.op in ("min", "max") else op.op
    if op.op in ("inc", "dec") and None not in values:
        return f"{op.op} {values}"  # one function in either order
    return "atomic"


def _may_be_released(m: Machine, word: int) -> bool:
    """Whether an acquire of a word may synchronise with anything."""
    released = m.setup.released_words
    return released is None or may_contain(word, set(released))


@executes(ops.Await)
def execute_await(m: Machine, agent: Agent, op: Op) -> None:
    """Execute an await: block until the inner operation returns the awaited value."""
    assert isinstance(op, ops.Await)
    if not evaluate_guard(m, agent, op):
        return
    inner = op.inner
    if isinstance(inner, ops.MbarrierWait):
        wait_on_mbarrier(m, agent, inner, blocking=True)
    else:
        assert op.compare is not None
        right = m.known_value(agent, op.compare[1])
        assert right is not None
        if isinstance(inner, ops.Load):
            load_word(m, agent, inner, (op.compare[0], right))
        else:
            assert isinstance(inner, ops.Atomic)
            _execute_atomic(m, agent, inner, (op.compare[0], right))
    agent.pc += 1
