"""fence.sc in kernels: what was observed behind one puts it first; other orders cost nothing unless a load asks."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
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


@pytest.mark.daily(days=4)
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
