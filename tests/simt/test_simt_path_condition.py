"""What data decides is decided once: comparisons of the same data, and votes about it, are of one mind."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.execution.path_literals import extract_literal

HEAD = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 src, .param .u64 out, .param .u64 count)
{
  .reg .pred %p<8>, %q<8>;
  .reg .b32 %r<32>;
  .reg .f32 %f<4>;
  .reg .b64 %rd<16>;
  .shared .align 16 .b8 tile[512];
  ld.param.u64 %rd1, [src];
  ld.param.u64 %rd2, [out];
  ld.param.u64 %rd3, [count];
  mov.u32 %r1, %tid.x;
  shl.b32 %r2, %r1, 2;
  mov.u32 %r3, tile;
  add.u32 %r4, %r3, %r2;
  xor.b32 %r5, %r4, 128;
"""
HANDED = """
  ld.global.u32 %r10, [%rd1];
  ld.global.u32 %r11, [%rd1+4];
  ld.global.f32 %f1, [%rd1];
  st.shared.u32 [%r4], %r1;
  FIRST
  @!%p1 bra BEHIND;
  bar.sync 0;
BEHIND:
  SECOND
  @!%q1 bra DONE;
  ld.shared.u32 %r12, [%r5];
DONE:
  ret;
}
"""
"""Threads read what others have written if ``q1`` holds, and have waited for each other if ``p1`` does."""


def ask(text: str, *, threads: int = 64) -> Answer:
    """The answer about a kernel in one CTA."""
    read = parse_module(HEAD + text)
    given = {"grid": [1], "block": [threads], "params": {"src": {"buffer": 4096}, "out": {"buffer": 4096},
             "count": {"buffer": 4, "init": {"hex": "00000000"}}}}  # fmt: skip
    question = Question(about=Completeness.FINDINGS, timeout=60)
    return answer_launch(read, build_launch(read, from_object(given)), load_model("ptx-9.0"), question)


def codes(found: Answer) -> set[str]:
    return {f.code for f in found.findings}


SAME = [
    ("setp.gt.s32 %p1, %r10, 0;", "mov.pred %q1, %p1;"),
    ("setp.gt.s32 %p1, %r10, 0;", "setp.ge.s32 %q1, %r10, 1;"),
    ("setp.gt.s32 %p1, %r10, 0;", "setp.lt.s32 %q2, 0, %r10; and.pred %q1, %q2, %q2;"),
    ("setp.gt.s32 %p1, %r10, 0;", "setp.le.s32 %q2, %r10, 0; not.pred %q1, %q2;"),
    ("setp.gt.s32 %p1, %r10, 0;", "setp.gt.s32 %q1, %r10, 5;"),
    ("setp.gt.s32 %p1, %r10, 0;", "setp.eq.s32 %q1, %r10, 7;"),
    ("setp.lo.u32 %p1, %r10, 9;", "setp.ls.u32 %q1, %r10, 8;"),
    ("setp.ne.b32 %p1, %r10, 0;", "setp.eq.u32 %q1, %r10, 3;"),
    ("setp.lt.u32 %p1, %r10, %r11;", "setp.gt.u32 %q1, %r11, %r10;"),
    ("setp.gt.f32 %p1, %f1, 0f00000000;", "setp.leu.f32 %q2, %f1, 0f00000000; not.pred %q1, %q2;"),
    (
        "setp.gt.s32 %p2, %r10, 0; setp.gt.s32 %p3, %r11, 0; or.pred %p1, %p2, %p3;",
        "setp.gt.s32 %p2, %r10, 0; setp.gt.s32 %p3, %r11, 0; and.pred %q1, %p2, %p3;",
    ),
    (
        "setp.gt.s32 %p2, %r10, 0; setp.gt.s32 %p3, %r11, 0; or.pred %p1, %p2, %p3;",
        "setp.gt.s32 %q1, %r11, 4;",
    ),
    (
        "setp.gt.s32 %p2, %r10, 0; setp.gt.s32 %p3, %r11, 0; and.pred %p1, %p2, %p3;",
        "mov.pred %q1, %p3; @!%p2 bra DONE;",
    ),
    ("setp.gt.s32 %p1, %r10, 0;", "vote.sync.any.pred %q1, %p1, -1;"),
    ("setp.gt.s32 %p1, %r10, 0;", "vote.sync.ballot.b32 %r13, %p1, -1; setp.ne.u32 %q1, %r13, 0;"),
]
"""Where the second holds the first does: by each of them, all lanes go the same way."""
OTHERS = [
    ("setp.gt.s32 %p1, %r10, 5;", "setp.gt.s32 %q1, %r10, 0;"),
    ("setp.gt.s32 %p1, %r10, 0;", "setp.gt.s32 %q1, %r11, 0;"),
    ("setp.gt.s32 %p1, %r10, 0;", "setp.gt.u32 %q1, %r10, 0;"),
    ("setp.gt.f32 %p1, %f1, 0f00000000;", "setp.le.f32 %q2, %f1, 0f00000000; not.pred %q1, %q2;"),
    ("setp.gt.s32 %p1, %r10, 0;", "add.s32 %r10, %r10, 1; setp.gt.s32 %q1, %r10, 0;"),
    ("setp.gt.s32 %p1, %r10, 0;", "ld.global.u32 %r10, [%rd1+8]; setp.gt.s32 %q1, %r10, 0;"),
    ("setp.gt.s32 %p1, %r10, 0;", "@%p1 mov.u32 %r10, %r11; setp.le.s32 %q1, %r10, 0;"),
    (
        "setp.gt.s32 %p2, %r10, 0; setp.gt.s32 %p3, %r11, 0; and.pred %p1, %p2, %p3;",
        "or.pred %q1, %p2, %p3;",
    ),
    ("setp.gt.s32 %p1, %r10, 0;", "not.pred %q2, %p1; vote.sync.any.pred %q1, %q2, -1;"),
    (
        "setp.gt.s32 %p1, %r11, 0;",
        "setp.gt.s32 %q2, %r10, 0; vote.sync.any.pred %p2, %q2, -1; @!%p2 bra DONE; not.pred %q1, %q2;",
    ),
    ("setp.gt.s32 %p2, %r10, 0; setp.gt.s32 %p3, %r11, 0; and.pred %p1, %p2, %p3;", "mov.pred %q1, %p2;"),
    ("setp.gt.s32 %p2, %r10, 0; setp.gt.s32 %p3, %r11, 0; and.pred %p1, %p2, %p3;", "mov.pred %q1, %p3;"),
]
"""Some data makes the second hold and not the first."""


@pytest.mark.daily
@pytest.mark.parametrize(("first", "second"), SAME)
def test_who_reads_has_waited(first: str, second: str) -> None:
    found = ask(HANDED.replace("FIRST", first).replace("SECOND", second))
    assert found.verdict == "bounded", found.findings


@pytest.mark.daily
@pytest.mark.parametrize(("first", "second"), OTHERS)
def test_who_reads_may_not_have_waited(first: str, second: str) -> None:
    assert codes(ask(HANDED.replace("FIRST", first).replace("SECOND", second))) >= {"RACE001"}


QUEUE = """
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd5, %rd1, %rd4;
  ld.global.u32 %r10, [%rd5];
  setp.gt.s32 %p1, %r10, 0;
  vote.sync.ballot.b32 %r11, %p1, -1;
  and.b32 %r12, %r1, 31;
  setp.ne.s32 %p2, %r12, 0;
  setp.eq.s32 %p3, %r11, 0;
  or.pred %p4, %p2, %p3;
  mov.u32 %r13, 0;
  @%p4 bra DRAWN;
  popc.b32 %r14, %r11;
  atom.global.add.u32 %r13, [%rd3], %r14;
DRAWN:
  shfl.sync.idx.b32 %r15, %r13, 0, 31, -1;
  setp.lt.s32 %p5, %r10, 1;
  @%p5 bra DONE;
  mov.u32 %r16, %lanemask_lt;
  and.b32 %r17, %r11, %r16;
  popc.b32 %r18, %r17;
  add.s32 %r19, %r15, %r18;
  mul.wide.u32 %rd6, %r19, 4;
  add.s64 %rd7, %rd2, %rd6;
  st.global.u32 [%rd7], %r10;
DONE:
  ret;
}
"""
"""What is positive goes to a list, at places that one lane of each warp draws for all of it."""


@pytest.mark.daily
@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("", "", set()),
        ("[%rd3], %r14", "[%rd3], 1", {"RACE001"}),  # one place for all of a warp
        ("idx.b32 %r15, %r13, 0", "idx.b32 %r15, %r12, 0", {"RACE001"}),  # nobody has drawn this one
        ("add.s32 %r19, %r15, %r18", "mov.u32 %r19, %r18", {"RACE001"}),  # every warp begins with the first place
    ],
)
def test_places_that_a_warp_draws_from_a_queue(old: str, new: str, wanted: set[str]) -> None:
    assert old in QUEUE
    found = ask(QUEUE.replace(old, new) if old else QUEUE)
    assert codes(found) == wanted
    assert found.verdict == ("finding" if wanted else "bounded")


VOTED = """
  mul.wide.u32 %rd4, %r1, 4;
  add.s64 %rd5, %rd1, %rd4;
  ld.global.u32 %r10, [%rd5];
  setp.gt.s32 %p1, %r10, 0;
  @!%p1 bra CAST;
  st.shared.u32 [%r4], %r1;
CAST:
  barrier.cta.red.or.pred %p2, 0, %p1;
  @!%p2 bra DONE;
  setp.gt.s32 %p3, %r10, 0;
  @!%p3 bra DONE;
  bar.sync 1, 64;
  ld.shared.u32 %r12, [%r5];
DONE:
  ret;
}
"""


def test_a_vote_at_a_barrier_is_of_one_mind_with_the_branches_around_it() -> None:
    found = ask(VOTED)
    assert found.verdict == "bounded", found.findings
    assert codes(ask(VOTED.replace("barrier.cta.red.or.pred %p2, 0, %p1;", "mov.pred %p2, %p1;").replace(
        "bar.sync 1, 64;", ""))) == {"RACE001"}  # fmt: skip


def test_no_data_leads_to_a_trap_which_says_something_of_it() -> None:
    text = HANDED.replace("FIRST", "setp.gt.s32 %p2, %r10, 0; @%p2 bra FINE; trap;\nFINE: setp.gt.s32 %p1, %r10, 0;")
    assert (
        ask(text.replace("SECOND", "mov.pred %q1, 1;").replace("mov.pred %q1, 1", "setp.ge.u32 %q1, %r1, 0")).verdict
        == "proved"
    )
    wrong = text.replace("setp.gt.s32 %p1, %r10, 0", "setp.gt.s32 %p1, %r10, 1").replace("SECOND", "mov.pred %q1, %p2;")
    assert codes(ask(wrong)) == {"RACE001"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("setp.lt.s32 %p1, %r1, 5;", "setp.le.s32 %p1, %r1, 4;"),
        ("setp.ge.u32 %p1, %r1, 5;", "setp.hi.u32 %p1, %r1, 4;"),
        ("setp.gt.s64 %p1, %rd1, -3;", "setp.lt.s64 %p1, -3, %rd1;"),
        ("setp.eq.b32 %p1, %r1, -1;", "setp.eq.u32 %p1, %r1, 4294967295;"),
    ],
)
def test_literals_that_say_the_same(first: str, second: str) -> None:
    body = parse_module(HEAD + first + second + "ret; }").functions["k"].body
    made = [extract_literal(s) for s in body if s.opcode.name == "setp"]
    assert made[0] == made[1] is not None
