"""Undefined behaviour of tensor memory: what is allocated and freed against the rules. Only PTX modules have words for
it, so the examples are modules.
"""

from __future__ import annotations

from mcheck.findings.entry import Entry

_HEAD = """\
.version 8.7
.target sm_100a
.address_size 64
.visible .entry k()
.reqntid 32, 1, 1
{
  .reg .b32 %r<3>;
  .shared .align 4 .b32 base;
"""
_ALLOC = """\
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 64;
"""
_LOAD = """\
  bar.sync 0;
  ld.shared.b32 %r1, [base];
"""
_FREE = """\
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 64;
"""
_PERMIT = """\
  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
"""
_END = """\
  ret;
}
"""

ENTRIES = (
    Entry(
        code="UB601",
        name="tensor-memory-left-allocated",
        kind="undefined",
        goes_on=True,
        message="{thread} allocates tensor memory that nobody frees before the kernel ends",
        explanation="""\
All tensor memory that a kernel has allocated must be freed by tcgen05.dealloc before it ends. The columns belong to
the SM, not to the CTA: what is left behind is missing for the CTAs that come later, whose tcgen05.alloc waits for it,
and the driver reports a leak of tensor memory.""",
        section="PTX ISA 9.0 sections 9.7.16.1.2 and 9.7.16.7.1",
        remedy="Free the columns by tcgen05.dealloc, with the address and the number of the allocation, on every way"
        " to the end, once nobody uses them any more.",
        bad=_HEAD + _ALLOC + _PERMIT + _END,
        good=_HEAD + _ALLOC + _PERMIT + _LOAD + _FREE + _END,
    ),
    Entry(
        code="UB602",
        name="tensor-memory-allocated-against-the-rules",
        kind="undefined",
        message="{instruction} is not allowed to allocate these columns of tensor memory",
        explanation="""\
tcgen05.alloc takes a power of two from 32 to 512 columns, and no more of them than the allocation before it in the
same CTA. After tcgen05.relinquish_alloc_permit by any of its threads a CTA may not allocate any more, also where it
has freed what it had.""",
        section="PTX ISA 9.0 section 9.7.16.7.1",
        remedy="Round the number of columns up to a power of two, allocate the largest part first, and give up the"
        " permit behind the last allocation.",
        bad=_HEAD + _PERMIT + _ALLOC + _LOAD + _FREE + _END,
        good=_HEAD + _ALLOC + _PERMIT + _LOAD + _FREE + _END,
    ),
    Entry(
        code="UB603",
        name="tensor-memory-freed-that-is-not-allocated",
        kind="undefined",
        message="{instruction} frees columns of tensor memory that are no allocation",
        explanation="""\
tcgen05.dealloc takes the address that tcgen05.alloc has written and as many columns as were allocated there. Other
columns, a part of an allocation, or one that has been freed before, are none that it may free.""",
        section="PTX ISA 9.0 section 9.7.16.7.1",
        remedy="Free each allocation once, with its own address and number of columns.",
        bad=_HEAD + _ALLOC + _LOAD + _FREE.replace("64", "32") + _END,
        good=_HEAD + _ALLOC + _LOAD + _FREE + _END,
    ),
)
