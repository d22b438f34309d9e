"""Ordering of findings: likely causes come before their consequences."""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.findings.finding import Finding

EARLY_PHASE = "UB212"
"""A phase completed before any thread waited for it: with a wrong count, later waits and reads fail too."""
_FOLLOWS = frozenset(("RACE001", "RACE003"))
"""Races of accesses that nothing orders in time, for instance because a wait returns an iteration early."""

_KINDS = {"undefined": 1, "race": 2, "deadlock": 3}


def sort_by_cause(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings with undefined behaviour before races and deadlocks, which it may cause, and races before deadlocks:
    a read of stale data may lead to a wait that never ends.
    """
    given = tuple(findings)
    grave = [f for f in given if f.severity == "error"]
    early = any(f.kind == "deadlock" or f.code in _FOLLOWS for f in grave)
    return tuple(sorted(given, key=lambda f: _rank(f, early=early)))


def _rank(finding: Finding, *, early: bool) -> int:
    if finding.code == EARLY_PHASE and early:
        return 0
    if finding.severity != "error":
        return 4
    return _KINDS.get(finding.kind, 2)


def select_causes(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The errors, and findings before them that may be their cause."""
    given = tuple(findings)
    last = max((k for k, f in enumerate(given) if f.severity == "error"), default=-1)
    return given[: last + 1]


def drop_redundant(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings without those that are subsumed by others.

    Dropped are: races for review between accesses that are also an error, for instance in another execution; RACE001 of
    two strong accesses of the same bytes that are also RACE010, since only their scopes can be wrong (8.7), whether one
    observes the other or not; all but one of the races of two atomics, which are between the reads and the writes of
    both; and deadlocks whose statements are a subset of those of another one.
    """
    given = tuple(findings)
    errors = {_pair(f) for f in given if f.kind == "race" and f.severity == "error"}
    narrow = {_pair(f) for f in given if f.code == "RACE010"}
    waits = [(f, frozenset(a.span for a in f.accesses)) for f in given if f.kind == "deadlock"]
    smaller = {id(f) for f, spans in waits if any(spans < others for _, others in waits)}
    seen: set[object] = set()
    kept: list[Finding] = []
    races: dict[object, int] = {}
    for f in given:
        if id(f) in smaller or (f.kind == "race" and f.severity != "error" and _pair(f) in errors):
            continue
        if f.code == "RACE001" and all(a.strong for a in f.accesses) and _pair(f) in narrow:
            continue
        if f.kind == "race":
            same = (f.code, frozenset((a.thread, a.span, a.instruction, a.object, a.bytes) for a in f.accesses))
            at = races.setdefault(same, len(kept))
            if at < len(kept):
                kept[at] = max(kept[at], f, key=_writes)
                continue
        key = (f.code, frozenset(a.span for a in f.accesses)) if f.kind == "deadlock" else id(f)
        if key not in seen:
            seen.add(key)
            kept.append(f)
    return tuple(kept)


def _writes(finding: Finding) -> int:
    return sum(a.access == "write" for a in finding.accesses)


def _pair(finding: Finding) -> frozenset[object]:
    """The instructions of a race."""
    return frozenset((a.span, a.instruction) for a in finding.accesses)
