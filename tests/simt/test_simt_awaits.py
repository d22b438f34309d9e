"""Loads that are repeated until a value comes: what they wait for, and what is found where it never comes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from mcheck.base.budget import Limit
from mcheck.cat import load_model
from mcheck.checking.modules import answer as answering
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx import module as ptx
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.ptx import check
from mcheck.simt.execution import cluster
from mcheck.simt.execution.waits import poll_progress
from mcheck.simt.execution.waits.polling_loops import is_spin_loop
from mcheck.simt.execution.waits.value_tests import AwaitedValue
from mcheck.simt.execution.waits.value_waits import find_awaited
from mcheck.simt.trace_extraction import PathChoices, Runner
from tests.simt.idioms import HEAD, ZEROS

CORPUS = Path(__file__).parent / "corpus" / "cuda"


@pytest.mark.daily
@pytest.mark.parametrize(
    ("old", "new", "verdict", "code"),
    [
        ("", "", "proved", ""),
        (r"ld\.acquire\.gpu", "ld.relaxed.gpu", "finding", "RACE001"),
        (r"st\.release\.gpu", "st.release.cta", "finding", "RACE010"),
        (r"st\.release\.gpu\.b32 .*;", "", "finding", "DEAD004"),
    ],
)
def test_a_chain_of_flags(old: str, new: str, verdict: str, code: str) -> None:
    text = (CORPUS / "flag_chain.ptx").read_text(encoding="utf-8")
    read = parse_module(re.sub(old, new, text, count=1) if old else text)
    given = build_launch(read, from_object(json.loads((CORPUS / "flag_chain.json").read_text(encoding="utf-8"))))
    found = answer_launch(read, given, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=60))
    assert found.verdict == verdict, found.reason
    assert not code or code in {f.code for f in found.findings}


SIGNED_LOAD = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flag) .reqntid 2, 1, 1 {
  .reg .pred %p<3>; .reg .b32 %r<4>; .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [data];
  ld.param.u64 %rd2, [flag];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra AGAIN;
  st.relaxed.gpu.global.u32 [%rd2], 0x80000000;
  st.global.u32 [%rd1], 1;
  st.release.gpu.global.u32 [%rd2], 6;
  ret;
AGAIN:
  ld.acquire.gpu.global.LOADED %r2, [%rd2];
  setp.lt.COMPARED %p2, %r2, 5;
  @%p2 bra AGAIN;
  ld.global.u32 %r3, [%rd1];
  ret;
}
"""


@pytest.mark.parametrize("loaded", ["u32", "s32", "b32"])
@pytest.mark.parametrize(("compared", "verdict"), [("u32", "finding"), ("s32", "proved")])
def test_the_comparison_says_whether_what_is_awaited_has_a_sign(loaded: str, compared: str, verdict: str) -> None:
    text = SIGNED_LOAD.replace("LOADED", loaded).replace("COMPARED", compared)
    launch = {"grid": 1, "params": {"data": {"buffer": 4}, "flag": {"buffer": 4, "init": {"hex": "00000000"}}}}
    assert check(text, launch).verdict == verdict


TWO_TESTS = """.version 8.5
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data, .param .u64 flag) .reqntid 2, 1, 1 {
  .reg .pred %p<4>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [data];
  ld.param.u64 %rd2, [flag];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r4, 0;
  @%p1 bra AGAIN;
  st.relaxed.gpu.global.u32 [%rd2], 3;
  st.global.u32 [%rd1], 1;
  st.release.gpu.global.u32 [%rd2], 77;
  ret;
AGAIN:
  add.u32 %r4, %r4, 1;
  ld.acquire.gpu.global.u32 %r2, [%rd2];
  BODY
AFTER:
  ld.global.u32 %r3, [%rd1];
  ret;
}
"""
FEW = "setp.lt.u32 %p2, %r2, 5;"
COUNTED_STORE = "mul.wide.u32 %rd3, %r4, 4; add.u64 %rd3, %rd3, %rd1; st.global.u32 [%rd3], 1;"


@pytest.mark.daily
@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (f"{FEW} @%p2 bra AGAIN;", "proved"),
        (f"{FEW} setp.eq.u32 %p3, %r2, 3; @%p3 bra AFTER; @%p2 bra AGAIN;", "finding"),
        (f"setp.eq.u32 %p3, %r2, 3; {FEW} @%p3 bra AFTER; @%p2 bra AGAIN;", "finding"),
        (f"{FEW} setp.ne.and.u32 %p2, %r2, 3, %p2; @%p2 bra AGAIN;", "finding"),
        (f"{FEW} and.b32 %r3, %r2, 3; setp.eq.u32 %p3, %r3, 3; @%p3 bra AFTER; @%p2 bra AGAIN;", "finding"),
        (f"{FEW} @%p2 bra AGAIN; setp.eq.u32 %p3, %r2, 77; @%p3 bra AGAIN;", "unknown"),
        (f"{FEW} @%p2 bra AGAIN; setp.eq.u32 %p3, %r2, 88; @%p3 trap;", "proved"),
        (f"{FEW} @%p2 bra AGAIN; setp.ne.u32 %p3, %r2, 77; @%p3 bra AFTER; {COUNTED_STORE}", "bounded"),
    ],
)
def test_all_tests_of_a_value_decide_how_long_it_is_awaited(body: str, verdict: str) -> None:
    launch = {"grid": 1, "params": {"data": {"buffer": 4096}, "flag": {"buffer": 4, "init": {"hex": "00000000"}}}}
    assert check(TWO_TESTS.replace("BODY", body), launch).verdict == verdict


@pytest.mark.parametrize(
    "body", ["and.b32 %r2, %r2, 255; {}", "bra MASK; TESTED: {} bra AFTER; MASK: and.b32 %r2, %r2, 255; bra TESTED;"]
)
def test_a_part_of_a_value_is_not_the_value(body: str) -> None:
    text = TWO_TESTS.replace("BODY", body.format("setp.ne.u32 %p2, %r2, 77; @%p2 bra AGAIN;"))
    text = text.replace("[%rd2], 3;", "[%rd2], 333;")
    launch = {"grid": 1, "params": {"data": {"buffer": 4096}, "flag": {"buffer": 4, "init": {"hex": "00000000"}}}}
    assert check(text, launch).verdict == "finding"


LOOP = """.version 8.5
.target sm_90
.address_size 64
.visible .entry loop(.param .u64 flag, .param .u32 least) {{
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [flag];
  ld.param.u32 %r2, [least];
AGAIN:
  ld.acquire.gpu.b32 %r1, [%rd1];
  {body}
AFTER:
  ret;
}}
"""


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("setp.eq.u32 %p1, %r1, 0; @%p1 bra AGAIN;", ("!=", 0, True)),
        ("setp.ne.u32 %p1, %r1, 3; @%p1 bra AGAIN;", ("==", 3, True)),
        ("setp.ge.s32 %p1, %r1, %r2; @%p1 bra AFTER; nanosleep.u32 20; bra AGAIN;", (">=", 5, True)),
        ("setp.lt.s32 %p1, %r2, %r1; @!%p1 bra AGAIN;", (">", 5, True)),
        ("setp.eq.u32 %p1, %r1, 0; @%p1 bra AGAIN; add.u32 %r3, %r1, 1;", ("!=", 0, False)),
        ("setp.eq.u32 %p1, %r1, 0; st.global.u32 [%rd1+4], 1; @%p1 bra AGAIN;", None),
        ("setp.eq.u32 %p1, %r1, 0; add.u64 %rd1, %rd1, 4; @%p1 bra AGAIN;", None),
        ("setp.eq.u32 %p1, %r1, 0; @%p1 bra AFTER;", None),
        ("setp.eq.u32 %p1, %r1, 0; mov.u64 %rd1, %rd2; @%p1 bra AGAIN;", None),
        ("setp.eq.u32 %p1, %r1, 0; add.u64 %rd2, %rd1, 4; mov.u64 %rd1, %rd2; @%p1 bra AGAIN;", None),
        ("setp.eq.u32 %p1, %r1, 0; cvt.u64.u32 %rd1, %r1; @%p1 bra AGAIN;", None),
        ("setp.lt.s32 %p1, %r1, %r2; add.u32 %r2, %r2, 1; @%p1 bra AGAIN;", None),
    ],
)
def test_what_a_loop_waits_for(body: str, wanted: tuple[str, int, bool] | None) -> None:
    function = parse_module(LOOP.format(body=body)).functions["loop"]
    at = next(k for k, s in enumerate(function.body) if "acquire" in s.opcode.parts)

    def value(operand: ptx.Operand) -> int | None:
        return operand.value if isinstance(operand, ptx.Immediate) else 5

    found = find_awaited(function, at, value)
    if wanted is None:
        assert found is None
    else:
        assert isinstance(found, AwaitedValue)
        assert (found.operator, found.right, found.condition_only) == wanted
        assert found.holds(wanted[1]) is (wanted[0] in ("==", ">="))


LAST = """.version 8.5
.target sm_90
.address_size 64
.visible .entry last()
.reqntid 64, 1, 1
{
  .reg .pred %p<4>;
  .reg .b32 %r<12>;
  .shared .align 4 .b32 count;
  .shared .align 4 .b32 part[2];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  st.shared.u32 [count], 0;
READY:
  bar.sync 0;
  and.b32 %r2, %r1, 31;
  setp.ne.u32 %p2, %r2, 0;
  @%p2 bra DONE;
  shr.u32 %r4, %r1, 5;
  mov.u32 %r5, part;
  mad.lo.u32 %r6, %r4, 4, %r5;
  st.shared.u32 [%r6], %r1;
  atom.acq_rel.cta.shared.add.u32 %r3, [count], 1;
  setp.ne.u32 %p3, %r3, 1;
  @%p3 bra DONE;
  ld.shared.u32 %r7, [part];
  ld.shared.u32 %r8, [part+4];
DONE:
  ret;
}
"""


@pytest.mark.parametrize(("order", "verdict"), [("acq_rel", "proved"), ("relaxed", "finding")])
def test_who_comes_last_reads_what_the_others_wrote(order: str, verdict: str) -> None:
    """Each order of the atomics is a path of its own: on each, the last one is the last."""
    read = parse_module(LAST.replace("acq_rel", order))
    given = build_launch(read, from_object({"grid": 1}))
    found = answer_launch(read, given, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=60))
    assert found.verdict == verdict, (found.reason, found.findings)


def test_paths_for_which_no_time_is_left_cut_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    read = parse_module(LAST)
    given = build_launch(read, from_object({"grid": 1}))
    monkeypatch.setattr(answering, "BRANCH_SECONDS", 0.0)
    monkeypatch.setattr(answering, "BRANCH_PART", 0.0)
    found = answer_launch(read, given, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=60))
    assert (found.verdict, found.cut) == ("bounded", True)
    assert "one of several branches" in (found.reason or "")
    assert "following what other threads may write takes more than 0 s" in (found.reason or "")


@pytest.mark.parametrize(("seconds", "verdict"), [(60, "bounded"), (None, "proved")])
def test_where_there_is_no_time_for_all_values_the_order_of_one_run_is_followed(
    seconds: float | None, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = parse_module(LAST)
    given = build_launch(read, from_object({"grid": 1}))
    monkeypatch.setattr(answering, "VALUES_PART", 0.0)
    found = answer_launch(read, given, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=seconds))
    assert (found.verdict, found.cut) == (verdict, seconds is not None)
    if seconds is not None:
        assert "only one order is followed where control depends on" in (found.reason or "")
        assert "following what other threads may write takes more than 0 s" in (found.reason or "")


PUBLISHED = """.version 8.5
.target sm_90
.address_size 64
.visible .entry publish() {
  .reg .pred %p<4>; .reg .b32 %r<8>;
  .shared .align 4 .b32 data;
  .shared .align 4 .b32 flag;
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  st.shared.u32 [flag], %r1;
READY:
  bar.sync 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READER;
  st.shared.u32 [data], 7;
  st.release.cta.shared.u32 [flag], 1;
  bra DONE;
READER:
  setp.ne.u32 %p2, %r1, 32;
  @%p2 bra DONE;
  BODY
  ld.shared.u32 %r3, [data];
DONE:
  ret;
}
"""
SPIN = "AGAIN: ld.acquire.cta.shared.u32 %r2, [flag]; setp.eq.u32 %p3, %r2, 0; @%p3 bra AGAIN;"
CHANGE = (
    "ld.acquire.cta.shared.u32 %r2, [flag]; setp.ne.u32 %p3, %r2, 0; @%p3 bra SEEN;\n"
    "AGAIN: ld.acquire.cta.shared.u32 %r4, [flag]; setp.eq.u32 %p3, %r4, %r2; @%p3 bra AGAIN;\nSEEN:"
)
ONCE = "ld.acquire.cta.shared.u32 %r2, [flag]; setp.eq.u32 %p3, %r2, 0; @%p3 bra DONE;"


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (SPIN, "proved"),  # what the weak store of 0 has left is known
        (SPIN.replace("acquire", "relaxed"), "finding"),
        (CHANGE, "proved"),
        (ONCE, "proved"),
        (ONCE.replace("acquire", "relaxed"), "finding"),
    ],
)
def test_what_lies_behind_a_flag_is_read_only_where_the_flag_was_seen(body: str, verdict: str) -> None:
    read = parse_module(PUBLISHED.replace("BODY", body))
    given = build_launch(read, from_object({"grid": 1, "block": 64}))
    found = answer_launch(read, given, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=60))
    assert found.verdict == verdict, (found.reason, found.findings)
    assert {f.code for f in found.findings} <= ({"RACE001"} if verdict == "finding" else set())


LOOKS = """
	@!%p1 bra WRITER;
	mov.u32 %r6, 0;
	mov.u32 %r7, 0;
AGAIN:
	ld.relaxed.cta.global.u32 %r8, [%rd2];
	add.u32 %r6, %r6, %r8;
	add.u32 %r7, %r7, 1;
	setp.lt.u32 %p3, %r7, 2;
	@%p3 bra AGAIN;
	setp.ne.u32 %p4, %r6, SUM;
	@%p4 ret;
	ld.global.u32 %r9, [%rd1];
	ret;
WRITER:
	st.global.u32 [%rd1], 7;
	st.relaxed.cta.global.u32 [%rd2], 1;
	ret;
}
"""


@pytest.mark.parametrize(("seen", "verdict"), [(1, "bounded"), (2, "finding")])
def test_a_thread_that_looks_twice_may_see_two_values(seen: int, verdict: str) -> None:
    """The sum of what both loads return is 1 in executions in which the store comes between them."""
    read = parse_module(HEAD + LOOKS.replace("SUM", str(seen)))
    given = build_launch(read, from_object({"grid": 1, "block": 2, "params": {"src": {"buffer": 16}, "dst": ZEROS}}))
    found = answer_launch(read, given, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=60))
    assert found.verdict == verdict, (found.reason, found.findings)
    assert verdict == "finding" or "only the last of its values is followed" in (found.reason or "")


PARITY = """
	@%p1 bra READY;
	mbarrier.init.shared.b64 [%r3], 1;
READY:
	bar.sync 0;
	ld.relaxed.cta.global.u32 %r8, [%rd2];
	SEEN
	@%p1 bra WAIT;
	st.relaxed.cta.global.u32 [%rd2], 1;
	st.shared.u32 [%r2], 7;
	mbarrier.arrive.shared.b64 %rd3, [%r3];
	ret;
WAIT:
	mbarrier.test_wait.parity.shared.b64 %p3, [%r3], %r8;
	@!%p3 bra WAIT;
	ld.shared.u32 %r9, [%r2];
	ret;
}
"""


@pytest.mark.parametrize(("seen", "codes"), [("", {"RACE001", "DEAD003"}), ("and.b32 %r8, %r8, 0;", set[str]())])
def test_which_phase_is_awaited_may_depend_on_what_was_read(seen: str, codes: set[str]) -> None:
    """The thread that has read 1 waits for the phase before the first one, or, too late for that, for the second."""
    read = parse_module(HEAD + PARITY.replace("SEEN", seen))
    given = build_launch(read, from_object({"grid": 1, "block": 2, "params": {"src": {"buffer": 16}, "dst": ZEROS}}))
    found = answer_launch(read, given, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS, timeout=60))
    assert found.verdict == ("finding" if codes else "proved"), (found.reason, found.findings)
    assert {f.code for f in found.findings} == codes


def test_a_lock_that_is_only_tried_is_no_deadlock() -> None:
    """Which of the threads takes it is a path of its own, and so is a swap that fails: the two are not combined."""
    text = (
        HEAD
        + """
	atom.acquire.gpu.global.cas.b32 %r6, [%rd2], 0, 1;
	setp.ne.u32 %p3, %r6, 0;
	@%p3 ret;
	ld.global.u32 %r7, [%rd1];
	st.global.u32 [%rd1], %r1;
	st.release.gpu.global.u32 [%rd2], 0;
	ret;
}
"""
    )
    params = {"src": ZEROS, "dst": ZEROS}
    found = check(text, {"grid": [1], "block": [2], "params": params})
    assert found.verdict == "bounded"
    assert "one of several branches" in (found.reason or "")


COUNTED = """.version 8.5
.target sm_90
.address_size 64
.visible .entry counted() {{
  .reg .pred %p<6>; .reg .b32 %r<8>;
  .shared .align 8 .b64 full;
  .shared .align 4 .b32 flag, x;
  mov.u32 %r1, %tid.x;
  mov.u32 %r5, 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [full], 1;
  st.shared.u32 [flag], 0;
READY:
  bar.sync 0;
  @%p1 bra AGAIN;
  st.release.cta.shared.u32 [flag], 1;
  mbarrier.arrive.shared.b64 _, [full];
  ret;
AGAIN:
  {poll}
  @%p2 bra AFTER;
  {failed}
  bra AGAIN;
AFTER:
  {behind}
END:
  ret;
}}
"""
TRY_WAIT = "mbarrier.try_wait.parity.shared.b64 %p2, [full], 0;"
TEST_FLAG = "ld.acquire.cta.shared.u32 %r2, [flag]; setp.ne.u32 %p2, %r2, 0;"
COUNT = "add.u32 %r5, %r5, 1;"
STORE = "setp.eq.u32 %p3, %r5, 0; @%p3 bra END; st.shared.u32 [x], %r1;"


@pytest.mark.parametrize(
    ("failed", "behind", "spins"),
    [
        ("", "", True),
        (COUNT, "", True),
        (COUNT, "mov.u32 %r5, 3; st.shared.u32 [x], %r5;", True),
        (COUNT, "add.u32 %r6, %r5, 1; mov.u32 %r6, 0; st.shared.u32 [x], %r6;", True),
        (COUNT, "setp.gt.u32 %p3, %r5, 9; @%p3 trap;", True),
        (f"{COUNT} setp.gt.u32 %p3, %r5, 9; @%p3 bra AGAIN; nanosleep.u32 20;", "", True),
        (COUNT, STORE, False),
        (COUNT, "st.shared.u32 [x], %r5;", False),
        (COUNT, "add.u32 %r6, %r5, 1; st.shared.u32 [x], %r6;", False),
        (COUNT, "@%p1 mov.u32 %r5, 3; st.shared.u32 [x], %r5;", False),
        ("mov.u32 %r5, 1;", STORE, False),
    ],
)
@pytest.mark.parametrize("poll", [TRY_WAIT, TEST_FLAG])
def test_how_often_a_poll_failed_decides_nothing_in_a_spin_loop(
    poll: str, failed: str, behind: str, spins: bool
) -> None:
    function = parse_module(COUNTED.format(poll=poll, failed=failed, behind=behind)).functions["counted"]
    at = next(k for k, s in enumerate(function.body) if {"try_wait", "acquire"} & {*s.opcode.parts})
    if poll == TRY_WAIT:
        assert is_spin_loop(function, at) is spins
    else:
        found = find_awaited(function, at, lambda o: o.value if isinstance(o, ptx.Immediate) else None)
        assert (found is not None) is spins


def test_what_each_iteration_computes_anew_is_not_left_behind() -> None:
    text = COUNTED.format(poll=f"mov.u32 %r5, 7; {TRY_WAIT}", failed="", behind=STORE)
    function = parse_module(text).functions["counted"]
    at = next(k for k, s in enumerate(function.body) if "try_wait" in s.opcode.parts)
    assert is_spin_loop(function, at)
    clocked = parse_module(text.replace("mov.u32 %r5, 7", "mov.u32 %r5, %clock")).functions["counted"]
    assert not is_spin_loop(clocked, at)


@pytest.mark.daily(days=8, least=0)
@pytest.mark.parametrize("poll", [TRY_WAIT, TEST_FLAG])
def test_a_store_after_failed_polls_is_not_overlooked(poll: str) -> None:
    """Three threads store to one word if their first poll failed, as it may."""
    launch = {"grid": 1, "block": 4}
    assert check(COUNTED.format(poll=poll, failed=COUNT, behind=STORE), launch).verdict in ("bounded", "unknown")
    assert check(COUNTED.format(poll=poll, failed=COUNT, behind=""), launch).verdict == "proved"


TWO = """.version 8.5
.target sm_90
.address_size 64
.visible .entry two(.param .u64 from, .param .u64 to) {{
  .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
  .shared .align 16 .b8 tile[64];
  .shared .align 8 .b64 bars[2];
  ld.param.u64 %rd1, [from];
  ld.param.u64 %rd2, [to];
  mov.u32 %r1, %tid.x;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 ret;
  mov.u32 %r2, bars;
  add.u32 %r3, %r2, 8;
  mov.u32 %r6, tile;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  mbarrier.init.shared::cta.b64 [%r3], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 64;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r6], [%rd1], 64, [%r2];
  mov.u32 %r4, %r2;
AGAIN:
  {first}
  mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;
  {failed}
  @!%p2 bra AGAIN;
  ld.shared.u32 %r7, [tile];
  st.global.u32 [%rd2], %r7;
  ret;
}}
"""


@pytest.mark.daily(days=4)
@pytest.mark.parametrize(
    ("first", "failed", "verdict"),
    [
        ("", "", "proved"),
        ("mov.u32 %r4, %r2;", "mov.u32 %r4, 0;", "proved"),
        ("", "mov.u32 %r4, %r3;", "unknown"),
        ("", "add.u32 %r5, %r4, 8; mov.u32 %r4, %r5;", "unknown"),
    ],
)
def test_a_poll_that_goes_on_to_another_mbarrier_is_no_wait(
    first: str, failed: str, verdict: str, all_tests: bool
) -> None:
    """A copy completes the first mbarrier and nothing the second one. What is unknown takes all the time there is."""
    read = parse_module(TWO.format(first=first, failed=failed))
    buffers = {"0": {"buffer": 64}, "1": {"buffer": 4}}
    given = build_launch(read, from_object({"grid": [1, 1, 1], "block": [32, 1, 1], "params": buffers}))
    asked = Question(about=Completeness.FINDINGS, timeout=60 if all_tests or verdict == "proved" else 2)
    assert answer_launch(read, given, load_model("ptx-9.0"), asked).verdict == verdict


WAITS = """.version 8.5
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 flag)
.reqntid 2, 1, 1
{
.reg .pred %p, %q; .reg .b32 %r<4>; .reg .b64 %rd1;
ld.param.u64 %rd1, [flag];
mov.u32 %r1, %tid.x;
setp.eq.u32 %p, %r1, 1;
@%p bra WAIT;
WORK
ret;
WAIT: ld.acquire.gpu.global.u32 %r2, [%rd1];
setp.eq.u32 %q, %r2, 0;
@%q bra WAIT;
ret;
}
"""
COUNTS = """mov.u32 %r3, 0;
COUNT: add.u32 %r3, %r3, 1;
setp.lt.u32 %q, %r3, 600;
@%q bra COUNT;
"""


@pytest.mark.parametrize(
    ("work", "ends"),
    [("", False), (COUNTS, False), (f"{COUNTS} st.release.gpu.global.u32 [%rd1], 1;", True)],
    ids=["nothing", "a computation", "a late store"],
)
def test_polls_end_soon_where_no_lane_does_anything_else(
    work: str, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not before: a lane that has counted for a while stores what is awaited."""
    monkeypatch.setattr(poll_progress, "MAX_POLLS_OF_ALL", 4)
    module = parse_module(WAITS.replace("WORK", work), "waits.ptx")
    given = {"grid": 1, "params": {"flag": {"buffer": 4, "init": {"hex": "00000000"}}}}
    runner = Runner(module, build_launch(module, from_object(given)), Limit(None))
    followed = runner.run(PathChoices())
    assert followed.step_count < 4000
    assert (followed.status == cluster.EXITED).all() == ends
