"""Scans by hand whose CTAs do something odd behind a look, and what the argument about looking grids says of them."""

from __future__ import annotations

from functools import partial

import pytest

from mcheck.base.budget import Limit
from mcheck.base.verdicts import Verdict
from mcheck.checking.modules.pairs.looking_grid import answer_looking
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from tests.fuzz.pair_answers import follow_pair, say_why

CTAS = 3
HEAD = """.version 8.8
.target sm_90
.address_size 64
.visible .entry scan(.param .u64 in, .param .u64 out, .param .u64 states, .param .u64 ticket)
{
  .reg .pred %zero, %other, %p, %q, %u, %v, %w;
  .reg .f32 %f<7>;
  .reg .b32 %me, %tile, %sum, %value, %status, %odd, %a;
  .reg .b64 %in, %out, %states, %ticket, %off, %mine, %word, %there;
  .shared .align 8 .b8 sh[64];
  ld.param.u64 %in, [in];
  ld.param.u64 %out, [out];
  ld.param.u64 %states, [states];
  ld.param.u64 %ticket, [ticket];
  mov.u32 %me, %tid.x;
  setp.ne.u32 %other, %me, 0;
  @%other bra DRAWN;
  atom.global.add.u32 %tile, [%ticket], 1;
  st.shared.u32 [sh], %tile;
DRAWN:
  bar.sync 0;
  ld.shared.u32 %tile, [sh];
  setp.eq.u32 %zero, %tile, 0;
  mul.wide.u32 %off, %tile, 4;
  add.u64 %in, %in, %off;
  ld.global.u32 %sum, [%in];
  add.u64 %out, %out, %off;
  mul.wide.u32 %off, %tile, 8;
  add.u64 %mine, %states, %off;
"""
LOOK = """LOOK:
  ld.relaxed.gpu.global.u64 %word, [%mine+-8];
  mov.b64 {%value, %status}, %word;
  setp.eq.u32 %p, %status, 0;
"""
END = """DONE:
  mov.b64 %word, {%sum, 2};
  @!%other st.relaxed.gpu.global.u64 [%mine], %word;
  @!%other st.global.u32 [%out], %sum;
  ret;
}
"""
WAIT = "  @%p bra LOOK;\n  add.u32 %sum, %sum, %value;\n"
VOTED = """  setp.eq.u32 %q, %status, 2;
  vote.sync.any.pred %u, %q, 3;
  and.b32 %odd, %value, 1;
  setp.eq.u32 %w, %odd, 1;
  @%u bra OTHER;
  vote.sync.any.pred %v, %w, 3;
  bra BOTH;
OTHER:
  setp.eq.u32 %v, %odd, 1;
BOTH:
"""
"""Afterwards %v is the same in both lanes, or not, as %u says."""
EXCHANGE = "  @%v bra NEXT;\n  vote.sync.any.pred %q, %w, 3;\nNEXT:\n"
GENERIC = """  mov.u32 %a, sh;
  add.u32 %a, %a, 16;
  cvt.u64.u32 %there, %a;
  cvta.shared.u64 %there, %there;
  setp.eq.and.u32 %q, %me, 0, %zero;
  @%q st.relaxed.gpu.u32 [%there], 5;
  setp.eq.and.u32 %q, %me, 1, %zero;
  @%q ld.shared.u32 %a, [sh+16];
"""


def say(behind: str, *, before: str = "", ahead: str = "", threads: int = 2) -> str:
    """``proved``, or why not, of a scan that does this ``before`` it looks, in all CTAs, and in all but the first
    ``ahead`` of the look and ``behind`` it.
    """
    module = parse_module(HEAD + before + "  @%zero bra DONE;\n" + ahead + LOOK + behind + END)
    zero = {"hex": "00" * 8 * CTAS}
    params = [
        {"buffer": 4 * CTAS}, {"buffer": 4 * CTAS}, {"buffer": 8 * CTAS, "init": zero},
        {"buffer": 4, "init": {"hex": "00000000"}},
    ]  # fmt: skip
    given = {"grid": [CTAS], "block": [threads], "params": {str(k): one for k, one in enumerate(params)}}
    launch = build_launch(module, from_object(given))
    found, why = say_why(lambda: answer_looking(module, launch, partial(follow_pair, module), Limit(20.0)))
    return why if found is None else "proved" if found.verdict is Verdict.PROVED else "not proved"


def test_right_ones_are_proved() -> None:
    assert say(WAIT) == "proved"
    assert say("  vote.sync.any.pred %q, %p, 3;\n  @%q bra LOOK;\n") == "proved"
    assert say(WAIT, before=GENERIC.replace("st.relaxed.gpu.u32 [%there], 5", "mov.u32 %a, 5")) == "proved"


@pytest.mark.parametrize("test", ["%status, 2", "%value, 7", "%sum, 5"])
def test_a_loop_without_a_look_may_not_end(test: str) -> None:
    assert "forever" in say(f"{WAIT}  setp.eq.u32 %q, {test};\nSPIN:\n  @%q bra SPIN;\n")


@pytest.mark.parametrize("back", ["  vote.sync.any.pred %u, %q, 3;\n  @%u bra OUTER;\n", "  @%q bra OUTER;\n"])
def test_a_loop_around_a_look_ends_on_ways_without_it(back: str) -> None:
    """A lane that has found the status 1 and an odd value goes round without another look, forever."""
    wait = "  @%p bra LOOK;\nSKIP:\n  and.b32 %odd, %value, 1;\n  setp.eq.u32 %w, %odd, 1;\n"
    again = f"  setp.eq.u32 %q, %status, 1;\n{back}  bar.warp.sync 3;\n"
    early = "  setp.ne.u32 %w, %me, %me;\n  mov.b64 %word, {%sum, 1};\n  @!%other st.relaxed.gpu.b64 [%mine], %word;\n"
    assert "forever" in say(wait + again, before=early, ahead="OUTER:\n  @%w bra SKIP;\n")
    assert say(wait + again, before=early, ahead="OUTER:\n") == "proved"


def test_special_registers_in_vectors_differ_by_lane() -> None:
    votes = "  setp.eq.u32 %q, %status, 2;\n  vote.sync.ballot.b32 %a, %q, 3;\n"
    apart = "  mov.b64 %there, {%a, %tid.x};\n  setp.eq.u64 %v, %there, 3;\n"
    assert "depends on what it finds" in say(WAIT + votes + apart + EXCHANGE)
    assert say(WAIT + votes + apart.replace("%tid.x", "%ntid.x") + EXCHANGE) == "proved"


@pytest.mark.parametrize("between", ["  @%u bra NEAR;\nNEAR:\n", ""])
def test_lanes_that_may_part_on_one_way_exchange_nothing_behind(between: str) -> None:
    """9.7.13.9: all lanes of the mask have to execute the vote."""
    assert "depends on what it finds" in say(VOTED + between + EXCHANGE)


def test_products_of_matrices_take_all_lanes() -> None:
    """9.7.15: all threads of the warp have to execute the same ``mma``."""
    product = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
    body = (
        f"  @%p bra NEXT;\n  {product} {{%f1,%f2,%f3,%f4}}, {{%a,%a,%a,%a}}, {{%a,%a}}, {{%f1,%f2,%f3,%f4}};\nNEXT:\n"
    )
    assert "depends on what it finds" in say(body, threads=32)


def test_stores_to_shared_memory_are_no_words() -> None:
    """A strong store by a generic address to shared memory, beside a weak load by another thread."""
    assert say(WAIT, before=GENERIC) == "the pair is left open"


def test_a_wait_for_what_is_added_is_not_called_stuck() -> None:
    count = (
        "COUNT:\n  ld.relaxed.gpu.global.u64 %there, [%states+16];\n  setp.eq.u64 %q, %there, 0;\n  @%q bra COUNT;\n"
    )
    assert "otherwise" in say(WAIT + count, before="  red.relaxed.gpu.global.add.u64 [%states+16], 1;\n")
    assert "need not have begun" in say(WAIT + count)


@pytest.mark.parametrize("store", ["st.relaxed.gpu.global.b128 [%mine], %x", "atom.global.exch.b128 %x, [%mine], %x"])
def test_stores_of_128_bits_to_a_word_count(store: str) -> None:
    """They are no stores of words, and a look would find what none of those has left."""
    wide = f"  .reg .b128 %x;\n  mov.b64 %word, 3;\n  mov.b128 %x, {{%word, %word}};\n  @%zero {store};\n"
    assert "accessed otherwise" in say(WAIT, before=wide)
