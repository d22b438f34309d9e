"""Strong accesses of shared memory that count as weak ones in arguments about a grid."""

from __future__ import annotations

import pytest

from mcheck.findings.finding import Access, Finding
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ptx import check
from mcheck.simt.grid.pairs.weak_shared import shows_races, with_weak_shared

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


@pytest.mark.parametrize(
    ("objects", "kind", "shown"),
    [
        (["out"], "race", True),
        (["out", "counted"], "race", True),
        (["out", "sh"], "race", False),
        (["out"], "undefined", False),
        ([], "race", False),
    ],
)
def test_races_of_global_memory_are_shown(objects: list[str], kind: str, shown: bool) -> None:
    text = HEAD.replace(".visible", ".global .u32 counted;\n.visible", 1) + "ret;\n}\n"
    module = parse_module(text, "k.ptx")
    launch = build_launch(module, from_object({"grid": 2, "block": 32, "params": {"out": {"buffer": 4}}}))
    found = [
        Finding(
            code="RACE001",
            kind=kind,
            severity="error",
            said=("",),
            accesses=(Access(thread="", instruction="", object=name),),
        )  # type: ignore[arg-type]
        for name in objects
    ]
    assert shows_races(found, module, launch) is shown


def test_what_has_the_name_of_a_shared_variable_may_be_that() -> None:
    module = parse_module(HEAD.replace(".visible", ".shared .u32 out;\n.visible", 1) + "ret;\n}\n", "k.ptx")
    launch = build_launch(module, from_object({"grid": 2, "block": 32, "params": {"out": {"buffer": 4}}}))
    found = Finding(
        code="RACE001",
        kind="race",
        severity="error",
        said=("",),
        accesses=(Access(thread="", instruction="", object="out"),),
    )
    assert not shows_races([found], module, launch)


HANDED = """.version 8.7
.target sm_90
.address_size 64
.visible .entry k(.param .u64 sums, .param .u64 count, .param .u64 out)
{
.reg .pred %p<4>;
.reg .b32 %r<9>;
.reg .b64 %a<6>;
.shared .align 4 .b8 flag[4];
ld.param.u64 %a1, [sums];
ld.param.u64 %a2, [count];
ld.param.u64 %a3, [out];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra NEXT;
st.shared.u32 [flag], 0;
NEXT:
bar.sync 0;
setp.eq.u32 %p1, %r1, 32;
@%p1 bra READ;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra END;
mad.wide.u32 %a4, %r2, 4, %a1;
st.global.u32 [%a4], %r2;
FENCE
atom.global.inc.u32 %r3, [%a2], 15;
setp.eq.u32 %p2, %r3, 15;
selp.u32 %r4, 2, 1, %p2;
fence.acq_rel.gpu;
st.volatile.shared.u32 [flag], %r4;
bra END;
READ:
ld.volatile.shared.u32 %r5, [flag];
setp.eq.u32 %p1, %r5, 0;
@%p1 bra READ;
fence.acq_rel.gpu;
setp.ne.u32 %p1, %r5, 2;
@%p1 bra END;
ld.global.u32 %r6, [%a1];
ld.global.u32 %r7, [%a1+4];
add.u32 %r6, %r6, %r7;
st.global.u32 [%a3], %r6;
END:
ret;
}
"""


@pytest.mark.parametrize("clusters", [2, 16])
def test_order_that_a_strong_access_hands_over_is_no_race(clusters: int) -> None:
    params = {"sums": {"buffer": 64}, "count": {"buffer": 4, "init": {"hex": "00000000"}}, "out": {"buffer": 4}}
    launch = {"grid": [clusters], "block": [64], "params": params}
    text = HANDED.replace("15;", f"{clusters - 1};")
    assert not check(text.replace("FENCE", "fence.acq_rel.gpu;"), launch).findings
    broken = check(text.replace("FENCE", ""), launch)
    assert broken.verdict != "proved"
    assert {f.code for f in broken.findings} == ({"RACE001"} if clusters == 2 else set())
