"""fence.sc in kernels: what was observed behind one puts it first; other orders cost nothing unless a load asks."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.engines.protocol.analysis.sc_fences import sc_order_matters
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse

LAST_BLOCK = """PTX last-block
{{
  .global .align 16 .u32 part[128];
  .global .u32 count;
}}
block@cta 0..2, warp 0..2 {{
  .reg .u32 old;
  st.global.u32 [part + 4*%tid.x + 256*%ctaid.x], 1;
  {writer}
  bar.sync 0;
  if (%tid.x == 0) {{
    atom.global.inc.u32 old, [count], 1;
    {reader}
    if (old == 1) {{
      for i in 0..4 {{ ld.global.u32 r1, [part + 124*i]; }}
    }}
  }}
}}
"""


def checked(text: str) -> Answer:
    return check(parse(text, "fences.litmus"), load_model("ptx-9.0"), timeout=60)


@pytest.mark.daily
@pytest.mark.parametrize(
    ("writer", "reader", "verdict"),
    [
        ("membar.gl;", "membar.gl;", "proved"),
        ("fence.sc.gpu;", "fence.sc.sys;", "proved"),
        ("membar.gl;", "", "finding"),
        ("", "membar.gl;", "finding"),
        ("membar.cta;", "membar.gl;", "finding"),
        ("fence.acq_rel.gpu;", "fence.acq_rel.gpu;", "finding"),
    ],
)
def test_every_thread_fences_before_its_block_counts_itself(writer: str, reader: str, verdict: str) -> None:
    """The thread that counts releases by its own fence what came before it, not before the barrier: only fence.sc,
    which are in one order, carry the other threads' writes over.
    """
    assert checked(LAST_BLOCK.format(writer=writer, reader=reader)).verdict == verdict


def test_fences_of_many_threads_need_one_execution() -> None:
    text = """PTX fences
{ .global .u32 x[256]; }
block@cta 0..2, warp 0..4 {
  st.global.u32 [x + 4*%tid.x + 512*%ctaid.x], 1;
  membar.gl;
  bar.sync 0;
}
"""
    found = checked(text)
    assert (found.verdict, found.executions) == ("proved", 1)


def test_store_buffering_is_forbidden_by_the_order() -> None:
    text = """PTX dekker
{ .global .u32 x, y, z; }
a@cta 0 { st.relaxed.gpu.u32 [x], 1; fence.sc.gpu; ld.relaxed.gpu.u32 r0, [y]; if (r0 == 0) { st.global.u32 [z], 1; } }
b@cta 1 { st.relaxed.gpu.u32 [y], 1; fence.sc.gpu; ld.relaxed.gpu.u32 r0, [x]; if (r0 == 0) { st.global.u32 [z], 2; } }
"""
    assert checked(text).verdict == "proved"
    assert checked(text.replace("fence.sc", "fence.acq_rel")).verdict == "finding"


COUNTED = """PTX counted
{{ .global .u32 n, count, x[64]; }}
block@cta 0{ctas}, warp 0..2 {{
  .reg .u32 seen, old;
  {first}
  bar.sync 0;
  {second}
  st.global.u32 [x + 4*%tid.x], 1;
  {fence}
  if (%tid.x == 0 || %tid.x == 32) {{ atom.acquire.gpu.global.inc.u32 old, [count], 1; }}
  {last}
}}
"""
LOAD = "if (%tid.x == 0) { ld.relaxed.gpu.global.u32 seen, [n]; }"
FENCE = "if (%tid.x == 0 || %tid.x == 32) { fence.sc.gpu; }"
LEAVES = "if (%tid.x == 1) { exit; }"


@pytest.mark.parametrize(
    ("ctas", "first", "second", "fence", "last", "matters"),
    [
        ("", LOAD, "", FENCE, "", False),
        ("", f"bar.sync 0; {LOAD}", "", FENCE, "bar.sync 0;", False),
        ("", LOAD, "", "", "", False),  # no fence at all
        ("", "", "", FENCE, LOAD, True),
        ("", "", LOAD, FENCE, "", True),  # another thread may fence before
        ("", f"{LOAD} {FENCE}", "", FENCE, "", True),
        ("..2", LOAD, "", FENCE, "", True),  # the barrier is that of one CTA
        ("", f"{LOAD} {LEAVES}", "", FENCE, "", True),
        ("", LOAD, "", FENCE, LEAVES, False),
        ("", f"{LOAD} bar.sync 1, 64;", "", FENCE, "", True),  # only barrier 0 is counted
        ("", LOAD, "", f"{FENCE} bar.sync 0, 32;", "", True),  # a barrier of some threads
        ("", LOAD, "", f"{FENCE} bar.sync 0, 64;", "", False),
    ],
)
def test_a_load_in_front_of_a_barrier_in_front_of_all_fences_asks_for_no_order(
    ctas: str, first: str, second: str, fence: str, last: str, matters: bool
) -> None:
    text = COUNTED.format(ctas=ctas, first=first, second=second, fence=fence, last=last)
    assert sc_order_matters(parse(text, "counted.litmus")) is matters


def test_fences_behind_the_load_are_explored_in_one_order() -> None:
    """The two atomics have two orders, whose results nobody uses; four with both orders of the fences."""
    text = COUNTED.format(ctas="", first=LOAD, second="", fence=FENCE, last="")
    found = checked(text)
    behind = checked(COUNTED.format(ctas="", first="", second="", fence=FENCE, last=LOAD))
    assert found.verdict == behind.verdict == "proved"
    assert found.executions < behind.executions
