"""A deadlock in one sentence, the cycle of its waits, and the state of its barriers."""

from __future__ import annotations

import re

from mcheck.base.records import dataclass
from mcheck.findings.finding import Finding
from mcheck.findings.fix import ToCome

_WHO = r"[\w.]+(?:\[[^\]]*\])?(?:, [\w.]+(?:\[[^\]]*\])?)*"
_ENTRY = re.compile(rf"(?:^wait forever: |; )(?={_WHO} at line \d+)")
_WAIT = re.compile(
    rf"(?P<who>{_WHO}) at line (?P<line>\d+)(?: in round \S+)? \(.*?\) (?P<what>(?:waits|reads|polls) .*)", re.DOTALL
)
_BAR = r"(?P<bar>[A-Za-z_$][\w$.]*(?:\[\d+\])*)(?:@\d+)?(?: \([^)]*\))?"
_PHASE = re.compile(
    rf"waits for (?:parity \d+ \(phase (?P<phase>\d+)\) of )?{_BAR}, which is in phase (?P<now>\d+) with "
    r"(?P<pending>\d+) of (?P<expected>\d+) arrivals pending, expected (?P<bytes>\d+) bytes, got (?P<got>\d+)"
)
_BARRIER = re.compile(r"waits at barrier (?P<number>\d+)(?:, which has (?P<arrived>\d+) of (?P<count>\d+) threads)?")
_FULL_WARP = re.compile(r"\[0\.\.31\]")
MOST = 3
"""The maximum number of waits in a sentence."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait of a deadlock: by whom, where, for what, and the state of that."""

    who: str
    line: str
    goal: str
    state: str = ""
    bar: str = ""


def describe_deadlock(finding: Finding) -> str:
    """The sentence; empty if the message has another form."""
    waits = _waits(finding)
    if not waits:
        return ""
    notes = (note for fix in finding.fixes for note in fix.notes if isinstance(note, ToCome) and not note.write)
    signallers = {_short(note.label): (note.helpers[0].threads, note.helpers[0].signal.line) for note in notes}
    said = []
    for wait in waits[:MOST]:
        by, line = signallers.get(wait.bar, ("", 0))
        still = f", which line {line} ({_crowd(by)}) has still to signal" if by and len(waits) > 1 else ""
        said.append(f"line {wait.line} {wait.goal} ({wait.who}){still}")
    more = f"; and {len(waits) - MOST} more" if len(waits) > MOST else ""
    return f"deadlock: {'; '.join(said)}{more}"


def _short(label: str) -> str:
    """The name of an mbarrier without its CTA and its address."""
    return label.partition(" ")[0].partition("@")[0]


def barrier_states(finding: Finding) -> str:
    """The states of its barriers in one line; empty if there are none."""
    states = dict.fromkeys(wait.state for wait in _waits(finding) if wait.state)
    return "; ".join(list(states)[:MOST])


def _waits(finding: Finding) -> list[Wait]:
    """The waits, those of different threads for the same thing at the same line as one."""
    found: dict[tuple[str, str], Wait] = {}
    for part in _ENTRY.split(finding.message):
        wait = _WAIT.match(part)
        if wait is None:
            continue
        goal, state, bar = _goal(wait["what"])
        one = Wait(_crowd(wait["who"]), wait["line"], goal, state, bar)
        same = found.get((one.line, goal))
        others = same is not None and not same.who.endswith("others")
        found[one.line, goal] = Wait(f"{same.who} and others", *_rest(same)) if same and others else same or one
    return list(found.values())


def _rest(wait: Wait) -> tuple[str, str, str, str]:
    return wait.line, wait.goal, wait.state, wait.bar


def _goal(text: str) -> tuple[str, str, str]:
    """What is waited for, its state, and the mbarrier if it is one."""
    if phase := _PHASE.match(text):
        bar = phase["bar"]
        tx = f" and {phase['got']} of {phase['bytes']} bytes" if phase["bytes"] != "0" or phase["got"] != "0" else ""
        came = int(phase["expected"]) - int(phase["pending"])
        state = f"`{bar}` is in phase {phase['now']}, has {came} of {phase['expected']} arrivals{tx}"
        which = f"phase {phase['phase']} of " if phase["phase"] else ""
        return f"waits for {which}`{bar}`", state, bar
    if barrier := _BARRIER.match(text):
        arrived, count = barrier["arrived"], barrier["count"]
        state = f"barrier {barrier['number']} has {arrived} of {count} threads" if count else ""
        return _shorten(text.partition(", which has")[0]), state, ""
    return _shorten(text.partition("; ")[0].partition(" (")[0].partition(": ")[0]), "", ""


def _shorten(goal: str) -> str:
    """The goal with long lists of threads shortened."""
    what, by, who = goal.rpartition(" for ")
    return f"{what}{by}{_crowd(who)}" if by and re.fullmatch(_WHO, who) else goal


def _crowd(who: str) -> str:
    """Threads as text: whole warps by their names, of many the first two and how many there are."""
    names = [_FULL_WARP.sub("", name) for name in re.split(r", (?![^\[]*\])", who)]
    return ", ".join(names) if len(names) <= MOST else f"{names[0]}, {names[1]} and {len(names) - 2} others"
