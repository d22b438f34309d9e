"""Strong accesses of shared memory that count as weak ones in arguments about a grid."""

from __future__ import annotations

from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.grid.pairs.weak_shared import with_weak_shared

HEAD = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
.reg .pred %p;
.reg .b32 %r<9>;
.reg .b64 %a<3>;
.shared .align 4 .b8 sh[64];
ld.param.u64 %a1, [out];
"""


def texts(*lines: str) -> list[str]:
    """The instructions of a kernel with weak accesses, without the first one."""
    module = with_weak_shared(parse_module("\n".join((HEAD, *lines, "ret;", "}", "")), "k.ptx"))
    return [statement.opcode.text for statement in module.functions["k"].body[1:-1]]


def test_volatile_and_relaxed_accesses_become_weak() -> None:
    given = ("st.volatile.shared.u32 [sh], %r1;", "ld.volatile.shared.u32 %r2, [sh+4];",
             "st.relaxed.cta.shared.u32 [sh], %r1;")  # fmt: skip
    assert texts(*given) == ["st.shared.u32", "ld.shared.u32", "st.shared.u32"]


def test_others_stay() -> None:
    given = ("st.release.cta.shared.u32 [sh], %r1;", "ld.acquire.cta.shared.u32 %r2, [sh];",
             "ld.volatile.global.u32 %r3, [%a1];", "atom.shared.add.u32 %r4, [sh], 1;")  # fmt: skip
    assert texts(*given) == [line.split()[0] for line in given]


def test_a_load_that_waits_stays() -> None:
    found = texts("L:", "ld.volatile.shared.u32 %r2, [sh];", "setp.eq.u32 %p, %r2, 0;", "@%p bra L;")
    assert found[0] == "ld.volatile.shared.u32"


def test_a_module_without_such_accesses_is_itself() -> None:
    module = parse_module(HEAD + "st.shared.u32 [sh], %r1;\nret;\n}\n", "k.ptx")
    assert with_weak_shared(module) is module
