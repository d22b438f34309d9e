"""A loop that nothing leaves is followed for a few rounds, and the answer says so."""

from __future__ import annotations

import re

import pytest

from mcheck.base.budget import processor_time
from mcheck.cat import load_model
from mcheck.engines.protocol.execution.unrolling_limit import MAX_ENDLESS_ITERATIONS, MAX_ITERATIONS, max_iterations
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse

TEXT = """PTX loop
{{ .global .u32 x; }}
P@cta 0 {{
  .reg .pred p0;
L:
  atom.global.relaxed.gpu.add.u32 r0, [x], 1;
  {leave}
  bra L;
  {end}
}}
Q@cta 1 {{ ld.relaxed.gpu.global.u32 r0, [x]; }}
exists (Q:r0 == 1)
"""
LEAVING = [
    ("", "", MAX_ENDLESS_ITERATIONS),
    ("", "E: exit;", MAX_ENDLESS_ITERATIONS),
    ("exit;", "", MAX_ITERATIONS),
    ("setp.eq.u32 p0, r0, 3; @p0 exit;", "", MAX_ITERATIONS),
    ("setp.eq.u32 p0, r0, 3; @p0 bra E;", "E: exit;", MAX_ITERATIONS),
    ("setp.eq.u32 p0, r0, 3; @p0 bra M; M:", "", MAX_ENDLESS_ITERATIONS),
]


@pytest.mark.parametrize(("leave", "end", "most"), LEAVING)
def test_which_loops_nothing_leaves(leave: str, end: str, most: int) -> None:
    thread = parse(TEXT.format(leave=leave, end=end), "loop.litmus").threads[0]
    assert max_iterations(thread, thread.labels["L"]) == most


def test_the_answer_names_the_loop() -> None:
    found = check(parse(TEXT.format(leave="", end=""), "loop.litmus"), load_model("ptx-9.0"), timeout=60)
    assert found.verdict == "bounded"
    assert f"{MAX_ENDLESS_ITERATIONS} iterations of the loop at line 5, which has no exit" in (found.reason or "")
    assert found.executions < 200


READING = """PTX reading
{ .global .u32 x; }
P@cta 0 {
  mov.u32 r1, 0;
L:
  ld.global.u32 r0, [x];
  add.u32 r1, r1, 1;
  setp.ne.u32 %p1, r0, 7;
  @%p1 bra L;
}
"""


def test_what_ran_when_the_time_was_over() -> None:
    """The register tells the rounds apart, so that nothing repeats, and nothing but the time ends them."""
    with processor_time():
        found = check(parse(READING, "loop.litmus"), load_model("ptx-9.0"), timeout=0.5)
    assert found.verdict == "unknown"
    assert re.search(r"^no answer within 0.5 s; P is in iteration \d{3,} of the loop at line 5$", found.reason or "")
