"""UB106 is about copies that nothing tells apart: not about one that an mbarrier has told of before the next."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.engines.concrete.machine import machine
from mcheck.engines.concrete.schedule import run
from mcheck.frontend.litmus import parse

RING = """PTX ring
{{
  .global .align 16 .b8 src[64];
  .shared .align 16 .b8 buf[16];
  .shared .align 8 .b64 full, empty;
}}
P@cta 0, warp 0, lane 0 {{
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [empty], 1;
  bar.sync 0;
  for k in 0..3 {{
    {wait}
    cp.async.cg.shared.global [buf], [src + 16*k], 16;
    {tell}
  }}
  cp.async.wait_all;
}}
C@cta 0, warp 1, lane 0 {{
  bar.sync 0;
  for k in 0..{rounds} {{
    await mbarrier.try_wait.parity.shared::cta.b64 [full], k%2;
    ld.shared.u32 r0, [buf];
    mbarrier.arrive.shared::cta.b64 _, [empty];
  }}
}}
"""
WAIT = "await mbarrier.try_wait.parity.shared::cta.b64 [empty], (k%2)^1;"
TELL = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full];"
RINGS = [(WAIT, TELL, 3, set()), ("", TELL, 1, {"RACE003"}), ("", "", 0, {"UB106"})]


@pytest.mark.daily(days=3)
@pytest.mark.parametrize("engine", ["explicit", "protocol", "z3"])
@pytest.mark.parametrize(("wait", "tell", "rounds", "codes"), RINGS)
def test_copies_to_one_place(engine: str, wait: str, tell: str, rounds: int, codes: set[str]) -> None:
    program = parse(RING.format(wait=wait, tell=tell, rounds=rounds), "ring.litmus")
    given = ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=60), engine)
    assert {f.code for f in given.findings if f.kind != "deadlock" and f.severity == "error"} == codes
    assert given.verdict == ("finding" if codes else "proved")


@pytest.mark.parametrize(("wait", "tell", "rounds", "codes"), RINGS)
def test_the_executor_says_so_too(wait: str, tell: str, rounds: int, codes: set[str]) -> None:
    m = machine(parse(RING.format(wait=wait, tell=tell, rounds=rounds), "ring.litmus"))
    run(m)
    assert {f.code for f in m.findings} & {"UB106"} == codes & {"UB106"}
