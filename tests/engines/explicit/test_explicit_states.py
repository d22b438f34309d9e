"""States of mbarriers about which nobody can tell: the explicit engine and Z3 say so."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer
from mcheck.engines.z3.engine import answer as by_z3
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program

UNKNOWN = {
    "one of two states, by unknown contents": """
      mbarrier.arrive.shared::cta.b64 %rd1, [bar];
      mbarrier.arrive.shared::cta.b64 %rd2, [bar];
      ld.shared.u32 r1, [x];
      setp.eq.u32 %p1, r1, 0;
      selp.b64 %rd3, %rd1, %rd2, %p1;
      mbarrier.test_wait.shared::cta.b64 %p2, [bar], %rd3;""",
    "the pending count of a state and one": """
      mbarrier.arrive.noComplete.shared::cta.b64 %rd1, [bar], 1;
      add.u64 %rd2, %rd1, 1;
      mbarrier.pending_count.b64 r1, %rd2;""",
    "as many arrivals as are pending": """
      mbarrier.arrive.noComplete.shared::cta.b64 %rd1, [bar], 1;
      mbarrier.pending_count.b64 r1, %rd1;
      mbarrier.arrive.shared::cta.b64 _, [bar], r1;""",
}


def of(body: str) -> Program:
    """A program of one thread, which has an mbarrier for two arrivals."""
    objects = "{ .shared .align 8 .b64 bar; .shared .u32 x; }"
    return parse(f"PTX t\n{objects}\nP@cta 0 {{ mbarrier.init.shared::cta.b64 [bar], 2;{body} }}", "t.litmus")


@pytest.mark.parametrize("body", UNKNOWN.values(), ids=UNKNOWN)
def test_what_nobody_can_tell_of_a_state_is_unknown(body: str) -> None:
    program = of(body)
    for ask in (answer, by_z3):
        found = ask(program, load_model("ptx-9.0"), timeout=30)
        assert (found.verdict, found.findings) == ("unknown", ()), found


def test_a_choice_of_which_one_is_no_state_is_undefined() -> None:
    body = """
      mbarrier.arrive.shared::cta.b64 %rd1, [bar];
      ld.shared.u32 r1, [x];
      setp.eq.u32 %p1, r1, 0;
      selp.b64 %rd3, %rd1, 7, %p1;
      mbarrier.test_wait.shared::cta.b64 %p2, [bar], %rd3;"""
    program = of(body)
    for ask in (answer, by_z3):
        assert [f.code for f in ask(program, load_model("ptx-9.0"), timeout=30).findings] == ["UB210"]
