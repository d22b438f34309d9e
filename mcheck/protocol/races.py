"""Conflicting accesses: ordered and visible, ordered but invisible, or not ordered at all (PTX ISA 8.6, 8.7, 8.9.5).

The rules are those of models/ptx-9.0.cat, said of one earlier and one later access.
"""

from __future__ import annotations

from mcheck.graph.event import Event
from mcheck.protocol.clocks import Key, mutual
from mcheck.protocol.explain import missing
from mcheck.protocol.history import Lanes, Record, View, lanes_overlap, stands_for
from mcheck.protocol.machine import Machine
from mcheck.protocol.problems import Problem, access_of

COMMUTING = frozenset(("add", "and", "or", "xor", "min", "max"))
"""Operations of which any two of one kind, on integers, may change places."""


def touch(m: Machine, record: Record, low: int, high: int, view: View) -> None:
    """Holds an access against all earlier ones to the same bytes, and remembers it."""
    if high <= low:
        return
    live_objects(m, record, low, high, view)
    _, history = m.history(low)
    lanes = record.lanes
    for k in history.cut(low, high):
        cell = history.cells[k]
        keep = []
        for old in cell:
            if (record.write or old.write) and old.event is not record.event:
                start = history.starts[k]
                end = history.starts[k + 1] if k + 1 < len(history.starts) else history.end
                conflict(m, old, record, lanes, start, end, view)
            if not stands_for(record, old, view):
                keep.append(old)
        keep.append(record)
        history.cells[k] = keep


def live_objects(m: Machine, record: Record, low: int, high: int, view: View) -> None:
    """While an mbarrier object is valid its bytes are no ordinary memory (9.7.13.15)."""
    for bar in m.mbarriers_in(low, high):
        ended = bar.ended
        gone = ended is not None and (
            view.causal[ended.agent] >= ended.step or (ended.agent == view.agent and ended.step <= view.step)
        )
        if bar.state is None and (ended is None or gone):
            continue
        code = "UB203" if record.asynchronous else "UB202"
        what = "copies over" if record.asynchronous else "accesses"
        if bar.state is None:
            text = f"{what} {bar.label}, whose mbarrier.inval does not come before it"
        else:
            text = f"{what} {bar.label}, which holds a live mbarrier"
        m.problem(code, text, m.agents[record.agent], record.event.op)


def conflict(m: Machine, old: Record, new: Record, lanes: Lanes, low: int, high: int, view: View) -> None:
    """Reports the pair if it races, or if it deserves a word."""
    mine = lanes
    if old.agent == view.agent and not view.single:
        mine = old.lanes if old.lanes is not None and not lanes_overlap(old.lanes, lanes, low, high) else None
    a, b = old.event, new.event  # where lanes access neighbours, that of the first lane
    same_proxy = old.proxy == new.proxy
    strong = old.strong and new.strong and same_proxy and _scopes(m, old, new)
    same_bytes = a.size == b.size and (_start(old) - _start(new)) % a.size == 0
    if not view.before(old, mine):
        if strong and same_bytes:
            if (old.asynchronous or new.asynchronous) and not commute(old.event, new.event):
                m.inexact = "asynchronous reductions that nothing orders, and whose order decides what is left"
            return
        code = "RACE003" if old.asynchronous or new.asynchronous else "RACE001" if same_bytes else "RACE002"
        if code == "RACE001" and _too_narrow(m, old, view):
            code = "RACE010"
        _report(m, code, old, new, low, high)
        return
    if strong and same_bytes:
        return
    word = visibility(m, old, new, mine, view)
    if word is not None:
        _report(m, word, old, new, low, high)


def _start(record: Record) -> int:
    """The address of an access; where lanes access neighbours, of the first one."""
    return record.lanes[0] if isinstance(record.lanes, tuple) else record.event.address


def commute(a: Event, b: Event) -> bool:
    """Whether two operations on one word leave the same, whichever comes first: reductions of one kind on integers."""
    if "ASYNCREDUCTION" not in a.tags or "ASYNCREDUCTION" not in b.tags:
        return False
    if "W" not in a.tags or "W" not in b.tags:
        return True  # the two writes are held against each other as well
    match a.value, b.value:
        case ("rmw", kind, type_, _, _), ("rmw", other, other_type, _, _):
            return (kind, type_) == (other, other_type) and commutes(kind, type_)
    return False


def commutes(kind: str, type_: str) -> bool:
    """Whether any two operations of this kind and type may change places."""
    return kind in COMMUTING and type_[0] in "usb" and not type_.startswith("bf")


def visibility(m: Machine, old: Record, new: Record, lanes: Lanes, view: View) -> str | None:
    """What the proxies of an ordered pair leave to say."""
    match (old.proxy, new.proxy):
        case ("GEN", "ASYNC"):
            return _to_async(m, old, new, lanes, view)
        case ("GEN", "TMAP"):
            return None if _map_acquired(old, new, lanes, view) else "RACE009"
        case ("ASYNC", "ASYNC"):
            if old.event.block == new.event.block:
                return None
            return None if _fenced(old, lanes, view) else "RACE008"
        case ("ASYNC", "TMAP"):
            return None if _map_acquired(old, new, lanes, view) else "RACE003"
        case ("TMAP", "ASYNC"):
            return "RACE003"
    return None


def _to_async(m: Machine, old: Record, new: Record, lanes: Lanes, view: View) -> str | None:
    halves = any(view.covered(old, lanes, ("pa", a, b)) for a in old.spaces for b in new.spaces)
    through = _fenced(old, lanes, view)
    if halves:
        return None
    if not through:
        if old.cp_async:
            return "RACE007"
        return "RACE004" if old.write else "RACE006"
    if not m.setup.many_ctas or old.cta == new.cta:
        return None
    writer = any(view.covered(old, lanes, ("pw", s, old.cta)) for s in old.spaces)
    issuer = any(view.covered(old, lanes, ("pw", s, new.cta)) for s in old.spaces)
    return None if writer and issuer else "RACE005"


def _fenced(old: Record, lanes: Lanes, view: View) -> bool:
    return any(view.covered(old, lanes, ("pf", s)) for s in old.spaces)


def _map_acquired(old: Record, new: Record, lanes: Lanes, view: View) -> bool:
    keys: set[Key] = set(view.coverage) | set(view.fenced)
    for key in keys:
        if key[0] != "ta":
            continue
        start, size = key[1], key[2]
        assert isinstance(start, int) and isinstance(size, int)
        event = new.event
        if start < event.address + event.size and event.address < start + size and view.covered(old, lanes, key):
            return True
    return False


def _scopes(m: Machine, old: Record, new: Record) -> bool:
    a, b = old.event.scope, new.event.scope
    if a is None or b is None:
        return False
    return mutual(a, m.agents[old.agent].place, b, m.agents[new.agent].place)


def _too_narrow(m: Machine, old: Record, view: View) -> bool:
    """Whether a release that was observed would have ordered the pair, had the scopes included each other."""
    pending = m.agents[view.agent].pending
    return any(not half and know.causal[old.agent] >= old.step for (_, _, half), know in pending.items())


def _report(m: Machine, code: str, old: Record, new: Record, low: int, high: int) -> None:
    from mcheck.findings import catalogue

    spans = (code, old.event.op.span, new.event.op.span, old.write, new.write)
    if spans in m.reported:
        return
    m.reported.add(spans)
    entry = catalogue.get(code)
    first, second = access_of(m, old, low, high), access_of(m, new, low, high)
    where = f"{first.object}[{low - _base(m, low)}:{high - _base(m, low)}]"
    what = " and ".join(f"the {a.proxy} {a.access} by {a.thread}" for a in (first, second))
    message = f"{entry.name.replace('-', ' ')} on {where}: {what}"
    m.problems.append(
        Problem(
            code,
            message,
            (first, second),
            tuple(sorted({old.agent, new.agent})),
            len(m.trace),
            old.position,
            missing(m, code, old, new),
        )
    )


def _base(m: Machine, address: int) -> int:
    instance = m.program.memory.find(address)
    return instance.base if instance is not None else 0
