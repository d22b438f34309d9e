"""Atomics that nobody reads need not be followed; what is wrong with them is found all the same."""

from __future__ import annotations

from random import Random

import pytest

from mcheck.cat.library import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ir import ops
from mcheck.ptx import check
from mcheck.simt.trace_extraction import extract_traces
from mcheck.simt.traces import unread_atomics

SUMS = """.version 8.0
.target sm_90
.address_size 64
.visible .entry sums(.param .u64 out)
.reqntid 128, 1, 1
{
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .reg .f32 %f<4>;
  .reg .pred %p<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  red.relaxed.gpu.global.add.f32 [%rd3], 0f3F800000;
  AGAIN
  ret;
}
"""
OTHERS = "xor.b32 %r2, %r1, 1; mul.wide.u32 %rd4, %r2, 4; add.u64 %rd5, %rd1, %rd4;"


def ask(again: str, size: int = 512) -> tuple[str, frozenset[str], int]:
    """The verdict, the codes, and how many atomics the engine is given."""
    text, given = SUMS.replace("AGAIN", again), {"grid": 1, "params": {"out": {"buffer": size}}}
    read = parse_module(text, "sums.ptx")
    program = next(extract_traces(read, build_launch(read, from_object(given)))).program
    left = sum(isinstance(op, ops.Atomic) for thread in program.threads for op in thread.code)
    found = check(text, given)
    return found.verdict, frozenset(f.code for f in found.findings), left


@pytest.mark.parametrize("again", ["", "red.release.gpu.global.add.f32 [%rd3], 0f3F800000;"])
def test_words_of_one_thread_are_not_followed(again: str) -> None:
    assert ask(again) == ("proved", frozenset(), 0)


@pytest.mark.daily(days=4, least=0)
@pytest.mark.parametrize(
    ("again", "code"),
    [
        (OTHERS + "ld.global.f32 %f1, [%rd5];", "RACE001"),
        (OTHERS + "st.global.u8 [%rd5 + 1], %r1;", "RACE002"),
    ],
)
def test_what_others_touch_is(again: str, code: str) -> None:
    verdict, codes, left = ask(again)
    assert (verdict, left >= 128) == ("finding", True)
    assert code in codes


@pytest.mark.parametrize(
    ("again", "left"),
    [
        ("red.relaxed.gpu.global.add.f32 [%rd5], 0f3F800000;", 0),
        ("atom.relaxed.cta.global.exch.b32 %r3, [%rd5], %r1;", 0),
        ("atom.relaxed.gpu.global.cas.b32 %r3, [%rd5], 1, %r1;", 0),
        ("red.release.gpu.global.add.f32 [%rd5], 0f3F800000;", 256),
        ("fence.acq_rel.gpu; red.relaxed.gpu.global.add.f32 [%rd5], 0f3F800000;", 256),
    ],
)
def test_words_of_several_threads_are_followed_where_they_may_synchronise(again: str, left: int) -> None:
    assert ask(OTHERS + again) == ("proved", frozenset(), left)


def test_other_words_of_the_buffer_stay_unfollowed() -> None:
    first = "setp.ne.u32 %p1, %r1, 5; @%p1 bra OUT; st.global.u32 [%rd1], %r1; OUT:"
    found = ask(OTHERS + "red.relaxed.gpu.global.add.f32 [%rd5], 0f3F800000;" + first)
    assert found == ("finding", frozenset({"RACE001"}), 2)


def test_a_word_outside_the_buffer_is_told() -> None:
    verdict, codes, _ = ask("", 256)
    assert (verdict, codes) == ("finding", {"UB103"})


KINDS = (
    "red.relaxed.{scope}.global.add.u32 [%rd1 + {at}], 1;",
    "atom.relaxed.{scope}.global.exch.b32 %r2, [%rd1 + {at}], 7;",
    "atom.relaxed.{scope}.global.cas.b32 %r2, [%rd1 + {at}], 0, 7;",
)
OTHER_KINDS = (
    "st.global.u32 [%rd1 + {other}], 1;",
    "ld.global.u32 %r3, [%rd1 + {other}]; st.global.u32 [%rd1 + 32], %r3;",
    "st.relaxed.gpu.global.u32 [%rd1 + {other}], 1;",
    "bar.warp.sync 0xffffffff;",
    "fence.acq_rel.gpu;",
    "st.global.u8 [%rd1 + {at}], 1;",
)


def random_kernel(seed: int) -> str:
    """A warp whose first two lanes each do a few things to some words."""
    random = Random(seed)
    parts = []
    for lane in range(2):
        found = []
        for _ in range(random.randint(1, 3)):
            kind = random.choice(KINDS if random.random() < 0.7 else OTHER_KINDS[:3])
            at, scope = 4 * random.randrange(2), random.choice(("cta", "gpu", "sys"))
            found.append(kind.format(at=at, other=16 + 4 * random.randrange(2), scope=scope))
        if random.random() < 0.3:
            found.insert(random.randrange(len(found) + 1), random.choice(OTHER_KINDS[4:]).format(at=0))
        parts.append(f"setp.ne.u32 %p1, %r1, {lane}; @%p1 bra OUT{lane}; {' '.join(found)} OUT{lane}:")
        parts.append(OTHER_KINDS[3] if random.random() < 0.3 else "")
    body = SUMS.replace("AGAIN", "\n".join(parts)).replace(".reqntid 128", ".reqntid 32")
    return body.replace("  red.relaxed.gpu.global.add.f32 [%rd3], 0f3F800000;\n", "")


@pytest.mark.daily(days=4)
@pytest.mark.parametrize("start", range(0, 120, 30))
def test_answers_are_those_about_all_atomics(start: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = 0
    for seed in range(start, start + 30):
        text = random_kernel(seed)
        given = {"grid": 1, "params": {"out": {"buffer": 64}}}
        answers = []
        for least in (1 << 30, -1):
            monkeypatch.setattr(unread_atomics, "MIN_DROPPED", least)
            read = parse_module(text, "some.ptx")
            launch = build_launch(read, from_object(given))
            program = next(extract_traces(read, launch)).program
            count = sum(isinstance(op, ops.Atomic) for thread in program.threads for op in thread.code)
            found = answer_launch(
                read, launch, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=60)
            )
            answers.append((found.verdict, {f.code for f in found.findings}))
            dropped += count if least > 0 else -count
        assert answers[0] == answers[1], text
    assert dropped >= 20
