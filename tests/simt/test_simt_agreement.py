"""Small modules: the engine that enumerates executions finds in the followed program what the protocol engine finds."""

from __future__ import annotations

import pytest

from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.checking.run.single import load_model
from mcheck.frontend.ptx import launch_reader, reader
from mcheck.simt.trace_extraction import extract_traces

HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 buf)
{
	.reg .pred %p<4>;
	.reg .b32 %r<8>;
	.reg .b64 %rd<4>;
	.shared .align 128 .b8 tile[128];
	.shared .align 8 .b64 bar;
	ld.param.u64 %rd1, [buf];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, tile;
	mov.u32 %r3, bar;
	setp.ne.u32 %p1, %r1, 0;
"""
HAND_OVER = """
	@%p1 bra READ;
	st.shared.u32 [%r2], %r1;
	{fence}
	{barrier}
	bra END;
READ:
	{barrier}
	ld.shared.u32 %r5, [%r2];
END:
	ret;
}}
"""
STORE = """
	mad.lo.u32 %r5, %r1, 16, %r2;
	st.shared.u32 [%r5], %r1;
	{fence}
	bar.sync 0;
	@%p1 bra END;
	cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r2], 32;
	cp.async.bulk.commit_group;
	{wait}
	st.shared.u32 [%r2], %r1;
END:
	ret;
}}
"""
LOAD = """
	@%p1 bra READ;
	mbarrier.init.shared::cta.b64 [%r3], 1;
	fence.mbarrier_init.release.cluster;
READ:
	bar.sync 0;
	@%p1 bra WAIT;
	mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {bytes};
	cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 16, [%r3];
WAIT:
	mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], {parity};
	@!%p2 bra WAIT;
	ld.shared.u32 %r5, [%r2];
	ret;
}}
"""
MODULES = {
    "handed over": (HAND_OVER.format(fence="", barrier="barrier.sync 0;"), set()),
    "not handed over": (HAND_OVER.format(fence="membar.cta;", barrier=""), {"RACE001"}),
    "stored": (STORE.format(fence="fence.proxy.async;", wait="cp.async.bulk.wait_group.read 0;"), set()),
    "stored without a fence": (STORE.format(fence="", wait="cp.async.bulk.wait_group.read 0;"), {"RACE004"}),
    "stored, not awaited": (STORE.format(fence="fence.proxy.async;", wait=""), {"RACE003"}),
    "loaded": (LOAD.format(bytes=16, parity=0), set()),
    "loaded, more is expected": (LOAD.format(bytes=32, parity=0), {"DEAD003"}),
    "loaded, the phase before": (LOAD.format(bytes=16, parity=1), {"DEAD003", "RACE003"}),
}
"""Of two threads of a warp, with the errors that are to be found."""


@pytest.mark.parametrize("name", MODULES)
def test_the_engines_agree(name: str) -> None:
    """On the errors, and on that there is none."""
    text, expected = MODULES[name]
    module = reader.parse_module(HEAD + text)
    given = launch_reader.from_object({"grid": [1], "block": [2], "params": {"buf": {"buffer": 64}}})
    way = next(extract_traces(module, launch_reader.build_launch(module, given)))
    for engine in ("protocol", "explicit"):
        answer = ask(way.program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS), engine)
        assert {f.code for f in answer.findings if f.severity == "error"} == expected, engine
        assert answer.verdict == ("finding" if expected else "proved"), engine
