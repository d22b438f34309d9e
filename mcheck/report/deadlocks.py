"""A deadlock in one sentence, the cycle of its waits, and the state of its barriers."""

from __future__ import annotations

import re

from mcheck.base.phrase import Phrase, Site, Thing, join, say
from mcheck.base.records import dataclass, replace
from mcheck.findings.finding import Finding
from mcheck.findings.fix import ToCome
from mcheck.findings.waits import ForThreads, Goal, OfBarrier, OfMbarrier, OfWord, Other

_FULL_WARP = re.compile(r"\[0\.\.31\]")
MOST = 3
"""The maximum number of waits in a sentence."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What is said of a wait: by whom, where, for what, and the state of that."""

    who: str
    site: Site
    goal: Phrase
    state: str = ""
    bar: Thing | None = None


def describe_deadlock(finding: Finding) -> Phrase:
    """The sentence; empty if it is not known what is waited for."""
    waits = _waits(finding)
    if not waits:
        return ()
    notes = (note for fix in finding.fixes for note in fix.notes if isinstance(note, ToCome) and not note.write)
    signallers = {_short(note.bar): note.helpers[0] for note in notes}
    said = []
    for wait in waits[:MOST]:
        by = signallers.get(wait.bar) if wait.bar is not None and len(waits) > 1 else None
        still = say(", which {} ({}) has still to signal", by.signal, _crowd(by.threads)) if by is not None else ()
        said.append(say("{} ({}) {}{}", wait.site, wait.who, wait.goal, still))
    more = f"; and {len(waits) - MOST} more" if len(waits) > MOST else ""
    return say("deadlock: {}{}", join(said, "; ", "; "), more)


def _short(thing: Thing) -> Thing:
    """An object without its CTA and its address."""
    return Thing(thing.name, part=thing.part, role="" if thing.place else thing.role)


def barrier_states(finding: Finding) -> str:
    """The states of its barriers in one line; empty if there are none."""
    states = dict.fromkeys(wait.state for wait in _waits(finding) if wait.state)
    return "; ".join(list(states)[:MOST])


def _waits(finding: Finding) -> list[_Told]:
    """The waits, those of different threads for the same thing at the same line as one."""
    found: dict[tuple[int, Phrase], _Told] = {}
    for wait in finding.waits:
        one = _Told(_crowd(wait.threads), wait.site, *_goal(wait.goal))
        same = found.setdefault((one.site.line, one.goal), one)
        if same is not one and not same.who.endswith("others"):
            found[one.site.line, one.goal] = replace(same, who=f"{same.who} and others")
    return list(found.values())


def _goal(goal: Goal) -> tuple[Phrase, str, Thing | None]:
    """What is waited for, its state, and the mbarrier if it is one."""
    match goal:
        case OfMbarrier():
            bar = _short(goal.bar)
            bytes_ = f" and {goal.received} of {goal.announced} bytes" if goal.announced or goal.received else ""
            came = f"{goal.expected - goal.pending} of {goal.expected} arrivals{bytes_}"
            which = f"phase {goal.meant} of " if goal.meant is not None else ""
            state = f"{bar.called}`{bar.name}`{bar.part} is in phase {goal.now}, has {came}"
            return say("waits for {}{}", which, bar), state, bar
        case OfBarrier():
            state = f"barrier {goal.number} has {goal.arrived} of {goal.count} threads"
            return (f"waits at barrier {goal.number}",), state, None
        case ForThreads():
            return (f"{goal.what} for {_crowd(goal.threads)}",), "", None
        case OfWord():
            return replace(goal, word=_short(goal.word), why=()).said, "", None
        case Other():
            return (goal.what,), "", None


def _crowd(who: str) -> str:
    """Threads as text: whole warps by their names, of many the first two and how many there are."""
    names = [_FULL_WARP.sub("", name) for name in re.split(r", (?![^\[]*\])", who)]
    return ", ".join(names) if len(names) <= MOST else f"{names[0]}, {names[1]} and {len(names) - 2} others"
