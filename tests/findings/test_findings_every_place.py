"""The fix of a bug names each of its places: the copies of an unrolled loop."""

from __future__ import annotations

from dataclasses import replace

from mcheck.base.errors import Span
from mcheck.base.phrase import Site
from mcheck.base.source_files import SourceText
from mcheck.findings.finding import Access, CompiledLine, Finding
from mcheck.findings.fix import Fix, Insert, Point, WeakWait, insertions
from mcheck.findings.fix_words import text_of
from mcheck.findings.repair import apply_edits, make_edits
from mcheck.report.bugs import collect_bugs

WAIT_LINE, COPY_LINE = 9, 12


def race(fix: Fix, copy: int, read: int) -> Finding:
    """A race of a loop that was unrolled: each copy has lines of its own in the module, the source has one."""

    def access(line: int, source: int, kind: str) -> Access:
        return Access(
            thread="warp0[0]", instruction="x", span=Span("k.ptx", line, 1), object="buf@0", bytes=(0, 16),
            access=kind, source=(Span("k.cu", source, 5),),
        )  # fmt: skip

    (step,) = fix.steps
    assert isinstance(step, Insert)
    at = {point.site.line for point in step.points} | ({step.weak.site.line} if step.weak is not None else set())
    return Finding(
        code="RACE003", kind="race", severity="error", said=("a race",), fixes=(fix,),
        accesses=(access(copy, COPY_LINE, "write"), access(read, 14, "read")),
        lines=tuple(CompiledLine(line, (Span("k.cu", WAIT_LINE, 3),)) for line in sorted(at)),
    )  # fmt: skip


def stronger(line: int, leaves: int) -> Fix:
    wait = Insert(
        codes=(f"cp.async.wait_group {leaves}",), points=(Point(Site(line + 1), after=False),), leaves=leaves,
        weak=WeakWait(Site(line, 1), 2),
    )  # fmt: skip
    return Fix((wait,))


def shown(*findings: Finding) -> Finding:
    (bug,) = collect_bugs(findings, SourceText())
    return bug.finding


def test_each_wait_of_an_unrolled_loop_is_made_stronger() -> None:
    found = shown(race(stronger(3, 1), 1, 5), race(stronger(8, 1), 6, 10), race(stronger(3, 1), 2, 5))
    assert text_of(found.fixes) == "Execute cp.async.wait_group 1 instead of 2 at lines 3 and 8."
    assert [line.line for line in found.lines] == [3, 4, 8, 9]
    text = ["cp.async.wait_group 2;" if line in (3, 8) else "" for line in range(1, 12)]
    changed = apply_edits(text, make_edits(found.fixes, text))
    assert [k for k, line in enumerate(changed, 1) if line == "cp.async.wait_group 1;"] == [3, 8]


def test_a_wait_that_two_races_need_gets_the_smaller_number() -> None:
    found = shown(race(stronger(3, 1), 1, 5), race(stronger(3, 0), 2, 5), race(stronger(8, 1), 6, 10))
    assert text_of(found.fixes) == (
        "Execute cp.async.wait_group 0 instead of 2 at line 3 and execute cp.async.wait_group 1 instead of 2 at line 8."
    )


def test_each_copy_of_the_loop_commits_its_group() -> None:
    def commit(line: int) -> Fix:
        return Fix((Insert(codes=("cp.async.commit_group",), points=(Point(Site(line), after=True),)),))

    found = shown(race(commit(6), 6, 10), race(commit(1), 1, 5))
    assert text_of(found.fixes) == "Execute cp.async.commit_group after lines 1 and 6."


def test_a_fence_stands_at_each_place_that_another_one_does_not_do_for() -> None:
    """Of three races the last one is mended by the fence of the first."""

    def unfenced(copy: int, before: int, *gap: int) -> Finding:
        insert = Insert(codes=("fence.proxy.async",), points=(Point(Site(before), after=False),))
        found = race(Fix((insert,)), copy, copy + 4)
        return replace(found, gap=tuple(CompiledLine(line, (Span("k.cu", WAIT_LINE, 3),)) for line in gap))

    found = shown(unfenced(1, 3, 1, 2), unfenced(21, 23, 21, 22), unfenced(0, 2, 0, 1, 2))
    assert [point.site.line for step in insertions(found.fixes) for point in step.points] == [3, 23]
