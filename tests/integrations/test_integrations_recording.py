"""Recorded launches: each distinct one is checked once, whatever process asks, and what is open is told at the end."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcheck import ptx
from mcheck.integrations.recording.answers import AnswerFolder, Check, KernelAnswer, check_with_mcheck
from mcheck.integrations.recording.launches import KernelLaunch, Pointer, Pointers, Recording
from mcheck.integrations.recording.outcome import NumbersNotComputed, outcome
from mcheck.integrations.recording.tally import TestRecord, failing, from_json, message, summarize
from mcheck.ptx import check

ROOT = Path(__file__).parents[2]
MODULE = (ROOT / "tests" / "simt" / "hand_over.ptx").read_text()
RACY = MODULE.replace("fence.proxy.async.shared::cta;", "")
LAUNCH = {"grid": 1, "params": {"out": {"buffer": 256}, "rows": 1}}
ONE = KernelLaunch("hand_over", MODULE, LAUNCH)


def answering(calls: list[str], **fields: Any) -> Check:
    """A check that notes the modules it is asked about, and answers as it is told."""

    def check(path: str, _: Mapping[str, Any]) -> KernelAnswer:
        calls.append(path)
        made = KernelAnswer(kernel="", module=path, digest="", verdict="proved", status="ok", report="", seconds=1.0)
        return replace(made, **fields)

    return check


# --- one answer for each launch -----------------------------------------------------------------------------------


def test_a_launch_is_checked_once(tmp_path: Path) -> None:
    calls: list[str] = []
    answers = AnswerFolder(tmp_path, "1", answering(calls), None)
    first, again = (
        answers.answer(ONE),
        answers.answer(KernelLaunch("hand_over", MODULE, json.loads(json.dumps(LAUNCH)))),
    )
    assert (first.fresh, again.fresh) == (True, False)
    assert first == replace(again, fresh=True)
    assert AnswerFolder(tmp_path, "1", answering(calls), None).answer(ONE) == again
    assert len(calls) == 1


@pytest.mark.parametrize(
    "other",
    [
        KernelLaunch("hand_over", MODULE + "\n", LAUNCH),
        KernelLaunch("hand_over", MODULE, {**LAUNCH, "grid": 2}),
        KernelLaunch("hand_over", MODULE, LAUNCH, "something"),
    ],
)
def test_another_module_or_launch_is_another_answer(tmp_path: Path, other: KernelLaunch) -> None:
    calls: list[str] = []
    answers = AnswerFolder(tmp_path, "1", answering(calls), None)
    assert answers.answer(ONE).digest != answers.answer(other).digest
    assert len(calls) == len(set(calls)) == 2


def test_another_version_answers_anew(tmp_path: Path) -> None:
    calls: list[str] = []
    for version in ("1", "2", "2"):
        AnswerFolder(tmp_path, version, answering(calls), None).answer(ONE)
    assert len(calls) == 2


def test_an_answer_that_a_limit_cut_is_good_for_no_longer_limit(tmp_path: Path) -> None:
    calls: list[str] = []
    for limit in (2.0, 1.0, 2.0, 3.0, 3.0, None):
        cut = answering(calls, verdict="unknown", status="unknown", limit=limit)
        AnswerFolder(tmp_path, "1", cut, limit).answer(ONE)
    assert len(calls) == 3  # 2 s, 3 s, without a limit


def test_seconds_of_the_processor_are_longer_than_those_of_the_clock(tmp_path: Path) -> None:
    calls: list[str] = []
    for processor_time, computed in ((False, 1), (True, 2), (True, 2), (False, 2)):
        cut = answering(calls, verdict="unknown", status="unknown", limit=2.0, processor_time=processor_time)
        AnswerFolder(tmp_path, "1", cut, 2.0, processor_time=processor_time).answer(ONE)
        assert len(calls) == computed


def test_a_check_may_be_limited_in_seconds_of_the_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[dict[str, Any]] = []

    def watched(*asked: Any, **options: Any) -> Any:
        given.append(options)
        return check(*asked, **options)

    monkeypatch.setattr(ptx, "check", watched)
    for processor_time in (True, False):
        limited = check_with_mcheck(0.001, processor_time=processor_time)
        cut = AnswerFolder(tmp_path / str(processor_time), "1", limited, 0.001, processor_time=processor_time).answer(
            ONE
        )
        assert (cut.verdict, cut.limit, cut.processor_time) == ("unknown", 0.001, processor_time)
    assert given == [{"timeout": None, "cpu_timeout": 0.001}, {"timeout": 0.001, "cpu_timeout": None}]
    with pytest.raises(ValueError, match="give only one of them"):
        check(MODULE, LAUNCH, timeout=1, cpu_timeout=1)


def test_a_damaged_answer_is_computed_again(tmp_path: Path) -> None:
    calls: list[str] = []
    answers = AnswerFolder(tmp_path, "1", answering(calls), None)
    answers.answer(ONE)
    (kept,) = tmp_path.glob("*.answer")
    kept.write_text(kept.read_text()[:-9])
    assert answers.answer(ONE).fresh


def test_what_the_launch_could_not_express_is_not_proved(tmp_path: Path) -> None:
    calls: list[str] = []
    lacking = KernelLaunch("k", MODULE, LAUNCH, "a and b overlap")
    answer = AnswerFolder(tmp_path, "1", answering(calls), None).answer(lacking)
    assert (answer.verdict, answer.status, answer.reason) == ("bounded", "unknown", "a and b overlap")
    found = answering(calls, verdict="finding", status="finding")
    other = AnswerFolder(tmp_path, "2", found, None).answer(lacking)
    assert other.verdict == "finding"


def ask(folder: str, calls: str) -> None:
    """A process of a test run: it takes a while to check, and notes that it did."""

    def check(path: str, launch: Mapping[str, Any]) -> KernelAnswer:
        with open(calls, "a") as file:
            file.write("checked\n")
        return answering([])(path, launch)

    AnswerFolder(Path(folder), "1", check, None).answer(ONE)


@pytest.mark.daily(days=3, least=0)
def test_processes_share_the_answers(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=ask, args=(str(tmp_path / "answers"), str(calls))) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert calls.read_text() == "checked\n"


def test_the_answer_is_that_of_check_and_can_be_asked_for_again(tmp_path: Path) -> None:
    answers = AnswerFolder(tmp_path, "1", check_with_mcheck(60.0), 60.0)
    assert answers.answer(ONE).verdict == "proved"
    wrong = answers.answer(KernelLaunch("hand_over", RACY, LAUNCH))
    assert (wrong.verdict, wrong.status, wrong.limit) == ("finding", "finding", None)
    assert "error[RACE004]" in wrong.report
    assert f"--> {wrong.module}:" in wrong.report
    assert check(wrong.module).verdict == "finding"  # the launch lies beside the module


def test_a_launch_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    answers = AnswerFolder(tmp_path, "1", check_with_mcheck(None), None)
    answer = answers.answer(KernelLaunch("hand_over", MODULE, {"grid": 1, "params": {"nothing": 1}}))
    assert answer.verdict == "error"
    assert failing([answer], strict=False) == failing([answer], strict=True) == [answer]
    assert "nothing" in answer.reason


# --- pointers -----------------------------------------------------------------------------------------------------


def pointer(address: int, end: int, memory: object, init: str | None = None) -> Pointer:
    return Pointer(address, end, memory, 4096, init)


def test_a_pointer_is_a_buffer_up_to_the_end_of_its_memory() -> None:
    pointers, memory = Pointers(), object()
    launch = {"params": {"0": pointers.add(pointer(1024, 2048, memory, "01000000")), "1": 7}}
    expected = {"params": {"0": {"buffer": 3072, "init": {"hex": "01000000"}}, "1": 7}}
    assert pointers.finish(launch) == (expected, "")


def test_equal_pointers_are_one_buffer() -> None:
    pointers, memory = Pointers(), object()
    same = pointers.add(pointer(0, 2048, memory)), pointers.add(pointer(0, 2048, memory))
    mapped = {"tensormap": {"global_address": same[1], "global_dim": [4]}}
    launch, lacks = pointers.finish({"params": {"0": same[0], "1": mapped}})
    assert lacks == ""
    assert launch == {
        "launches": [
            {
                "params": {
                    "0": {"buffer": "memory0"},
                    "1": {"tensormap": {"global_address": {"buffer": "memory0"}, "global_dim": [4]}},
                }
            }
        ],
        "buffers": {"memory0": {"bytes": 4096}},
    }


@pytest.mark.parametrize(("start", "overlaps"), [(2044, True), (2048, False)])
def test_pointers_into_the_same_bytes_are_reported(start: int, overlaps: bool) -> None:
    memory = object()
    pointers = Pointers()
    params = [pointers.add(pointer(0, 2048, memory)), pointers.add(pointer(start, 4096, memory))]
    assert bool(pointers.finish({"params": params})[1]) == overlaps
    apart = Pointers()
    params = [apart.add(pointer(0, 2048, object())), apart.add(pointer(start, 4096, object()))]
    assert apart.finish({"params": params})[1] == ""


COPY = """.version 8.0
.target sm_90
.address_size 64
.visible .entry shift(.param .u64 .ptr .global .align 4 to, .param .u64 .ptr .global .align 4 from)
{
  .reg .b32 %r<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.u32 %r2, [%rd5+128];
  st.global.u32 [%rd4], %r2;
  ret;
}
"""


def test_a_race_through_two_arguments_for_the_same_memory_is_found() -> None:
    def launch(*memory: object) -> dict[str, Any]:
        pointers = Pointers()
        params = {
            str(k): pointers.add(Pointer(512 * id(one), 512 * id(one) + 512, one, 512 * id(one) + 512))
            for k, one in enumerate(memory)
        }
        return pointers.finish({"grid": 1, "block": 64, "params": params})[0]

    one, other = object(), object()
    assert check(COPY, launch(one, other)).verdict == "proved"
    found = check(COPY, launch(one, one))
    assert [finding.code for finding in found.findings] == ["RACE001"]


# --- recording, tests, summary ------------------------------------------------------------------------------------


def test_a_recording_keeps_one_of_each_launch() -> None:
    recording = Recording()
    recording.add(ONE)  # outside any test
    with recording.collect() as outer:
        recording.add(ONE)
        with recording.collect() as inner:
            recording.add(ONE)
            recording.add(KernelLaunch("other", RACY, LAUNCH))
            recording.add(ONE)
    assert [launch.kernel for launch in inner] == ["hand_over", "other"]
    assert outer == [ONE]


def test_a_benchmark_keeps_one_launch_while_it_runs() -> None:
    """Equal launches are made anew each time; the order of parameters in them says nothing."""
    again = [KernelLaunch("hand_over", MODULE, dict(reversed(LAUNCH.items()))) for _ in range(20)]
    recording = Recording()
    with recording.collect() as found:
        for launch in (*again, KernelLaunch("hand_over", MODULE, LAUNCH, lacks="an overlap")):
            recording.add(launch)
        assert [launch.lacks for launch in found] == ["", "an overlap"]


class Tensors:
    assumed = 3


def test_a_test_ends_at_a_number_that_was_not_computed() -> None:
    with outcome(Tensors()) as record:
        raise NumbersNotComputed("'item'")
    assert "'item' of a tensor" in record.stopped
    assert record.assumed == 0


def test_an_assertion_counts_unless_others_were_assumed() -> None:
    tensors = Tensors()
    with pytest.raises(AssertionError, match="shapes differ"), outcome(tensors):
        raise AssertionError("shapes differ")
    with outcome(tensors) as record:
        tensors.assumed += 1
        raise AssertionError("2 of 4 elements differ\nin detail")
    assert (record.assumed, record.stopped.endswith("2 of 4 elements differ")) == (1, True)


def test_an_error_is_one_whatever_was_assumed() -> None:
    tensors = Tensors()

    def fails() -> None:
        with outcome(tensors):
            tensors.assumed += 1
            raise ValueError("wrong shape")

    with pytest.raises(ValueError, match="wrong shape"):
        fails()


def answer(verdict: str, status: str, digest: str, **fields: Any) -> KernelAnswer:
    made = KernelAnswer(kernel="k", module=f"{digest}.ptx", digest=digest, verdict=verdict, status=status, report="R")
    return replace(made, **fields)


def test_the_summary_counts_launches_and_names_what_is_open() -> None:
    proved = answer("proved", "ok", "a", fresh=True, seconds=2.0)
    slow = [
        answer(
            "unknown", "unknown", name, limit=1.0, reason=f"no answer within 1 s; by then: class {k} of 8 of clusters"
        )
        for k, name in enumerate("bcde")
    ]
    bounded = answer("bounded", "unknown", "f", reason="f.ptx:3:2: the address is unknown; f.ptx:4:2: so is this")
    wrong = answer("finding", "finding", "g", fresh=True, seconds=3.4)
    records = [
        TestRecord([proved, *slow]),
        TestRecord([replace(proved, fresh=False), bounded, wrong], assumed=2),
        TestRecord(stopped="'item' of a tensor"),
    ]
    lines = list(summarize([from_json(json.loads(json.dumps(record.to_json()))) for record in records], "sm_90"))
    assert lines[0] == (
        "sm_90: 2 tests with 8 launches, 7 different: 1 proved, 1 bounded, 4 unknown, 1 finding"
        " (2 computed in 5 s, 5 known before)"
    )
    assert lines[1:3] == ["  4 unknown: no answer within 1 s", "    b.ptx, c.ptx, d.ptx, …"]
    assert lines[3:5] == ["  1 bounded: the address is unknown, and 1 more", "    f.ptx"]
    assert lines[5:] == [
        "  4 checks were stopped by the limit: --mcheck-cpu-timeout N allows N seconds",
        "  1 test passed over assertions about numbers: no kernel is run",
        "  1 test ended early, at a number that no kernel has computed: 'item' of a tensor",
    ]


def test_there_is_no_summary_of_nothing() -> None:
    assert list(summarize([TestRecord()], "sm_90")) == []


def test_findings_fail_and_what_is_open_does_where_wanted() -> None:
    answers = [answer("proved", "ok", "a"), answer("bounded", "unknown", "b"), answer("finding", "finding", "c")]
    assert [a.digest for a in failing(answers, strict=False)] == ["c"]
    assert [a.digest for a in failing(answers, strict=True)] == ["b", "c"]
    assert message(answers[2:]) == "R\n  again: mcheck check c.ptx"
