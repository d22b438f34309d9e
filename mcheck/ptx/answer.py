"""The answer about a launch: what the engine says of every way that its cluster can go, and what was not followed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mcheck.answers.judgement import decides
from mcheck.answers.result import Answer
from mcheck.answers.several import ends_search
from mcheck.cat.ast import Model
from mcheck.errors import Unsupported
from mcheck.findings.finding import Finding
from mcheck.limit import Limit, TimeOut, no_time
from mcheck.policy.ask import ask
from mcheck.policy.question import Question
from mcheck.program.program import Program
from mcheck.ptx.batches import batched, batches
from mcheck.ptx.follow import LEADERS, Followed, follow
from mcheck.ptx.launch import Launch
from mcheck.ptx.launch_answers import others
from mcheck.ptx.module import Module
from mcheck.ptx.trace import Gap

MOST_REASONS = 4
"""Gaps that a reason names one by one."""
ONE_CLUSTER = "one cluster of the grid is followed, the one with CTA {}; the others are there and keep off its memory"
BUFFERS = "buffers do not overlap, and nothing leaves one whose size is not given"
WHY = "it is that for modules"
"""Why the kernel engine is asked where nobody names one."""


def answer(module: Module, launch: Launch, model: Model, question: Question, engine: str = "auto") -> Answer:
    """What an engine (the kernel engine unless another one is named) finds in the cluster of a launch.

    Raises ``InputError`` where the launch does not say what control or an address of shared memory depends on.
    """
    limit = Limit(question.timeout)
    found: list[tuple[Followed, Answer]] = []
    unknown: str | None = None
    try:
        for way in follow(module, launch, limit):
            way = replace(way, program=way.program.assuming(launch.assume))
            asked = _asked(way.program, model, question, "protocol" if engine == "auto" else engine, limit)
            given = _in_the_grid(way.program, launch, asked)
            if way.last_leads and _worst(given.findings):
                found[0] = _by_leader(found[0][0], given), found[0][1]
                continue
            found.append((way, given))
            if ends_search(given, question.excused) and not question.thorough:
                break
            if given.verdict == "unknown" and limit.over():
                break  # its reason says so, and what it has found is told before somebody stops this process
    except TimeOut as over:
        unknown = no_time(question.timeout, str(over))
    except Unsupported as error:
        unknown = error.message
    joined = _joined(launch, found, unknown)
    return replace(joined, chosen=WHY) if engine == "auto" else joined


def _asked(program: Program, model: Model, question: Question, engine: str, limit: Limit) -> Answer:
    """The answer about one way: from the shorter program with batches if nothing is found in that, or no time is left
    for the other one.
    """
    if engine == "protocol" and batches(program):
        asked = replace(question, timeout=limit.remaining(), brief=not question.thorough)
        given = ask(batched(program), model, asked, engine)
        if not given.findings or limit.over():
            return given
    return ask(program, model, replace(question, timeout=limit.remaining()), engine)


def _in_the_grid(program: Program, launch: Launch, given: Answer) -> Answer:
    """The answer where the grid has other clusters: what is waited for in global memory may be theirs to write."""
    if not others(launch, 1):
        return given
    shared = {i.label for i in program.memory.instances if i.object.space == "global"}
    waits = [a for f in given.findings if f.kind == "deadlock" for a in f.accesses if a.object in shared]
    if not waits:
        return given
    kept = tuple(f for f in given.findings if f.kind != "deadlock" or not any(a in waits for a in f.accesses))
    places = {(a.span.path, a.span.line, a.span.column): a.object for a in waits if a.span is not None}
    said = [f"{p}:{n}:{c}: this waits for {name}, which other clusters of the grid may write"
            for (p, n, c), name in sorted(places.items())]  # fmt: skip
    verdict = "finding" if _worst(kept) else "unknown"
    return replace(given, findings=kept, verdict=verdict, reason="; ".join(said), covered=False)


def _by_leader(way: Followed, other: Answer) -> Followed:
    """The way with the first lane as the leader, which says what there would be with the last one. The first one is
    elected (open question Q23), and CUTLASS counts on it.
    """
    first = next(f for f in other.findings if f.severity == "error")
    lines = [f"line {access.span.line}" for access in first.accesses if access.span is not None]
    there = f" ({', '.join(dict.fromkeys(lines))})" if lines else ""
    said = f"elect.sync elects the first lane of its mask: with the last one there is {first.code}{there}"
    return replace(way, assumptions=(*(a for a in way.assumptions if a != LEADERS), said))


def _worst(findings: Iterable[Finding]) -> bool:
    return any(f.severity == "error" for f in findings)


def _joined(launch: Launch, found: list[tuple[Followed, Answer]], unknown: str | None) -> Answer:
    findings: dict[object, Finding] = {}
    for _, given in found:
        for finding in given.findings:
            findings.setdefault((finding.code, tuple((a.span, a.access) for a in finding.accesses)), finding)
    gaps = list(dict.fromkeys(gap for way, _ in found for gap in way.gaps))
    reasons = [unknown] if unknown is not None else []
    reasons += [given.reason or "" for _, given in found if given.verdict == "unknown"]
    bounds = [given.reason or "" for _, given in found if given.verdict == "bounded"]
    kept = tuple(findings.values())
    verdict, reason = "proved", None
    if _worst(kept):
        verdict, reason = "finding", "; ".join(reasons) or None
    elif reasons:
        verdict, reason = "unknown", "; ".join(dict.fromkeys(reasons))
    elif gaps or bounds:
        verdict, reason = "bounded", "; ".join(dict.fromkeys([*bounds, *_words(gaps)]))
    elif any(map(decides, kept)):
        verdict = "finding"
    all_seen = not reasons and not gaps and not bounds and all(given.covered for _, given in found)
    first = found[0][1] if found else Answer(verdict="unknown", engine="protocol")
    said = [text for _, given in found for text in given.assumptions]
    said += [ONE_CLUSTER.format(", ".join(map(str, launch.first))), BUFFERS]
    said += [text for way, _ in found for text in way.assumptions]
    return replace(
        first,
        verdict=verdict,
        reason=reason,
        findings=kept,
        covered=verdict == "proved" or (verdict == "finding" and all_seen),
        assumptions=tuple(dict.fromkeys(said)),
        executions=sum(given.executions for _, given in found),
        undefined=any(given.undefined for _, given in found),
    )


def _words(gaps: list[Gap]) -> list[str]:
    placed = sorted((g.span.line, g.span.column, g.span.path, g.reason) for g in gaps if g.span is not None)
    said = [f"{path}:{line}:{column}: {reason}" for line, column, path, reason in placed]
    said += [gap.reason for gap in gaps if gap.span is None]
    more = len(said) - MOST_REASONS
    return said[:MOST_REASONS] + ([f"{more} more places"] if more > 0 else [])
