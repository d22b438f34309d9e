"""The findings of a result as bugs: one finding for each, with how many it stands for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from mcheck.base.errors import Span
from mcheck.base.phrase import Stage, Thing
from mcheck.base.records import replace
from mcheck.base.source_files import SourceText
from mcheck.base.verdicts import Verdict
from mcheck.checking.run.result import Result
from mcheck.findings.every_place import fix_at_every_place
from mcheck.findings.finding import Finding
from mcheck.findings.fix import Change, Property
from mcheck.findings.frames import count_common_calls, statement_of
from mcheck.findings.groups import Group, causes, group_findings
from mcheck.findings.one_place import place_for_all
from mcheck.report import finding as finding_report
from mcheck.report.finding import Bug, title
from mcheck.report.lines import Line

ACCESSES = 6
"""The maximum number of accesses shown per finding; a deadlock may have hundreds."""
MOST_THREADS = 4
"""The maximum number of threads listed of those that a finding stands for."""
MOST_CALLS = 4
"""The maximum number of calls listed that a function was inlined at."""
MOST_CONSEQUENCES = 3
"""The maximum number of consequences listed."""
MISCOUNTED = frozenset({"UB205", "UB212"})
"""Codes of arrivals that do not fit the count of their mbarrier."""
_LANES = re.compile(r"\[[^\]]*\]$")


def collect_bugs(findings: Sequence[Finding], texts: SourceText, *, every: bool = False) -> list[Bug]:
    """A bug for each group of findings, its consequences with it; ``every``: one for each finding."""
    if every:
        return [Bug(finding) for finding in findings]
    groups = group_findings(findings)
    bugs = []
    for number, group in enumerate(groups):
        if group.follows is not None:
            continue
        effects = [g for g in groups if g.follows == number]
        others = [findings[k] for one in (group, *effects) for k in one.members]
        members = [findings[k] for k in group.members]
        bugs.append(
            Bug(
                fix_at_every_place(place_for_all(_with_count(members[0], others), group.gap, members), members),
                _stands_for(members, group),
                tuple(_consequences(findings[group.members[0]], [findings[g.members[0]] for g in effects], texts)),
                len(group.members),
            )
        )
    return bugs


def has_fewer_bugs(before: Result, after: Result) -> bool:
    """Whether an edit of a program removed errors and added none, in numbers of bugs by their codes."""
    if after.verdict not in (Verdict.FINDING, Verdict.BOUNDED):
        return after.verdict is Verdict.PROVED
    old, new = _error_counts(before), _error_counts(after)
    return old != new and not new - old


def ends_deadlocks(before: Result, after: Result) -> bool:
    """Whether an edit removed all deadlocks: what is found now may have been hidden behind them."""
    told = (result.findings if result.verdict is Verdict.FINDING else () for result in (before, after))
    old, new = (any(f.kind == "deadlock" for f in findings) for findings in told)
    return old and not new and after.verdict in (Verdict.FINDING, Verdict.BOUNDED, Verdict.PROVED)


def _error_counts(result: Result) -> Counter[str]:
    bugs = causes(group_findings(result.findings))
    return Counter(bug.code for bug in bugs if result.findings[bug.members[0]].severity == "error")


def _with_count(finding: Finding, others: Sequence[Finding]) -> Finding:
    """The finding; of a miscounted mbarrier with the count of its init as the fix, if that fixes its effects, and so
    of an effect that comes first.
    """
    miscounted = finding.code in MISCOUNTED
    counts = (other for other in others if _corrects_count(other))
    fixed = next((other for other in counts if miscounted or other.code in MISCOUNTED), None)
    return finding if fixed is None else replace(finding, fixes=fixed.fixes, lines=(*finding.lines, *fixed.lines))


def _corrects_count(finding: Finding) -> bool:
    step = finding.fixes[0].steps[0] if finding.fixes else None
    return isinstance(step, Change) and step.what is Property.COUNT


def describe_findings(
    findings: Sequence[Finding],
    source: str,
    path: str | None,
    *,
    every: bool = False,
    verbose: bool = False,
    trace: bool = False,
    most: int | None = None,
    width: int | None = None,
) -> Iterator[Line]:
    """The lines of findings, one for each bug, ``most`` of them; ``verbose`` and ``trace`` as for one finding."""
    texts = SourceText(source, path)
    bugs = collect_bugs(findings, texts, every=every)
    for bug in bugs[:most]:
        yield from finding_report.lines(
            bug, source, verbose=verbose, trace=trace, most=ACCESSES, width=width, texts=texts
        )
    if most is not None and len(bugs) > most:
        yield (f"and {len(bugs) - most} more (-v shows all)",)


def count_bugs(findings: Sequence[Finding]) -> str:
    """The number of bugs and findings with their codes, as text."""
    bugs = causes(group_findings(findings))
    codes = Counter(bug.code for bug in bugs)
    listed = ", ".join(code if count == 1 else f"{code} ({count})" for code, count in sorted(codes.items()))
    return f"{len(bugs)} bug{'' if len(bugs) == 1 else 's'} ({_findings(len(findings))}): {listed}"


def _findings(number: int) -> str:
    return f"{number} finding{'' if number == 1 else 's'}"


def _stands_for(members: Sequence[Finding], group: Group) -> str:
    """How many findings a bug stands for, in how many pairs of lines, by which threads, in which stages."""
    if len(members) == 1:
        return ""
    text = f"{len(members)} findings"
    if group.pairs > 1:
        text += f" at {group.pairs} {'pairs of lines' if len(members[0].accesses) > 1 else 'lines'}"
    text += _inlined_at(members)
    threads = sorted({_LANES.sub("", a.thread) for f in members for a in f.accesses}, key=_by_number)
    if len(threads) > MOST_THREADS:
        threads = [f"{threads[0]} to {threads[-1]}"]
    parts = {part.stage if isinstance(part, Thing) else part for f in members for part in f.said}
    stages = sorted({(part.number, part.count) for part in parts if isinstance(part, Stage)})
    where = f"; stages {', '.join(str(n) for n, _ in stages)}" if len(stages) > 1 else ""
    return f"{text} ({', '.join(threads)}{where})"


def _inlined_at(members: Sequence[Finding]) -> str:
    """The lines of the calls of the function that makes both accesses, if there are several."""
    chains = [[access.source for access in finding.accesses] for finding in members]
    shared = [count_common_calls(each) for each in chains]
    calls = {statement_of(each[0][-n]) for each, n in zip(chains, shared, strict=True) if n}
    lines = [str(line) for _, line in sorted(calls)]
    if len(lines) < 2 or 0 in shared:
        return ""
    lines = lines if len(lines) <= MOST_CALLS else [*lines[: MOST_CALLS - 1], "others"]
    return f", inlined at lines {', '.join(lines[:-1])} and {lines[-1]}"


def _by_number(name: str) -> tuple[object, ...]:
    return tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in re.split(r"(\d+)", name))


def _where(span: Span | None, here: Span | None, texts: SourceText) -> str:
    if span is None:
        return ""
    in_file = here is not None and here.path == span.path
    return f" at line {span.line}" if in_file else f" at {texts.name(span.path)}:{span.line}"


def _consequences(cause: Finding, findings: Sequence[Finding], texts: SourceText) -> list[str]:
    """The codes of consequences with their places: their lines, in the file of the cause."""
    here, _ = title(cause, texts)
    said = list(dict.fromkeys(f"{found.code}{_where(title(found, texts)[0], here, texts)}" for found in findings))
    more = len(said) - MOST_CONSEQUENCES
    return [*said[:MOST_CONSEQUENCES], *([f"and {more} more"] if more > 0 else [])]
