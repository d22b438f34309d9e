"""``mcheck run``: what is run, what counts as expected, exit statuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mcheck.answers.result import Answer
from mcheck.base.errors import Unsupported
from mcheck.base.reasons import Cause, Reason
from mcheck.findings.finding import Finding

MODEL = ("--model", "ptx-7.5")


def found(kind: str, severity: str = "error") -> Finding:
    return Finding(code="X001", kind=kind, severity=severity, said=("something",))


# --- the real engine ---------------------------------------------------------------------------


def test_one_test_shows_its_states(mcheck: Callable, litmus: Callable) -> None:
    path = litmus("MP")
    done = mcheck("run", path, *MODEL)
    assert done.status == 0
    assert done.err == ""
    assert done.out == (
        f"ok       pass {path}\n"
        "    ~exists (P1:r0 == 1 /\\ P1:r1 == 0) under ptx-7.5\n"
        "    3 states, 3 executions\n"
        "      P1:r0=0; P1:r1=0;\n"
        "      P1:r0=0; P1:r1=1;\n"
        "      P1:r0=1; P1:r1=1;\n"
    )


def test_json_document_to_the_letter(mcheck: Callable, litmus: Callable) -> None:
    path = litmus("MP", "expect pass")
    done = mcheck("run", path, *MODEL, "--format", "json")
    document = json.loads(done.out)
    assert list(document) == ["schema", "tool", "version", "model", "tests", "summary"]
    (test,) = document["tests"]
    assert test.pop("seconds") > 0
    assert document["summary"].pop("seconds") > 0
    assert document["summary"] == {"tests": 1, "ok": 1, "mismatch": 0, "unknown": 0, "error": 0}
    assert list(test.items()) == [
        ("path", str(path)),
        ("name", "MP"),
        ("condition", "~exists (P1:r0 == 1 /\\ P1:r1 == 0)"),
        ("kind", "~exists"),
        ("verdict", "pass"),
        ("expected", "pass"),
        ("model", "ptx-7.5"),
        ("ok", True),
        ("states", [{"P1:r0": 0, "P1:r1": 0}, {"P1:r0": 0, "P1:r1": 1}, {"P1:r0": 1, "P1:r1": 1}]),
        ("complete", True),
        ("undefined", False),
        ("findings", []),
        ("executions", 3),
        ("engine", "explicit"),
        ("reason", None),
    ]


def test_the_files_model_yields_to_the_option(mcheck: Callable, litmus: Callable) -> None:
    text = litmus("MP").read_text().replace("PTX MP\n", "PTX MP\nmodel sc\n")
    path = litmus("MP", text=text)
    assert json.loads(mcheck("run", path, "--format", "json").out)["tests"][0]["model"] == "sc"
    assert json.loads(mcheck("run", path, *MODEL, "--format", "json").out)["tests"][0]["model"] == "ptx-7.5"


@pytest.mark.parametrize("command", ["run", "check"])
def test_an_unknown_model_of_a_file_is_shown_there(mcheck: Callable, litmus: Callable, command: str) -> None:
    text = litmus("MP").read_text().replace("PTX MP\n", "PTX MP\nmodel ptx-9,0\n")
    done = mcheck(command, litmus("MP", text=text))
    assert done.status == 2
    assert "MP.litmus:2:7\n2 | model ptx-9,0\n  |       ^^^^^^^\n" in done.err
    assert "did you mean ptx-9.0?" in done.err


# --- expectations ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "answer", "status"),
    [
        ("", Answer(verdict="pass"), 0),
        ("", Answer(verdict="fail"), 0),
        ("", Answer(verdict="fail", findings=(found("race"),)), 0),
        ("", Answer(verdict="unknown", reasons=(Reason(Cause.BOUND, "bound"),)), 3),
        ("expect pass", Answer(verdict="pass"), 0),
        ("expect pass", Answer(verdict="fail"), 1),
        ("expect fail", Answer(verdict="fail"), 0),
        ("expect fail", Answer(verdict="pass"), 1),
        ("expect fail", Answer(verdict="unknown"), 3),
        ("expect clean", Answer(verdict="pass"), 0),
        ("expect clean", Answer(verdict="pass", findings=(found("race", "review"),)), 0),
        ("expect clean", Answer(verdict="pass", findings=(found("race"),)), 1),
        ("expect clean", Answer(verdict="unknown"), 3),
        ("expect clean", Answer(verdict="unknown", findings=(found("race"),)), 1),
        ("expect race", Answer(verdict="pass"), 1),
        ("expect race", Answer(verdict="pass", findings=(found("race"),)), 0),
        ("expect race", Answer(verdict="pass", findings=(found("race", "review"), found("deadlock"))), 0),
        ("expect race", Answer(verdict="pass", findings=(found("race", "advice"),)), 1),
        ("expect race", Answer(verdict="pass", findings=(found("undefined"),)), 1),
        ("expect undefined", Answer(verdict="pass", findings=(found("undefined"),)), 0),
        ("expect race | deadlock", Answer(verdict="pass", findings=(found("deadlock"),)), 0),
        ("expect race | deadlock", Answer(verdict="pass", findings=(found("undefined"),)), 1),
        ("expect race\nexpect deadlock", Answer(verdict="pass", findings=(found("race"),)), 1),
        ("expect race\nexpect deadlock", Answer(verdict="pass", findings=(found("race"), found("deadlock"))), 0),
        ("expect fail\nexpect race", Answer(verdict="fail", findings=(found("race"),)), 0),
        ("expect fail\nexpect race", Answer(verdict="pass", findings=(found("race"),)), 1),
        ("expect fail\nexpect race", Answer(verdict="fail"), 1),
    ],
)
def test_expect_lines(
    mcheck: Callable, litmus: Callable, engine_says: Callable, tail: str, answer: Answer, status: int
) -> None:
    engine_says({"t": answer})
    path = litmus("t", tail)
    assert mcheck("run", path, *MODEL).status == status
    test = json.loads(mcheck("run", path, *MODEL, "--format", "json").out)["tests"][0]
    assert test["ok"] == (status == 0)


def test_findings_are_asked_for_where_the_file_expects_some(
    mcheck: Callable, litmus: Callable, engine_says: Callable
) -> None:
    calls = engine_says({})
    mcheck("run", litmus("plain"), *MODEL, "--verdict-only")
    mcheck("run", litmus("clean", "expect clean"), *MODEL, "--verdict-only")
    mcheck("run", litmus("full"), *MODEL)
    assert [call["verdict_only"] for call in calls] == [True, False, False]


def test_options_reach_the_engine(mcheck: Callable, litmus: Callable, engine_says: Callable) -> None:
    calls = engine_says({})
    options = ["--property", "liveness", "--unroll", "5", "--profile", "strict", "--engine", "explicit", "--jobs", "1"]
    mcheck("run", litmus("t"), *MODEL, *options)
    (call,) = calls
    wanted = {"prop": "liveness", "unroll": 5, "profile": "strict", "timeout": None, "verdict_only": False}
    assert {key: call[key] for key in wanted} == wanted


def test_expectations_from_a_csv_file(
    mcheck: Callable, litmus: Callable, tmp_path: Path, engine_says: Callable
) -> None:
    engine_says({"a": Answer(verdict="pass"), "b": Answer(verdict="fail")})
    litmus("suite/a")
    litmus("suite/b", "expect pass")  # the table outweighs the file
    litmus("suite/c", "expect pass")
    table = tmp_path / "table.csv"
    table.write_text("suite/b.litmus,0\n\nsuite/a.litmus,1\n")
    done = mcheck("run", "--expect", table, *MODEL)
    assert done.status == 0
    assert [line.split("/")[-1] for line in done.out.splitlines()[:-1]] == ["b.litmus", "a.litmus"], "the rows' order"
    table.write_text("suite/a.litmus,0\nsuite/b.litmus,0\n")
    done = mcheck("run", "--expect", table, *MODEL)
    assert done.status == 1
    assert "expected fail, found pass" in done.out
    done = mcheck("run", "--expect", table, tmp_path / "suite", *MODEL, "--format", "json")
    assert [test["expected"] for test in json.loads(done.out)["tests"]] == ["fail", "fail", "pass"]


UNFLAGGED = """PTX unflagged
{ .global .u32 x, f; }
writer@cta 0, warp 0, lane 0 { st.weak.global.u32 [x], 1; st.relaxed.gpu.global.u32 [f], 1; }
reader@cta 1, warp 0, lane 0 { ld.relaxed.gpu.global.u32 r0, [f]; ld.weak.global.u32 r1, [x]; }
exists (reader:r0 == 1 /\\ reader:r1 == 0)
"""


def test_fixes_are_tried_where_the_report_shows_them(
    mcheck: Callable, litmus: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcheck.engines.protocol import findings_answer

    tried = []
    answer = findings_answer.answer
    monkeypatch.setattr(findings_answer, "answer", lambda one, *a, **k: tried.append(one.name) or answer(one, *a, **k))
    right, wrong = litmus("right", text=UNFLAGGED + "expect race\n"), litmus("wrong", text=UNFLAGGED + "expect fail\n")
    alone = mcheck("run", wrong, "--jobs", "1").out
    assert tried == ["unflagged"]
    assert "= fix: " in alone
    for options, number in (
        ((), 1),
        (("-q",), 1),
        (("-v",), 2),
        (("--format", "json"), 2),
        (("--cache", tmp_path / "c"), 2),
    ):
        tried.clear()
        together = mcheck("run", right, wrong, "--jobs", "1", *options).out
        assert len(tried) == number, options
        if "--format" not in options:
            assert set(alone.splitlines()[1:-1]) <= set(together.splitlines())
    table = tmp_path / "table.csv"
    table.write_text("right.litmus,1\nwrong.litmus,1\n")  # it outweighs the files
    tried.clear()
    assert mcheck("run", "--expect", table, "--jobs", "1").status == 0
    assert tried == []


def test_folders_are_walked_in_order_and_each_test_runs_once(
    mcheck: Callable, litmus: Callable, tmp_path: Path, engine_says: Callable
) -> None:
    engine_says({})
    for name in ("b/2", "a/1", "b-c/1", "b/1"):
        litmus(name)
    (tmp_path / "a" / "notes.txt").write_text("not a test")
    done = mcheck("run", tmp_path, tmp_path / "a" / "1.litmus", tmp_path / "b", *MODEL)
    shown = [line.split(maxsplit=2)[2] for line in done.out.splitlines()[:-1]]
    assert [str(Path(path).relative_to(tmp_path)) for path in shown] == [
        "a/1.litmus",
        "b/1.litmus",
        "b/2.litmus",
        "b-c/1.litmus",
    ]


# --- exit statuses -----------------------------------------------------------------------------

FATES = {
    "ok": (Answer(verdict="pass"), 0),
    "mismatch": (Answer(verdict="fail"), 1),
    "unknown": (Answer(verdict="unknown", reasons=(Reason(Cause.TIME, "time-out"),)), 3),
    "unsupported": (Unsupported("not modelled"), 3),
    "crash": (ZeroDivisionError("division by zero"), 70),
}


@pytest.mark.parametrize(
    ("names", "status"),
    [
        (["ok"], 0),
        (["ok", "unknown"], 3),
        (["unsupported"], 3),
        (["ok", "unknown", "mismatch"], 1),
        (["bad", "unknown", "mismatch", "ok"], 2),
        (["bad", "ok"], 2),
        (["crash", "bad", "mismatch"], 70),
    ],
)
def test_precedence(mcheck: Callable, litmus: Callable, engine_says: Callable, names: list[str], status: int) -> None:
    engine_says({name: answer for name, (answer, _) in FATES.items()})
    paths = [litmus(name, "expect pass", text="PTX bad\n{" if name == "bad" else None) for name in names]
    done = mcheck("run", *paths, *MODEL)
    assert done.status == status
    if len(names) > 1:
        assert done.out.splitlines()[-1].startswith(f"{len(names)} tests: {names.count('ok')} ok, ")


def test_a_file_that_does_not_parse_is_shown_and_the_others_run(mcheck: Callable, litmus: Callable) -> None:
    bad = litmus("bad", text="PTX bad\n{ x=0; }\n P0@cta 0,gpu 0 ;\n st.weak.gpu x, 1 ;\nexists (x == 1)\n")
    good = litmus("good", "expect pass")
    done = mcheck("run", bad, good, *MODEL)
    assert done.status == 2
    assert f"--> {bad}:4:" in done.err
    assert "^" in done.err
    assert f"error         {bad}\nok       pass {good}" in done.out, "what is wrong is said once"
    report = bad.with_suffix(".txt")
    assert mcheck("run", bad, good, *MODEL, "-o", report).status == 2
    assert f"error         {bad}\n    {bad}:4:" in report.read_text(), "a report in a file says it too"
    assert done.out.endswith("2 tests: 1 ok, 0 mismatches, 0 unknown, 1 error\n")
    test = json.loads(mcheck("run", bad, *MODEL, "--format", "json").out)["tests"][0]
    assert (test["verdict"], test["ok"], test["states"], test["complete"]) == ("error", False, [], False)
    assert test["reason"].startswith(f"{bad}:4:")


def test_a_crash_asks_for_a_report_in_one_line(
    mcheck: Callable, litmus: Callable, engine_says: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine_says({"crash": ZeroDivisionError("division by zero")})
    done = mcheck("run", litmus("crash"), *MODEL)
    assert done.status == 70
    assert done.err.count("\n") == 1
    assert done.err.startswith("internal error: ZeroDivisionError: division by zero; please report it")


def test_a_crash_shows_its_traceback_on_request(
    litmus: Callable, engine_says: Callable, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mcheck.tools.cli.main import main

    monkeypatch.setenv("MCHECK_DEBUG", "1")
    engine_says({"crash": ZeroDivisionError("division by zero")})
    assert main(["run", str(litmus("crash")), *MODEL]) == 70
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_memory_that_runs_out_is_unknown(mcheck: Callable, litmus: Callable, engine_says: Callable) -> None:
    engine_says({"big": MemoryError()})
    done = mcheck("run", litmus("big"), *MODEL)
    assert done.status == 3
    assert "out of memory" in done.out


# --- warnings ----------------------------------------------------------------------------------

WARNED = """\
PTX warned
{ x=0; }
 P0@cta 0,gpu 0 ;
 st.weak x, 1   ;
exists (P0:r7 == 0)
"""


def test_warnings_are_shown_and_errors_on_request(mcheck: Callable, litmus: Callable) -> None:
    path = litmus("warned", text=WARNED)
    done = mcheck("run", path, *MODEL)
    assert done.status == 0
    assert done.err.startswith("warning")
    assert "r7" in done.err
    done = mcheck("run", path, *MODEL, "-W")
    assert done.status == 2
    assert done.err.startswith("error")


# --- odd input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("", "no row"),
        ("a.litmus\n", "bad row 'a.litmus'"),
        ("a.litmus,2\n", "bad row 'a.litmus,2'"),
        ("a.litmus,pass\n", "expected: path,1 (pass) or path,0 (fail)"),
        (",1\n", "bad row ',1'"),
        ("a.litmus,1\na.litmus,0\n", "a.litmus is expected both to pass and to fail"),
        ("\x00\x01,1,\n", "bad row"),
        ("a.lit\x00mus,1\n", "bad row"),
    ],
)
def test_bad_tables(mcheck: Callable, tmp_path: Path, table: str, message: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(table)
    done = mcheck("run", "--expect", path)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


def test_unreadable_table(mcheck: Callable, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"\xff\xfe\x00a,1")
    assert mcheck("run", "--expect", path).status == 2
    assert "No such file" in mcheck("run", "--expect", tmp_path / "absent.csv").err
    assert "Is a directory" in mcheck("run", "--expect", tmp_path).err


def test_a_row_without_its_file_is_an_error(mcheck: Callable, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("absent.litmus,1\n")
    done = mcheck("run", "--expect", path, *MODEL)
    assert done.status == 2
    assert "absent.litmus" in done.out


def test_a_table_that_names_none_of_the_tests_is_an_error(mcheck: Callable, litmus: Callable, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("elsewhere.litmus,1\n")
    done = mcheck("run", "--expect", path, litmus("t"), *MODEL)
    assert done.status == 2
    assert "none of the tests has a row" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "nothing to run"),
        (["run", "absent.litmus"], "no such file or folder: absent.litmus"),
        (["run", "."], "no .litmus file in ."),
        (["run", "t.litmus", "--model", "ptx-99"], "ptx-99"),
        (["run", "t.litmus", "--model", "absent.cat"], "absent.cat"),
        (["run", "t.litmus", "--engine", "magic"], "magic"),
        (["run", "t.litmus", "--jobs", "0"], "jobs"),
        (["run", "t.litmus", "--timeout", "0"], "timeout"),
        (["run", "t.litmus", "--timeout", "nan"], "timeout"),
        (["run", "t.litmus", "--unroll", "-1"], "unroll"),
        (["run", "t.litmus", "--format", "yaml"], "yaml"),
        (["run", "t.litmus", "-o", "absent/report.txt"], "cannot write absent/report.txt"),
        (["run", "t.litmus", "-o", "."], "cannot write ."),
        (["frobnicate"], "frobnicate"),
        (["outcomes"], "PATH"),
        (["outcomes", "absent.litmus"], "no such file"),
        (["explain", "NOPE999"], "NOPE999"),
        (["models", "nope"], "nope"),
        ([], "Usage: mcheck"),
    ],
)
def test_usage_errors(
    mcheck: Callable,
    litmus: Callable,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    if "t.litmus" in arguments:
        (empty / "t.litmus").write_text(litmus("t").read_text())
    done = mcheck(*arguments)
    assert (done.status, done.out) == (2, "")
    assert message in done.err


@pytest.mark.parametrize("data", [b"", b"\x00\xff\xfe", b"PTX", b"{" * 5000, b"PTX t\n{ }\n" + b"(" * 5000])
def test_odd_bytes(mcheck: Callable, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "odd.litmus"
    path.write_bytes(data)
    done = mcheck("run", path, *MODEL)
    assert done.status == 2
    assert "internal" not in done.err


def test_odd_names(mcheck: Callable, litmus: Callable, tmp_path: Path, engine_says: Callable) -> None:
    engine_says({})
    text = litmus("t").read_text()
    for name in (b"with blank", b"d\xc3\xa9j\xc3\xa0", b"\xff\xfe", b"a,b", b'"quoted"', b"<x>&y"):
        (Path(str(tmp_path)) / f"{name.decode(errors='surrogateescape')}.litmus").write_text(text)
    for form in ("text", "json", "junit", "github"):
        assert mcheck("run", tmp_path, *MODEL, "--format", form).status == 0
    (tmp_path / "folder.litmus").mkdir()
    assert mcheck("run", tmp_path / "folder.litmus").status == 2
