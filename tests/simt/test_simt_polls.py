"""Turns, grid barriers and last CTAs on words of global memory: CTAs of 128 threads, of which one or all poll."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.ptx import check

HEAD = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 work, .param .u64 lock)
.reqntid 128, 1, 1
{
	.reg .pred 	%p<6>;
	.reg .b32 	%r<16>;
	.reg .f32 	%f<5>;
	.reg .b64 	%rd<10>;
	.shared .align 4 .u32 last;
	ld.param.u64 	%rd1, [work];
	ld.param.u64 	%rd2, [lock];
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r3, %nctaid.x;
	setp.ne.u32 	%p1, %r1, 0;
	mul.wide.u32 	%rd3, %r1, 4;
	add.s64 	%rd4, %rd1, %rd3;
	mad.lo.u32 	%r4, %r2, 128, %r1;
	mul.wide.u32 	%rd5, %r4, 4;
	add.s64 	%rd6, %rd1, %rd5;
"""
ADD = """	setp.eq.u32 	%p4, %r2, 0;
	@%p4 bra 	$FIRST;
	ld.global.f32 	%f1, [%rd4];
	add.f32 	%f2, %f1, 0f3F800000;
$FIRST:
	st.global.f32 	[%rd4], %f2;
"""
RELEASE = """	bar.sync 	0;
	@%p1 bra 	$END;
	add.s32 	%r6, %r2, 1;
	st.release.gpu.global.u32 	[%rd2], %r6;
"""
EVERYONE = (
    """$LOOP:
	ld.acquire.gpu.global.u32 	%r5, [%rd2];
	setp.lt.u32 	%p2, %r5, %r2;
	@%p2 bra 	$LOOP;
"""
    + ADD
    + RELEASE
)
FENCED = EVERYONE.replace("ld.acquire.gpu", "ld.volatile").replace("bra 	$LOOP;", "bra 	$LOOP;\n	membar.gl;")
FENCED = FENCED.replace("st.release.gpu", "fence.acq_rel.gpu;\n	st.volatile")
LEADER = (
    """	@%p1 bra 	$GO;
$LOOP:
	ld.acquire.gpu.global.b32 	%r5, [%rd2];
	setp.ne.s32 	%p2, %r5, %r2;
	@%p2 bra 	$LOOP;
$GO:
	bar.sync 	0;
"""
    + ADD
    + RELEASE
)
SEMAPHORE = (
    """	mov.u32 	%r5, -1;
	@%p1 bra 	$LOOP;
	ld.global.acquire.gpu.b32 	%r5, [%rd2];
$LOOP:
	setp.ne.s32 	%p2, %r5, %r2;
	bar.red.and.pred 	%p3, 0, %p2;
	@!%p3 bra 	$GOT;
	@%p1 bra 	$LOOP;
	ld.global.acquire.gpu.b32 	%r5, [%rd2];
	bra 	$LOOP;
$GOT:
	bar.sync 	0;
"""
    + ADD
    + RELEASE
)
"""All threads vote whether to go on asking, of whom one asks, as CUTLASS's semaphore does."""
MEET = """	bar.sync 	0;
	@%p1 bra 	$IN{0};
	atom.add.release.gpu.global.u32 	%r7, [%rd2], 1;
	mul.lo.u32 	%r8, %r3, {0};
$POLL{0}:
	ld.acquire.gpu.global.u32 	%r9, [%rd2];
	setp.lt.u32 	%p2, %r9, %r8;
	@%p2 bra 	$POLL{0};
$IN{0}:
	bar.sync 	0;
"""
GRID = (
    "	st.global.f32 	[%rd6], 0f3F800000;\n"
    + MEET.format(1)
    + """	add.s32 	%r10, %r2, 1;
	rem.u32 	%r11, %r10, %r3;
	mad.lo.u32 	%r12, %r11, 128, %r1;
	mul.wide.u32 	%rd7, %r12, 4;
	add.s64 	%rd8, %rd1, %rd7;
	ld.global.f32 	%f3, [%rd8];
"""
    + MEET.format(2)
    + "	st.global.f32 	[%rd6], 0f40000000;\n"
)
LAST = """	st.global.f32 	[%rd6], 0f3F800000;
	bar.sync 	0;
	@%p1 bra 	$SET;
	fence.acq_rel.gpu;
	atom.add.global.u32 	%r7, [%rd2], 1;
	fence.acq_rel.gpu;
	add.s32 	%r8, %r3, -1;
	setp.eq.u32 	%p2, %r7, %r8;
	selp.u32 	%r9, 1, 0, %p2;
	st.shared.u32 	[last], %r9;
$SET:
	bar.sync 	0;
	ld.shared.u32 	%r10, [last];
	setp.eq.u32 	%p3, %r10, 0;
	@%p3 bra 	$END;
	ld.global.f32 	%f1, [%rd4];
	ld.global.f32 	%f2, [%rd4+512];
"""


def ask(body: str, *, ctas: int = 2) -> Answer:
    """The answer about a cluster that is the whole grid; the lock is 0 at first."""
    given = {
        "grid": [ctas], "cluster": [ctas],
        "params": {"work": {"buffer": 512 * ctas}, "lock": {"buffer": 4, "init": {"hex": "00000000"}}},
    }  # fmt: skip
    return check(HEAD + body + "$END:\n	ret;\n}\n", given, timeout=60)


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (EVERYONE, "proved"),
        (FENCED, "proved"),
        (LEADER, "proved"),
        pytest.param(SEMAPHORE, "proved", marks=pytest.mark.daily(days=4, least=0)),
        (GRID, "proved"),
        (LAST, "proved"),
    ],
    ids=["everyone", "fenced", "leader", "semaphore", "grid", "last"],
)
def test_what_is_right_is_clean(body: str, verdict: str) -> None:
    """256 polls of one word wait for one value each; whoever comes last is a path of its own."""
    found = ask(body)
    assert (found.verdict, found.findings) == (verdict, ()), found.reason


@pytest.mark.daily(one_of="a bug")
@pytest.mark.parametrize(
    ("body", "old", "new", "code", "line"),
    [
        (EVERYONE, "ld.acquire", "ld.relaxed", "RACE001", "[%rd4]"),
        (EVERYONE, "st.release", "st.relaxed", "RACE001", "[%rd4]"),
        (EVERYONE, "bar.sync 	0;", "", "RACE001", "[%rd4]"),
        (EVERYONE, "setp.lt", "setp.le", "DEAD004", "ld.acquire"),
        (EVERYONE, "add.s32 	%r6, %r2, 1", "mov.u32 	%r6, %r2", "DEAD004", "ld.acquire"),
        (FENCED, "	membar.gl;\n", "", "RACE001", "[%rd4]"),
        (FENCED, "fence.acq_rel.gpu;", "", "RACE001", "[%rd4]"),
        (LEADER, "ld.acquire", "ld.relaxed", "RACE001", "[%rd4]"),
        (LEADER, "ld.acquire.gpu", "ld", "RACE001", "ld.global.b32"),
        (LEADER, "$GO:\n	bar.sync 	0;", "$GO:", "RACE001", "[%rd4]"),
        (
            SEMAPHORE,
            "acquire.gpu.b32 	%r5, [%rd2];\n	bra",
            "relaxed.gpu.b32 	%r5, [%rd2];\n	bra",
            "RACE001",
            "[%rd4]",
        ),
        (SEMAPHORE, "st.release.gpu", "st.relaxed.gpu", "RACE001", "[%rd4]"),
        (SEMAPHORE, "st.release.gpu", "st.release.cta", "RACE010", "[%rd4]"),
        (SEMAPHORE, "bar.sync 	0;\n	@%p1 bra 	$END", "@%p1 bra 	$END", "RACE001", "[%rd4]"),
        (GRID, "ld.acquire", "ld.relaxed", "RACE001", "[%rd8]"),
        (GRID, "add.release", "add.relaxed", "RACE001", "[%rd8]"),
        (GRID, "%r8, %r3, 1;", "%r8, 1, 1;", "RACE001", "[%rd8]"),
        (GRID, "%r8, %r3, 2;", "%r8, %r3, 1;", "RACE001", "[%rd8]"),
        (GRID, "%r8, %r3, 1;", "%r8, %r3, 2;", "DEAD004", "ld.acquire"),
        (GRID, "$IN1:\n	bar.sync 	0;", "$IN1:", "RACE001", "[%rd8]"),
        (LAST, "	fence.acq_rel.gpu;\n	atom", "	atom", "RACE001", "ld.global"),
        (LAST, "	fence.acq_rel.gpu;\n	add", "	add", "RACE001", "ld.global"),
        (LAST, "%r8, %r3, -1", "%r8, %r3, -2", "RACE001", "ld.global"),
        (LAST, "$SET:\n	bar.sync 	0;", "$SET:", "RACE001", "[last]"),
    ],
)
def test_one_bug_is_found_at_its_line(body: str, old: str, new: str, code: str, line: str) -> None:
    assert old in body
    found = ask(body.replace(old, new, 1))
    of_code = [f for f in found.findings if f.code == code]
    assert found.verdict == "finding", found.reason
    text = (HEAD + body.replace(old, new, 1)).splitlines()
    lines = {a.span.line for f in of_code for a in f.accesses if a.span is not None}
    assert any(line in text[n - 1] for n in lines)


@pytest.mark.daily(one_of="a bug")
def test_a_turn_too_far_lets_the_third_one_in_early() -> None:
    """With two CTAs nobody would notice."""
    wrong = EVERYONE.replace("add.s32 	%r6, %r2, 1", "add.s32 	%r6, %r2, 2")
    assert not ask(wrong).findings
    assert "RACE001" in {f.code for f in ask(wrong, ctas=3).findings}
