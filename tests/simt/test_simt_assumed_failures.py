"""Polls that may save a wait: what the way without the wait orders, and answers that decide more than that."""

from __future__ import annotations

import pytest

from mcheck.checking.run.result import Result
from mcheck.ptx import check

COPY = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry copy(.param .u64 .ptr .global .align 16 source, .param .u64 .ptr .global .align 16 target)
{
	.reg .pred %p, %q, %z;
	.reg .b32 %r<9>;
	.reg .b64 %d<4>;
	.shared .align 128 .b8 tile[256];
	.shared .align 8 .b64 full;
	.shared .align 8 .b64 other;
	ld.param.u64 %d0, [source];
	ld.param.u64 %d1, [target];
	mov.u32 %r0, %tid.x;
	setp.ne.u32 %p, %r0, 0;
	mov.u32 %r1, full;
	mov.u32 %r2, tile;
	mov.u32 %r6, other;
	@%p bra BEGUN;
	mbarrier.init.shared::cta.b64 [%r1], 1;
	mbarrier.init.shared::cta.b64 [%r6], 1;
	fence.mbarrier_init.release.cluster;
	mbarrier.arrive.shared::cta.b64 _, [%r6];
BEGUN:
	bar.sync 0;
	@%p bra WAITING;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 128;
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%d0], 128, [%r1];
WAITING:
	// wait
	shl.b32 %r3, %r0, 2;
	add.u32 %r4, %r2, %r3;
	ld.shared.u32 %r5, [%r4];
	cvt.u64.u32 %d3, %r3;
	add.u64 %d2, %d1, %d3;
	st.global.u32 [%d2], %r5;
	// after
	ret;
}
"""
STRONG, RELAXED = "mbarrier.try_wait.parity.shared::cta.b64", "mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64"


def saved(poll: str, wait: str, hint: str = "") -> str:
    """A poll, and a waiting loop that it saves if it succeeds."""
    return f"""{poll} %q, [%r1], 0{hint};
	@%q bra OVER;
AGAIN:
	{wait} %q, [%r1], 0;
	@!%q bra AGAIN;
OVER:"""


@pytest.mark.parametrize("hint", ["", ", 1000"], ids=["same", "with a time"])
@pytest.mark.parametrize(
    ("poll", "wait", "race"),
    [(STRONG, STRONG, False), (RELAXED, STRONG, True), (STRONG, RELAXED, True), (RELAXED, RELAXED, True)],
    ids=["both acquire", "relaxed poll", "relaxed loop", "both relaxed"],
)
def test_either_way_orders(poll: str, wait: str, race: bool, hint: str) -> None:
    found = _check(saved(poll, wait, hint))
    assert {f.code for f in found.findings} == ({"RACE003"} if race else set())
    assert found.verdict == ("finding" if race else "proved")


def test_the_finding_is_about_the_weaker_of_the_two() -> None:
    (poll,) = (n for n, line in enumerate(COPY.splitlines(), 1) if "// wait" in line)
    assert f"after line {poll}," in str([f.missing for f in _check(saved(RELAXED, STRONG, ", 1000")).findings])
    assert f"after line {poll + 3}," in str([f.missing for f in _check(saved(STRONG, RELAXED, ", 1000")).findings])


@pytest.mark.daily
@pytest.mark.parametrize(
    "wait",
    [
        pytest.param(
            f"""mov.u32 %r7, 0;
	@%p bra HANDED;
	{STRONG} %q, [%r1], 0, 1000;
	selp.u32 %r7, 1, 0, %q;
HANDED:
	shfl.sync.idx.b32 %r8, %r7, 0, 31, -1;
	setp.ne.s32 %q, %r8, 0;
	@%q bra OVER;
AGAIN:
	{STRONG} %q, [%r1], 0;
	@!%q bra AGAIN;
OVER:""",
            id="handed to other lanes",
        ),
        pytest.param(
            f"""{STRONG} %q, [%r1], 0, 1000;
	{STRONG} %z, [%r6], 0, 1000;
	@%q bra OVER;
AGAIN:
	{STRONG} %q, [%r6], 0;
	@!%q bra AGAIN;
OVER:""",
            id="of another mbarrier",
        ),
        pytest.param(
            f"""{RELAXED} %q, [%r1], 0, 1000;
	{STRONG} %z, [%r1], 0, 1000;
	@%q bra OVER;
AGAIN:
	{STRONG} %q, [%r1], 0;
	@!%q bra AGAIN;
OVER:""",
            id="two polls of a phase",
        ),
        pytest.param(
            f"""{STRONG} %z, [%r1], 0, 1000;
	selp.u32 %r7, 128, 0, %z;
	{saved(STRONG, STRONG, ", 1000")}
	add.u32 %r2, %r2, %r7;""",
            id="an address",
        ),
        pytest.param(
            f"""{STRONG} %z, [%r1], 0, 1000;
	@%z bra OVER;
AGAIN:
	{STRONG} %q, [%r1], 0;
	@!%q bra AGAIN;
OVER:
	@%z mbarrier.inval.shared::cta.b64 [%r1];""",
            id="a later branch",
        ),
    ],
)
def test_an_answer_that_decides_more_is_not_proved(wait: str) -> None:
    assert _check(wait).verdict in ("finding", "bounded", "unknown")


TWO = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry two()
{
	.reg .pred %p;
	.reg .b32 %r<4>;
	.reg .b64 %d;
	.shared .align 8 .b64 full;
	.shared .b32 x;
	mov.u32 %r0, %tid.x;
	setp.eq.u32 %p, %r0, 0;
	@%p bra FIRST;
	setp.eq.u32 %p, %r0, 32;
	@%p bra SECOND;
	ret;
FIRST:
	mbarrier.init.shared::cta.b64 [full], 1;
	// first
	st.shared.u32 [x], 1;
	mbarrier.arrive.shared::cta.b64 _, [full];
	ret;
SECOND:
	// second
	ret;
}
"""
READ = "ld.shared.u32 %r2, [x];"


def poll_then(between: str, parity: int) -> str:
    """A poll, something, and the wait that the poll saves if it succeeds."""
    return f"""{STRONG} %p, [full], {parity};
	{between}
	@%p bra OVER;
AGAIN:
	{STRONG} %p, [full], {parity};
	@!%p bra AGAIN;
OVER:"""


AWAITED = f"""FREE:
	{STRONG} %p, [full], 0;
	@!%p bra FREE;"""


@pytest.mark.parametrize(
    ("first", "second", "verdicts"),
    [
        pytest.param("bar.sync 0;", "bar.sync 0;" + poll_then("", 0) + READ, ("proved",), id="right"),
        pytest.param(
            "bar.sync 0;" + AWAITED, "bar.sync 0;" + poll_then("mbarrier.arrive.shared::cta.b64 _, [full];", 1) + READ,
            ("finding", "bounded"), id="the own arrival makes it another phase",
        ),
        pytest.param(
            "bar.sync 0;" + AWAITED + "bar.sync 0;",
            "bar.sync 0;mbarrier.arrive.shared::cta.b64 _, [full];" + poll_then("bar.sync 0;", 1) + READ,
            ("finding", "bounded"), id="a barrier behind the poll",
        ),
        pytest.param("bar.sync 0;", poll_then("bar.sync 0;", 0) + READ, ("finding",), id="before the init"),
        pytest.param(
            "bar.sync 0;", f"bar.sync 0;{STRONG} %p, [full], 0; @%p st.shared.u32 [x], 2;", ("finding", "bounded"),
            id="a poll for a last store",
        ),
        pytest.param(
            "bar.sync 0;", f"bar.sync 0;{STRONG} %p, [full], 1; @!%p bra OVER; st.shared.u32 [x], 2; OVER:",
            ("finding", "bounded"), id="a poll for a last block",
        ),
        pytest.param(
            "bar.sync 0;", "bar.sync 0;mov.b64 %d, 0;mbarrier.test_wait.shared::cta.b64 %p, [full], %d;", ("finding",),
            id="no state",
        ),
    ],
)  # fmt: skip
def test_a_poll_is_about_the_phase_of_the_wait(first: str, second: str, verdicts: tuple[str, ...]) -> None:
    text = TWO.replace("// first", first).replace("// second", second)
    assert check(text, {"grid": [1], "block": [33], "params": {}}).verdict in verdicts


def _check(wait: str) -> Result:
    buffers = {"source": {"buffer": 128}, "target": {"buffer": 128}}
    return check(COPY.replace("// wait", wait), {"grid": [1], "block": [32], "params": buffers})
