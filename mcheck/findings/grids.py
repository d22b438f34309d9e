"""What grids that overlap can do to each other. Only PTX modules have words for it."""

from __future__ import annotations

from mcheck.findings.entry import Entry

_HEAD = """\
.version 8.7
.target sm_90a
.address_size 64
.visible .global .align 4 .u32 made;
.visible .global .align 4 .u32 out;
.visible .entry k()
.reqntid 1, 1, 1
{
  .reg .b32 %r<2>;
"""
_LOAD = "  ld.global.u32 %r1, [made];\n"
_WAIT = "  griddepcontrol.wait;\n"
_END = """\
  st.global.u32 [out], %r1;
  ret;
}
"""

ENTRIES = (
    Entry(
        code="RACE011",
        name="access-before-the-prerequisite-grids-end",
        kind="race",
        level="review",
        goes_on=True,
        message="{place} is {done} before the griddepcontrol.wait in line {line}: {why}",
        explanation="""\
A dependent grid may begin while the grids that it depends on still run. griddepcontrol.wait makes the executing
thread wait until these have completed and their memory operations are performed and visible. An access of global
memory before that is ordered with nothing that they do: a load may bring what was there before they wrote, a store may
be overwritten by them, or change what they have not read yet. It is for review, because what they touch is not known:
weights that no kernel of the stream writes may well be read early. What other threads of the block access while one
thread waits is not looked at. Prefetches, parameters and constants do not count.""",
        section="PTX ISA 9.0 section 9.7.13.13",
        remedy="Put the access behind griddepcontrol.wait, unless no grid before this one can touch these bytes.",
        bad=_HEAD + _LOAD + _WAIT + _END,
        good=_HEAD + _WAIT + _LOAD + _END,
    ),
)
