"""JUnit, annotations, findings, files, colours, the bar."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from mcheck.answers.result import Answer, Outcome
from mcheck.base.errors import InputError, Span
from mcheck.base.reasons import Cause, Reason
from mcheck.cat import full_text
from mcheck.checking.run.result import Result
from mcheck.checking.run.summary import Summary
from mcheck.findings.finding import Access, Finding
from mcheck.findings.fix import advise
from mcheck.findings.trace import Step, StepKind
from mcheck.report import finding as finding_report
from mcheck.report.formats import github, json_, junit
from mcheck.report.lines import Printer, plain
from mcheck.report.output import wants_color
from mcheck.report.progress import Bar, CheckProgress
from mcheck.report.text import TextReport
from tests.checking.modules.test_modules_filled_stages import HEAD, RING, launch

MODEL = ("--model", "ptx-7.5")

RACE = Finding(
    code="RACE003",
    kind="race",
    severity="error",
    said=("the copy and the load touch the same bytes",),
    accesses=(
        Access(
            thread="consumer[3]",
            instruction="ld.shared.u32 r0, [buf]",
            span=Span("ring.litmus", 21, 5, 8),
            object="buf@0",
            bytes=(0, 16),
            proxy="generic",
            access="read",
        ),
    ),
    fixes=(advise("a wait on full[0]"),),
    section="PTX ISA 9.0 sections 8.7 and 8.9",
    trace=(Step(thread="producer", instruction="store", kind=StepKind.WRITE),),
)

RESULTS = [
    Result(path="a/ok.litmus", name="ok", verdict="pass", expected="pass", model="m", seconds=0.5),
    Result(
        path="a/bad.litmus",
        name="bad",
        condition="exists (x == 1 /\\ y < 2)",
        kind="exists",
        verdict="fail",
        expected="pass",
        model="m",
        complete=True,
        outcomes=(Outcome(state=(("x", 1), ("P0:r0", "unknown"))),),
        executions=3,
        findings=(RACE,),
    ),
    Result(
        path="b,c/slow.litmus",
        name="slow",
        verdict="unknown",
        model="m",
        reasons=(Reason(Cause.TIME, "time-out after 1 s"),),
    ),
    Result(
        path="b,c/broken.litmus",
        name="broken",
        verdict="error",
        model="m",
        reasons=(Reason(Cause.INPUT, "control \x07 & 100 % <wrong>", span=Span("b,c/broken.litmus", 3, 7)),),
        problem=InputError("control \x07 & 100 % <wrong>", Span("b,c/broken.litmus", 3, 7), hint="did you mean right?"),
    ),
]
SUMMARY = Summary(tests=4, ok=1, mismatch=1, unknown=1, error=1, seconds=1.5)


def test_junit() -> None:
    root = ET.fromstring(junit.document(RESULTS, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)))
    assert [(s.get("name"), s.get("tests"), s.get("failures"), s.get("errors"), s.get("time")) for s in root] == [
        ("a", "2", "1", "0", "0.500"),
        ("b,c", "2", "0", "2", "0.000"),
    ]
    assert {s.get("timestamp") for s in root} == {"2026-01-02T03:04:05"}
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("message") == "expected pass, found fail"
    assert "x=1; P0:r0=unknown;" in (failure.text or "")
    errors = [element.get("message") for element in root.iter("error")]
    assert errors == ["time-out after 1 s", "b,c/broken.litmus:3:7: control \ufffd & 100 % <wrong>"]
    *_, broken = root.iter("error")
    assert (broken.text or "").splitlines()[-1] == "hint: did you mean right?"


def test_annotations() -> None:
    lines = github.document(RESULTS, SUMMARY).splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("::error file=a/bad.litmus,line=1,col=1,title=bad%3A mismatch::mismatch")
    assert "%0A" in lines[0]
    assert lines[1].startswith("::warning file=b%2Cc/slow.litmus,")
    assert lines[2].startswith("::error file=b%2Cc/broken.litmus,line=3,col=7,")
    assert "100 %25" in lines[2]
    assert lines[2].endswith("%0Ahint: did you mean right?")
    assert "title=RACE003 race::the copy and the load touch the same bytes%0A" in lines[3]
    assert lines[4] == "::notice title=mcheck::1 of 4 tests ok, 1 mismatch, 1 unknown, 1 error"


def test_findings_in_json() -> None:
    assert list(finding_report.to_json(RACE).items()) == [
        ("code", "RACE003"),
        ("kind", "race"),
        ("severity", "error"),
        ("message", "the copy and the load touch the same bytes"),
        (
            "accesses",
            [
                {
                    "thread": "consumer[3]",
                    "path": "ring.litmus",
                    "line": 21,
                    "column": 5,
                    "instruction": "ld.shared.u32 r0, [buf]",
                    "object": "buf@0",
                    "bytes": [0, 16],
                    "proxy": "generic",
                    "access": "read",
                }
            ],
        ),
        ("missing", "a wait on full[0]."),
        ("spec", {"document": "PTX ISA 9.0", "section": "8.7 and 8.9"}),
        ("trace", ["producer: store"]),
    ]


@pytest.mark.parametrize(
    ("reference", "document", "section"),
    [
        ("PTX ISA 9.0 section 9.7.9.25", "PTX ISA 9.0", "9.7.9.25"),
        ("PTX ISA section 8.7", "PTX ISA", "8.7"),
        ("PTX ISA, section 8.7", "PTX ISA", "8.7"),
        ("9.7.9.25.4.1", "PTX ISA", "9.7.9.25.4.1"),
    ],
)
def test_references(reference: str, document: str, section: str) -> None:
    spec = Finding(code="X", kind="race", severity="error", said=("",), section=reference).spec
    assert (spec.document, spec.section) == (document, section)


def test_findings_in_words() -> None:
    assert [plain(line) for line in finding_report.lines(RACE, verbose=True)] == [
        "error[RACE003]: the copy and the load touch the same bytes",
        "  --> ring.litmus:21:5",
        "  21 | consumer[3] reads buf[bytes 0..16]",
        "  = fix: a wait on full[0]",
        "  = rule: PTX ISA 9.0, 8.7 and 8.9; mcheck explain RACE003",
        "  race: the copy and the load touch the same bytes",
        "  read by consumer[3] (generic proxy) of buf@0[bytes 0..16]: ld.shared.u32 r0, [buf]",
        "    --> ring.litmus:21:5",
        "  in full: a wait on full[0].",
        "  trace:",
        "    producer: store",
    ]


def test_states_are_sorted_by_value_with_unknown_last() -> None:
    values = (10, 9, "unknown", -1)
    outcomes = tuple(Outcome(state=(("r", value),)) for value in values)
    result = Result(path="p", name="n", verdict="pass", model="m", outcomes=outcomes)
    document = json.loads(json_.run_document("m", [result], SUMMARY))
    assert document["tests"][0]["states"] == [{"r": -1}, {"r": 9}, {"r": 10}, {"r": "unknown"}]


def test_an_empty_state_is_valid_json() -> None:
    result = Result(path="p", name="n", verdict="pass", model="m", outcomes=(Outcome(state=()),))
    assert json.loads(json_.outcomes_document("p", result))["outcomes"] == [
        {"state": {}, "executions": 1, "witness": []}
    ]
    result = Result(path="p", name="n", verdict="pass", model="m")
    assert json.loads(json_.outcomes_document("p", result))["outcomes"] == []


def test_the_file_appears_whole_or_not_at_all(
    mcheck: Callable, litmus: Callable, engine_says: Callable, tmp_path: Path
) -> None:
    engine_says({"t": Answer(verdict="pass"), "interrupted": KeyboardInterrupt()})
    report = tmp_path / "report.json"
    report.write_text("old")
    done = mcheck("run", litmus("t"), *MODEL, "--format", "json", "-o", report)
    assert (done.status, done.out) == (0, "")
    assert json.loads(report.read_text())["summary"]["ok"] == 1
    report.write_text("old")
    assert mcheck("run", litmus("t"), "--model", "absent", "-o", report).status == 2
    assert report.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_permissions_of_the_file_are_the_usual_ones(
    mcheck: Callable, litmus: Callable, engine_says: Callable, tmp_path: Path
) -> None:
    engine_says({})
    usual = tmp_path / "usual"
    usual.touch()
    mcheck("run", litmus("t"), *MODEL, "-o", tmp_path / "report")
    assert (tmp_path / "report").stat().st_mode == usual.stat().st_mode


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal, file = Terminal(), io.StringIO()
    assert wants_color("auto", terminal)
    assert not wants_color("auto", file)
    assert wants_color("always", file)
    assert not wants_color("never", terminal)
    monkeypatch.setenv("NO_COLOR", "1")
    assert not wants_color("auto", terminal)
    assert wants_color("always", terminal)
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert not wants_color("auto", terminal)


def test_coloured_text_is_the_plain_text_with_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    written = []
    for color in (False, True):
        stream = Terminal()
        report = TextReport(Printer(stream, color=color), details=True)
        for result in RESULTS:
            report.result(result)
        report.finish(SUMMARY)
        written.append(stream.getvalue())
    assert "\x1b[" not in written[0]
    assert "\x1b[" in written[1]
    assert re.sub(r"\x1b\[[0-9;]*m", "", written[1]) == written[0]


def test_the_command_colours_on_request(mcheck: Callable, litmus: Callable) -> None:
    done = mcheck("run", litmus("MP"), *MODEL, "--color", "always")
    assert "\x1b[" in done.out
    assert "\x1b[" not in mcheck("run", litmus("MP"), *MODEL).out


def test_quiet_and_verbose(mcheck: Callable, litmus: Callable, engine_says: Callable) -> None:
    engine_says({"bad": Answer(verdict="fail")})
    paths = [litmus("good", "expect pass"), litmus("bad", "expect pass")]
    quiet = mcheck("run", *paths, *MODEL, "-q")
    assert "good.litmus" not in quiet.out
    assert "bad.litmus" in quiet.out
    verbose = mcheck("run", *paths, *MODEL, "-v")
    assert verbose.out.count(" under ptx-7.5") == 2
    assert re.search(r"\d\.\d+ s  \S+good.litmus", verbose.err)
    assert " s\n" not in verbose.out


def test_the_bar_shows_up_only_when_it_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    printer = Printer(stream, color=False)
    with Bar(2, printer, enabled=True) as bar:
        bar.advance(RESULTS[0].verdict, ok=RESULTS[0].ok)
    assert stream.getvalue() == ""
    monkeypatch.setattr("mcheck.report.progress.DELAY", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with Bar(2, printer, enabled=True) as bar:
        bar.advance(RESULTS[0].verdict, ok=RESULTS[0].ok)
        printer.line("above the bar")
        bar.advance(RESULTS[1].verdict, ok=RESULTS[1].ok)
    assert "2/2" in stream.getvalue()
    assert "above the bar\n" in stream.getvalue()


def test_a_long_check_of_one_file_says_how_far_it_has_come(mcheck: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(Path(__file__).parents[2] / "simt" / "corpus" / "cuda" / "barrier_tx.ptx")
    assert "after" not in mcheck("check", path).err
    monkeypatch.setattr("mcheck.report.progress.LONG", 0.0)
    monkeypatch.setattr("mcheck.base.progress.EVERY", 0.0)
    told = mcheck("check", path).err.splitlines()
    assert re.fullmatch(r"\S+barrier_tx.ptx: after \d+ s: .*; with --timeout SECONDS what was found .*", told[0])
    assert not any("--timeout" in line for line in told[1:])
    in_a_process = mcheck("check", path, "--timeout", "60").err
    assert re.search(r"barrier_tx.ptx: after \d+ s: ", in_a_process)
    assert "SECONDS" not in in_a_process
    assert "after" not in mcheck("check", path, "-q").err


def test_on_a_terminal_that_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcheck.report.progress.PATIENCE", 0.0)
    monkeypatch.setattr("mcheck.report.progress.OFTEN", 0.0)
    monkeypatch.setenv("COLUMNS", "24")
    stream = Terminal()
    with CheckProgress(stream, "k.ptx", "; a hint") as shown:
        shown.update("")
        shown.update("loop 1")
        shown.update("a loop of many rounds")
    assert stream.getvalue() == "\r\x1b[Kk.ptx: after 0 s: loop…\r\x1b[Kk.ptx: after 0 s: a lo…\r\x1b[K"


def test_outcomes(mcheck: Callable, litmus: Callable) -> None:
    path = litmus("MP")
    done = mcheck("outcomes", path, *MODEL)
    assert done.status == 0
    assert done.out.startswith("MP under ptx-7.5: 3 states\n\nP1:r0=0; P1:r1=0;  (1 execution)\n")
    document = json.loads(mcheck("outcomes", path, *MODEL, "--format", "json").out)
    assert list(document) == ["schema", "tool", "version", "path", "model", "outcomes", "undefined", "findings"]
    assert [outcome["state"] for outcome in document["outcomes"]] == [
        {"P1:r0": 0, "P1:r1": 0},
        {"P1:r0": 0, "P1:r1": 1},
        {"P1:r0": 1, "P1:r1": 1},
    ]
    assert all(list(outcome) == ["state", "executions", "witness"] for outcome in document["outcomes"])
    assert document["path"] == str(path)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer(verdict="fail"), 0),
        (Answer(verdict="pass", findings=(RACE,), undefined=True), 0),
        (Answer(verdict="unknown", complete=False, reasons=(Reason(Cause.TIME, "time-out"),)), 3),
        (InputError("wrong"), 2),
        (ZeroDivisionError("oops"), 70),
    ],
)
def test_exit_statuses_of_outcomes(
    mcheck: Callable, litmus: Callable, engine_says: Callable, answer: Answer | Exception, status: int
) -> None:
    engine_says({"t": answer})
    done = mcheck("outcomes", litmus("t"), *MODEL)
    assert done.status == status
    if isinstance(answer, Answer) and answer.undefined:
        assert "some execution is undefined" in done.out


def test_models(mcheck: Callable) -> None:
    listed = mcheck("models")
    assert listed.status == 0
    names = [line.split()[0] for line in listed.out.splitlines()]
    assert {"sc", "ptx-6.0", "ptx-7.5"} <= set(names)
    assert all(len(line.split()) > 3 for line in listed.out.splitlines()), "every model says what it is"
    for name in names:
        text = mcheck("models", name).out
        assert text == full_text(name)


def test_explain(mcheck: Callable) -> None:
    listed = mcheck("explain")
    codes = [line.split()[0] for line in listed.out.splitlines()]
    assert len(codes) == len(set(codes)) > 10
    for code in codes:
        done = mcheck("explain", code)
        assert done.status == 0
        assert done.out.startswith(f"{code} ")
        for heading in ("section: ", "fix", "after this finding", "incorrect", "correct"):
            assert heading in done.out
    assert "axioms\n" in mcheck("explain", "ptx-7.5").out
    assert mcheck("explain", codes[0].lower()).out == mcheck("explain", codes[0]).out


def test_help_of_every_command(mcheck: Callable) -> None:
    assert "70 internal error" in " ".join(mcheck("--help").out.split())
    for command in ("run", "outcomes", "models", "explain"):
        done = mcheck(command, "--help")
        assert done.status == 0
        assert done.out.startswith(f"Usage: mcheck {command}")
    assert re.fullmatch(r"mcheck \d+\.\d+\.\d+\n", mcheck("--version").out)


def test_the_remark_in_text_and_json(tmp_path: Path, mcheck: Callable[..., Any]) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(HEAD + RING, encoding="utf-8")
    path.with_suffix(".json").write_text(json.dumps(launch(3, 32)), encoding="utf-8")
    lines = mcheck("check", path).out.splitlines()
    assert lines[1] == "  this launch fills no stage of `buf` twice, so refills were not checked: they take more rounds"
    (result,) = json.loads(mcheck("check", path, "--format", "json").out)["results"]
    assert result["filled_once"] == ["buf"]
    path.with_suffix(".json").write_text(json.dumps(launch(4, 32)), encoding="utf-8")
    assert "twice" not in mcheck("check", path).out
    (result,) = json.loads(mcheck("check", path, "--format", "json").out)["results"]
    assert "filled_once" not in result
