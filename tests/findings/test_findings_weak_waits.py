"""A wait that leaves too many groups pending: the fix changes its number, where a second wait beside it says less."""

from __future__ import annotations

import pytest

from mcheck.base.errors import Span
from mcheck.base.phrase import Site
from mcheck.base.source_files import SourceText
from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.findings.finding import Access, CompiledLine, Finding
from mcheck.findings.fix import Fix, Insert, Point, WeakWait
from mcheck.findings.repair import apply_edits, make_edits
from mcheck.report.source_edits import find_source_edits

RING = """PTX ring
{{
  .global .align 128 .b8 src[128];
  .shared .align 128 .b8 buf[256];
}}
W@cta 0, warp 0 {{
  cp.async.ca.shared.global [buf + 4*%laneid], [src + 4*%laneid], 4;
  cp.async.commit_group;
  {before}
  for k in 0..2 {{
    cp.async.ca.shared.global [buf + 128*((k+1)%2) + 4*%laneid], [src + 4*%laneid], 4;
    cp.async.commit_group;
    {inside}
    bar.warp.sync 0xffffffff;
    ld.shared.u32 r0, [buf + 128*(k%2) + 4*(31 - %laneid)];
    bar.warp.sync 0xffffffff;
  }}
}}
"""
WEAK = "cp.async.wait_group 2;"


def asked(before: str, inside: str) -> tuple[str, Finding]:
    """The text of a ring with these waits, and its first finding."""
    text = RING.format(before=before, inside=inside)
    found = check_case(Case("ring.litmus", text=text), Settings(), Options()).findings
    return text, found[0]


def test_the_number_of_the_wait_is_changed() -> None:
    text, found = asked("", WEAK)
    assert found.missing.startswith("Execute cp.async.wait_group 1 instead of 2 at line 13.")
    lines = apply_edits(text.split("\n"), make_edits(found.fixes, text.split("\n")))
    assert lines == text.replace("wait_group 2", "wait_group 1").split("\n")
    mended = check_case(Case("ring.litmus", text="\n".join(lines)), Settings(), Options())
    assert (mended.verdict, mended.findings) == ("proved", ())


def test_a_wait_before_the_loop_stays() -> None:
    text, found = asked(WEAK, "")
    assert "instead of" not in found.missing
    lines = apply_edits(text.split("\n"), make_edits(found.fixes, text.split("\n"), parts=True))
    assert WEAK in lines[8]


@pytest.mark.parametrize(
    ("line", "mended"),
    [
        ("  __pipeline_wait_prior(3);", "  __pipeline_wait_prior(2);"),
        ('  asm volatile("cp.async.wait_group 3;");', '  asm volatile("cp.async.wait_group 2;");'),
        ("  wait_group<STAGES - 1>();", None),
        ("  __pipeline_wait_prior(3), __pipeline_wait_prior(3);", None),
    ],
)
def test_a_number_that_the_source_spells_is_changed_there(line: str, mended: str | None) -> None:
    source = f"#include <cuda_pipeline.h>\n{line}\n  __syncthreads();\n"
    texts = SourceText(source, "k.cu")
    wait = Insert(
        codes=("cp.async.wait_group 2",),
        points=(Point(Site(30, 1), after=False),),
        leaves=2,
        weak=WeakWait(Site(20, 1), 3),
    )
    access = Access(thread="t", instruction="cp.async", source=(Span("k.cu", 2, 3),))
    places = (CompiledLine(20, (Span("k.cu", 2, 3),)), CompiledLine(30, (Span("k.cu", 3, 3),)))
    finding = Finding(
        code="RACE003",
        kind="race",
        severity="error",
        said=("race",),
        accesses=(access,),
        fixes=(Fix((wait,)),),
        lines=places,
    )
    (edit,) = find_source_edits(finding, texts)
    if mended is None:
        assert (edit.line, edit.text, edit.replaces) == (3, "  __pipeline_wait_prior(2);\n", "")
    else:
        assert line[: edit.column] + edit.text + line[edit.column + len(edit.replaces) :] == mended
