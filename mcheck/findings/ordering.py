"""Findings in the order in which they are best mended: what others may follow from stands first."""

from __future__ import annotations

from collections.abc import Iterable

from mcheck.findings.finding import Finding

AHEAD = "UB212"
"""A phase is over before anybody waited for it: with a wrong count, what waits and what is read later goes wrong."""
_FOLLOWS = frozenset(("RACE001", "RACE003"))
"""Nothing orders two accesses in time, as where a wait returns a round early."""

_KINDS = {"undefined": 1, "race": 2, "deadlock": 3}


def sort_by_cause(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, undefined behaviour before the races and deadlocks that it may be the cause of, races before
    deadlocks: who reads what is not there yet may wait for what never comes.
    """
    given = tuple(findings)
    grave = [f for f in given if f.severity == "error"]
    early = any(f.kind == "deadlock" or f.code in _FOLLOWS for f in grave)
    return tuple(sorted(given, key=lambda f: _rank(f, early=early)))


def _rank(finding: Finding, *, early: bool) -> int:
    if finding.code == AHEAD and early:
        return 0
    if finding.severity != "error":
        return 4
    return _KINDS.get(finding.kind, 2)


def select_causes(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The errors, and what stands before one because it may be the cause."""
    given = tuple(findings)
    last = max((k for k, f in enumerate(given) if f.severity == "error"), default=-1)
    return given[: last + 1]


def drop_redundant(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings without those that say less than others.

    These are races for review between accesses that race as an error besides, in another execution say: who mends the
    error looks at the pair anew. RACE001 of two strong accesses of the same bytes that are RACE010 besides: only their
    scopes can be wrong (8.7), whether the one observes the other or not. The races of two atomics but one, which are of
    the reads and of the writes of both. And deadlocks of threads that in another one stand at the same statements, some
    perhaps elsewhere.
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
