"""Bugs in functions that are inlined: one for each edit, and the fix at the line where that is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.base.verdicts import Verdict
from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result
from mcheck.frontend.ptx import launch_reader
from mcheck.report import checked
from mcheck.report.lines import plain

HEAD = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry kernel(.param .u64 .ptr .global .align 16 out)
.reqntid 64, 1, 1
{
	.reg .pred %p<3>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<3>;
	.shared .align 16 .b8 s[256];
	.loc 1 14 1
	ld.param.u64 %rd1, [out];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, s;
	mad.lo.u32 %r3, %r1, 4, %r2;
	sub.u32 %r4, 63, %r1;
	mad.lo.u32 %r5, %r4, 4, %r2;
	mul.wide.u32 %rd2, %r1, 4;
	add.u64 %rd1, %rd1, %rd2;
"""
TAIL = """	.loc 1 27 1
	ret;
}
	.file 1 "kernel.cu"
"""
BARRIER = "bar.sync 0;"
STORE = "st.shared.u32 [%r3], %r1;"
LOAD = "ld.shared.u32 %r6, [%r5]; st.global.u32 [%rd1], %r6;"


Statement = tuple[str, int, int | None]
"""Its text and line, and the line of the call that it was inlined at."""


def module(*code: Statement) -> str:
    lines = []
    for text, line, call in code:
        inlined = f", function_name $f, inlined_at 1 {call} 3" if call is not None else ""
        lines += [f"\t.loc 1 {line} 3{inlined}", f"\t{text}"]
    return HEAD + "\n".join(lines) + "\n" + TAIL


def checked_module(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Result, str]:
    monkeypatch.chdir(folder)
    Path("kernel.cu").write_text("\n".join(f"  line({number});" for number in range(1, 40)) + "\n")
    launch = launch_reader.from_object({"grid": 1, "params": {"out": {"buffer": 256}}})
    result = check_text(text, "kernel.ptx", launch, Settings(), Options())
    return result, "\n".join(plain(line) for line in checked.describe(result))


def put(call: int) -> Statement:
    return STORE, 4, call


def get(call: int) -> Statement:
    return LOAD, 8, call


def sync(line: int, call: int | None = None) -> Statement:
    return BARRIER, line, call


def test_a_barrier_between_two_calls_is_named_in_their_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = (put(16), get(18), sync(19), put(20), sync(21), get(22))
    result, text = checked_module(module(*missing), tmp_path, monkeypatch)
    assert "called at line 16" in text
    assert "= fix: bar.sync 0 (`__syncthreads()`) before line 18, in every thread" in text
    assert len(result.findings) == 1
    fixed = (put(16), sync(17), *missing[1:])
    assert checked_module(module(*fixed), tmp_path, monkeypatch)[0].verdict is Verdict.PROVED


def inlined(call: int, *, barrier: bool) -> tuple[Statement, ...]:
    """A function that writes, reads what another thread wrote, and ends with a barrier."""
    return put(call), *((sync(6, call),) if barrier else ()), get(call), sync(9, call)


@pytest.mark.parametrize(("calls", "said"), [((16, 18), "16 and 18"), ((16, 18, 20), "16, 18 and 20")])
def test_a_barrier_that_a_function_lacks_is_one_bug_however_often_it_is_inlined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: tuple[int, ...], said: str
) -> None:
    code = [each for call in calls for each in inlined(call, barrier=False)]
    result, text = checked_module(module(*code), tmp_path, monkeypatch)
    assert len(result.findings) >= len(calls)
    assert f"1 bug ({len(result.findings)} findings): RACE001" in text
    assert f"inlined at lines {said}" in text
    assert "before line 8, in every thread" in text or "between line 4 and line 8" in text
    right = [each for call in calls for each in inlined(call, barrier=True)]
    assert checked_module(module(*right), tmp_path, monkeypatch)[0].verdict is Verdict.PROVED


def test_a_barrier_that_two_callers_lack_is_two_bugs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions are right: each place between their calls lacks a barrier of its own."""
    code = (put(16), get(18), sync(19), put(20), get(22))
    _, text = checked_module(module(*code), tmp_path, monkeypatch)
    assert "2 bugs" in text
    assert "before line 18" in text
    assert "before line 22" in text


def test_a_barrier_stays_behind_a_wait_of_the_function_that_it_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The read follows a wait in the same function: before the call, a barrier would come too early."""
    copy = "cp.async.ca.shared.global [%r3], [%rd1], 4; cp.async.commit_group;"
    read = "ld.shared.u32 %r6, [%r5];"
    code = ((copy, 4, 16), ("cp.async.wait_group 0;", 7, 18), (read, 8, 18))
    _, text = checked_module(module(*code), tmp_path, monkeypatch)
    assert "RACE003" in text
    assert "before line 8" in text or "and line 8" in text
    assert "before line 18" not in text


def test_a_barrier_is_named_as_far_out_as_what_synchronises_before_it_allows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function waits for its copies in one line and reads in another, by functions of its own."""
    monkeypatch.chdir(tmp_path)
    step = [f"\t.loc 1 {line} 3, function_name $step, inlined_at 1 18 3" for line in (7, 8)]
    code = [
        "\t.loc 1 4 3, function_name $copy, inlined_at 1 16 3",
        "\tcp.async.ca.shared.global [%r3], [%rd1], 4; cp.async.commit_group;",
        step[0],
        "\t.loc 1 10 3, function_name $ready, inlined_at 1 7 3",
        "\tcp.async.wait_group 0;",
        step[1],
        "\t.loc 1 12 3, function_name $tile, inlined_at 1 8 3",
        "\tld.shared.u32 %r6, [%r5];",
    ]
    _, text = checked_module(HEAD + "\n".join(code) + "\n" + TAIL, tmp_path, monkeypatch)
    assert "= fix: bar.sync 0 (`__syncthreads()`) before line 8" in text or "line 7 and line 8" in text
