"""Words that strong operations share: flags, counters, semaphores.

A strong read may return any write that coherence and causality leave it: those after the latest one that it must know
of. An atomic takes the latest (8.10.3). What a read returns hands over the releases of the write and of the atomics
before it in its chain (8.9.2). Which of two writes comes first is explored by running them in the other order.
"""

from __future__ import annotations

from mcheck.graph.event import Event
from mcheck.graph.terms import rmw, scalar_kind, type_size, typed
from mcheck.program import ops
from mcheck.program.expr import apply_binary
from mcheck.program.ops import Op
from mcheck.protocol.clocks import Vector, joined, mutual
from mcheck.protocol.fences import acquire, contributions
from mcheck.protocol.machine import Agent, Blocked, Machine, does
from mcheck.protocol.objects import Done, Word, Written, hand
from mcheck.protocol.races import COMMUTING, commutes

MIXED = "strong accesses of several sizes to the same bytes"
UNKNOWN = "a wait or a compare-and-swap depends on contents that nothing has written"


def word_at(m: Machine, address: int, size: int) -> Word:
    """The shared word at an address, with its present contents as its first write."""
    word = m.words.get(address)
    if word is not None and word.size != size:
        m.inexact = MIXED
    if word is None:
        if any(address < w.address + w.size and w.address < address + size for w in m.words.values()):
            m.inexact = MIXED
        word = m.words[address] = Word(address, size)
        first = Written(-1, 0, m.memory.load(address, size), {}, m.zero, None, (0, 0, 0), None)
        word.writes.append(first)
    return word


def weakly_written(m: Machine, agent: Agent, address: int) -> None:
    """A weak write to a word that strong operations access."""
    word = m.words.get(address)
    if word is not None:
        value = m.memory.load(address, word.size)
        _dependent(m, agent, word, m.emit_nothing(agent, agent.code[agent.pc]), "write", agent.now())
        m.assigned.append((agent.index, agent.step, "after", word.address, word.writes[-1].agent, word.writes[-1].step))
        word.writes.append(Written(agent.index, agent.step, value, {}, agent.now(), None, agent.place, None))
        word.version += 1
        _wake(m, word)


def overwritten(m: Machine, address: int, size: int) -> None:
    """Bytes that an asynchronous operation wrote."""
    for word in m.words.values():
        if address < word.address + word.size and word.address < address + size:
            m.inexact = "an asynchronous operation writes a word that strong operations access"
            word.writes.append(
                Written(-1, 0, m.memory.load(word.address, word.size), {}, m.zero, None, (0, 0, 0), None)
            )
            word.version += 1
            _wake(m, word)


def _wake(m: Machine, word: Word) -> None:
    for agent in m.agents:
        if agent.status == "blocked" and (agent.where is word or isinstance(agent.where, list)):
            agent.status, agent.where = "run", None


def _candidates(agent: Agent, word: Word) -> list[int]:
    """The indices of the writes that the agent's read may return, the latest first."""
    first = agent.last_read.get(word.address, 0)
    for k in range(len(word.writes) - 1, first, -1):
        w = word.writes[k]
        known = w.agent >= 0 and (agent.causal[w.agent] >= w.step or w.agent == agent.index)
        if known or any(agent.causal[a] >= s or a == agent.index for a, s in w.observers):
            first = k
            break
    return list(range(len(word.writes) - 1, first - 1, -1))


def _record(m: Machine, agent: Agent, event: Event) -> None:
    from mcheck.protocol.accesses import entering, outlives, record_of
    from mcheck.protocol.races import touch

    entering(agent, event)
    record = record_of(m, agent, event, None)
    touch(m, record, event.address, event.address + event.size, agent.view())
    outlives(m, agent, event, record)


def _observe(m: Machine, agent: Agent, word: Word, index: int, event: Event, acquires: bool) -> None:
    """The agent reads write ``index``: it learns what that hands over, if the two are morally strong."""
    w = word.writes[index]
    agent.last_read[word.address] = max(agent.last_read.get(word.address, 0), index)
    agent.time = joined(agent.time, w.time)
    m.assigned.append((agent.index, agent.step, "reads", word.address, w.agent, w.step))
    if w.agent < 0 or w.scope is None or event.scope is None:
        return
    if not mutual(w.scope, w.place, event.scope, agent.place):
        return
    w.observers.append((agent.index, agent.step))
    link: Written | None = w
    while link is not None:
        for record in link.records:
            record.observers.append((agent.index, agent.step))
        link = link.seen
    acquire(agent, w.handed, event.scope, acquires)


def _tie(m: Machine, written: Written, events: tuple[Event, ...]) -> None:
    """Ties the write just made to the records of its events, so that observing the one is observing the other."""
    _, history = m.history(events[0].address)
    cells = history.cut(events[0].address, events[0].address + events[0].size)
    found = {id(r): r for k in cells for r in history.cells[k] if any(r.event is e for e in events)}
    written.records = tuple(found.values())


def load(m: Machine, agent: Agent, op: ops.Load, compare: tuple[str, int] | None) -> None:
    """A strong load; with ``compare`` an awaited one, which blocks until some write satisfies it."""
    events = m.emit(agent, 0, op)
    wanted = m.setup.needed[agent.threads[0]]
    for k, event in enumerate(events):
        reg = op.dsts[k]
        _record(m, agent, event)
        if compare is None and (reg is None or reg.name not in wanted):
            if reg is not None:
                m.set(agent, 0, reg.name, op.type, None)
            continue
        word = word_at(m, event.address, event.size)
        index = _choose(m, agent, word, op.type, compare if k == 0 else None)
        value = word.writes[index].value
        _dependent(m, agent, word, event, "read", agent.now(), (op.type, *compare) if compare and k == 0 else None)
        _observe(m, agent, word, index, event, "ACQ" in event.tags)
        latest = index == len(word.writes) - 1
        agent.looked["word", word.address] = word.version if latest else -1
        if reg is not None:
            m.set(agent, 0, reg.name, op.type, value)


def _choose(m: Machine, agent: Agent, word: Word, type_name: str, compare: tuple[str, int] | None) -> int:
    """Which write is read."""
    found = _candidates(agent, word)
    # Which writes there were to choose from is part of what an execution is: the others are looked at from here.
    writers = tuple((word.writes[k].agent, word.writes[k].step) for k in found)
    m.assigned.append((agent.index, agent.step, "may read", word.address, writers))
    if compare is None:
        if agent.spinning:
            return found[0]
        return found[m.choose(len(found))] if len(found) > 1 else found[0]
    operator, right = compare
    if any(word.writes[k].value is None for k in found):
        m.inexact = UNKNOWN
    fits = [k for k in found if _fits(word.writes[k].value, type_name, operator, right)]
    if not fits:
        raise Blocked(word)
    ways = len(fits) + (fits[0] != found[0])  # a value that has been overwritten may also be missed
    taken = m.choose(ways) if ways > 1 else 0
    if taken == len(fits):
        raise Blocked(word)
    return fits[taken]


def _fits(value: int | None, type_name: str, operator: str, right: int) -> bool:
    if value is None:
        return True
    left = typed(type_name, value)
    assert isinstance(left, int)
    return bool(apply_binary(operator, left, right))


def _dependent(
    m: Machine,
    agent: Agent,
    word: Word,
    event: Event,
    kind: str,
    time: Vector,
    compare: tuple[str, str, int] | None = None,
) -> None:
    """Notes the earlier operations on the word that could come after this one, to other effect."""
    for other in reversed(word.done):
        if other.agent == agent.index or (kind == other.kind and (kind == "read" or kind in COMMUTING)):
            continue
        if compare is not None and other.phase and not _fits(word.writes[other.phase - 1].value, *compare):
            continue  # it would only wait until the other has come
        m.reverse(other, agent.index, time, agent.single)
    word.done.append(Done(agent.index, agent.step, len(m.trace) - 1, agent.now(), event, kind, len(word.writes)))
    if len(word.done) > 256:
        del word.done[:128]
        m.bounded = True


def _write(
    m: Machine, agent: Agent, event: Event, value: int | None, kind: str, seen: Written | None, before: Vector
) -> Written:
    """A strong write: its releases, and in a chain of atomics, those before it: it has ``seen`` one of them."""
    word = word_at(m, event.address, event.size)
    handed = contributions(agent, "REL" in event.tags, event.scope or "sys")
    if "REL" in event.tags:
        mine = agent.released_words.setdefault(event.address, {})
        hand(mine, (event.scope or "sys", agent.place, False), agent.know())
    for source, know in agent.released_words.get(event.address, {}).items():
        hand(handed, source, know)
    chain = seen.handed if seen is not None else {}
    for source, know in chain.items():
        hand(handed, source, know)
    time = joined(agent.now(), word.writes[-1].time) if chain and kind == "atomic" else agent.now()
    _dependent(m, agent, word, event, kind, before)
    m.assigned.append((agent.index, agent.step, "after", word.address, word.writes[-1].agent, word.writes[-1].step))
    written = Written(agent.index, agent.step, value, handed, time, event.scope, agent.place, event, seen=seen)
    word.writes.append(written)
    word.version += 1
    m.memory.store(event.address, event.size, value)
    _tie(m, written, (event,))
    _wake(m, word)
    return written


def store(m: Machine, agent: Agent, op: ops.Store) -> None:
    """A strong store."""
    from mcheck.protocol.accesses import value_of

    events = m.emit(agent, 0, op)
    for event in events:
        _record(m, agent, event)
        _write(m, agent, event, value_of(event.value, {}), "write", None, agent.now())


@does(ops.Atomic)
def atomic(m: Machine, agent: Agent, op: Op) -> None:
    """``atom`` and ``red``."""
    from mcheck.protocol.accesses import runs

    assert isinstance(op, ops.Atomic)
    if not runs(m, agent, op):
        return
    _atomic(m, agent, op, None)
    agent.pc += 1


def _atomic(m: Machine, agent: Agent, op: ops.Atomic, compare: tuple[str, int] | None) -> None:
    emitter, state = agent.emitters[0], agent.lanes[0]
    base, size = m.known(agent, op.address), type_size(op.type)
    assert base is not None
    from mcheck.explore.emit import _check_space

    _check_space(emitter, op, base, op.space)
    extra = ("ATOM", "RED", "RMW") if op.is_red else ("ATOM", "RMW")
    read_sem = "acquire" if op.sem in ("acquire", "acq_rel") else "relaxed"
    write_sem = "release" if op.sem in ("release", "acq_rel") else "relaxed"
    read = emitter.memory(state, op, "R", base, size, read_sem, op.proxy, op.scope, extra=extra)
    word = word_at(m, read.address, size)
    latest = word.writes[-1]
    if compare is not None and not _fits(latest.value, op.type, *compare):
        raise Blocked(word)
    operands = [m.term(agent, 0, s) for s in op.srcs]
    if latest.value is None and compare is not None:
        m.inexact = UNKNOWN
    values = [v for v in operands if isinstance(v, int)]
    old = latest.value
    new: int | None = None
    stores = True
    if op.op == "cas" and old is not None and isinstance(operands[0], int):
        stores = old == operands[0] & ((1 << (8 * size)) - 1)
    elif op.op == "cas":
        m.inexact = UNKNOWN
    if len(values) == len(operands) and (old is not None or op.op == "exch"):
        instance = m.program.memory.find(base)
        kind_of = scalar_kind(op.op, op.type, instance.object.space if instance else op.space)
        result = rmw(kind_of, op.type, old if old is not None else 0, tuple(values))
        assert isinstance(result, int)
        new = result
    wanted = m.setup.needed[agent.threads[0]]
    used = op.dst is not None and op.dst.name in wanted
    plain = op.op in COMMUTING and (m.setup.watched is None or _commutes(agent, op))
    kind = op.op if plain and not used and compare is None else "atomic"
    _record(m, agent, read)
    before = agent.now()
    linked = latest.scope is not None and mutual(latest.scope, latest.place, op.scope, agent.place)
    certain = latest.agent < 0 or latest.agent == agent.index or agent.time[latest.agent] >= latest.step
    if not op.is_red and (kind == "atomic" or certain):  # else another order lets it read less
        _observe(m, agent, word, len(word.writes) - 1, read, "ACQ" in read.tags)
    agent.looked["word", word.address] = word.version
    if stores:
        write = emitter.memory(state, op, "W", base, size, write_sem, op.proxy, op.scope, rmw=read.uid, extra=extra)
        _record(m, agent, write)
        version = word.version
        _tie(m, _write(m, agent, write, new, kind, latest if linked else None, before), (write, read))
        if op.op == "exch" and new is not None and new == old:
            word.version = version  # a loop that does this again and again has no effect: it is a wait
        else:
            agent.effects += 1
    else:
        _dependent(m, agent, word, read, "read", before)
    if op.dst is not None:
        m.set(agent, 0, op.dst.name, op.type, old)


def _commutes(agent: Agent, op: ops.Atomic) -> bool:
    """Whether nothing is left to tell in which order operations of this kind came: neither what they wrote, nor what
    their threads have acquired since.
    """
    acquires = op.sem in ("acquire", "acq_rel") or any(isinstance(o, ops.Fence) for o in agent.code)
    return commutes(op.op, op.type) and (op.is_red or not acquires)


@does(ops.Await)
def await_(m: Machine, agent: Agent, op: Op) -> None:
    """Blocks until the inner operation gives what is asked for."""
    from mcheck.protocol.accesses import runs

    assert isinstance(op, ops.Await)
    if not runs(m, agent, op):
        return
    inner = op.inner
    if isinstance(inner, ops.MbarrierWait):
        from mcheck.protocol.mbarriers import wait

        wait(m, agent, inner, must=True)
    else:
        assert op.compare is not None
        right = m.known(agent, op.compare[1])
        assert right is not None
        if isinstance(inner, ops.Load):
            _await_load(m, agent, inner, (op.compare[0], right))
        else:
            assert isinstance(inner, ops.Atomic)
            _atomic(m, agent, inner, (op.compare[0], right))
    agent.pc += 1


def _await_load(m: Machine, agent: Agent, op: ops.Load, compare: tuple[str, int]) -> None:
    """A weak awaited load spins on plain memory, a strong one on the word's writes."""
    if op.sem != "weak":
        # The word must exist before the agent can block on it, so that writes to it are noticed.
        load(m, agent, op, compare)
        return
    events = m.emit(agent, 0, op)
    word = word_at(m, events[0].address, events[0].size)
    if word.writes[-1].value is None:
        m.inexact = UNKNOWN
    if not _fits(word.writes[-1].value, op.type, *compare):
        raise Blocked(word)
    for k, event in enumerate(events):
        _record(m, agent, event)
        reg = op.dsts[k]
        if reg is not None:
            m.set(agent, 0, reg.name, op.type, m.memory.load(event.address, event.size))
