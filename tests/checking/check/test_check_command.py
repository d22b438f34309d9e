"""``mcheck check`` as it is called: verdicts, statuses, reports, selection and suppression."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from time import process_time

import pytest

from mcheck.tools.cli.main import main

CLEAN = """\
PTX clean
{ .global .align 16 .b8 dst[16]; .shared .align 16 .b8 buf[16]; }
P@cta 0 {
  st.shared.u32 [buf], 7;
  fence.proxy.async.shared::cta;
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
"""
RACE = CLEAN.replace("PTX clean", "PTX race").replace("  fence.proxy.async.shared::cta;\n", "")
OVERFILLED = """\
PTX overfilled
{ .global .align 16 .b8 src[256]; .shared .align 16 .b8 buf[256]; .shared .b64 full[2], empty[2]; }
P@cta 0, warp 0 {
  if (%laneid == 0) {
    for s in 0..2 { mbarrier.init.shared::cta.b64 [full[s]], 1; mbarrier.init.shared::cta.b64 [empty[s]], 1; }
    fence.mbarrier_init.release.cluster;
  }
  bar.sync 0;
  if (%laneid == 0) {
    for k in 0..3 {
      await mbarrier.try_wait.parity.shared::cta.b64 [empty[k % 2]], ((k / 2) % 2) ^ 1;
      mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k % 2]], 128;
      cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf + (k % 2)*128], [src], 128, [full[k % 2]];
    }
  }
}
C@cta 0, warp 1..3 {
  bar.sync 0;
  for k in 0..3 {
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k % 2]], (k / 2) % 2;
    ld.shared.u32 r0, [buf + (k % 2)*128 + %laneid*4];
    fence.proxy.async.shared::cta;
    bar.warp.sync 0xffffffff;
    if (%laneid == 0) { mbarrier.arrive.shared::cta.b64 _, [empty[k % 2]]; }
  }
}
"""
STORE = "cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;"
REVIEW = """\
PTX review
{ .shared .align 8 .b64 bar; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  mbarrier.arrive.shared::cta.b64 _, [bar];
}
"""
UNKNOWN = """\
PTX unknown
model ptx-7.5
{ x = 0; y @ generic aliases x; }
P@cta 0 { st.weak.u32 [x], 1; fence.proxy.alias; ld.weak.u32 r0, [y]; }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "test.litmus"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(["check", *arguments])
    return status, capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "status", "verdict"),
    [
        (CLEAN, 0, "proved"),
        (RACE, 1, "finding"),
        (RACE + "expect race\n", 0, "finding"),
        (RACE + "expect deadlock\n", 1, "finding"),
        (RACE + "expect clean\n", 1, "finding"),
        (CLEAN + "expect race\n", 1, "proved"),
        (REVIEW, 0, "finding"),
    ],
)
def test_status(file: Path, capsys: pytest.CaptureFixture[str], text: str, status: int, verdict: str) -> None:
    file.write_text(text)
    code, out = run(capsys, "--format", "json", str(file))
    assert (code, json.loads(out)["results"][0]["verdict"]) == (status, verdict)


def test_an_engine_that_does_not_know_says_so(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(UNKNOWN)
    code, out = run(capsys, "--engine", "protocol", "--format", "json", str(file))
    (result,) = json.loads(out)["results"]
    assert (code, result["verdict"]) == (3, "unknown")
    assert result["assumptions"][0].startswith("not covered: ")


def test_json_has_the_keys_of_the_interface(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RACE)
    _, out = run(capsys, "--format", "json", str(file))
    document = json.loads(out)
    assert set(document) == {"schema", "tool", "version", "model", "profile", "results", "summary"}
    assert document["summary"] == {"files": 1, "clean": 0, "findings": 1, "unknown": 0, "error": 0}
    (result,) = document["results"]
    assert set(result) == {"path", "name", "verdict", "findings", "assumptions", "executions", "seconds", "groups"}
    (finding,) = result["findings"]
    assert set(finding) == {
        "code", "kind", "severity", "message", "accesses", "missing", "spec", "trace", "edits",
    }  # fmt: skip
    write, read = finding["accesses"]
    assert (write["line"], write["proxy"], write["access"]) == (4, "generic", "write")
    assert (read["line"], read["proxy"], read["access"], read["object"]) == (5, "async", "read", "buf@0")
    assert (write["bytes"], read["bytes"]) == ([0, 4], [0, 16])
    assert finding["trace"]


def test_profiles(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(REVIEW)
    severities = []
    for profile in ("strict", "ptx", "permissive"):
        _, out = run(capsys, "--profile", profile, "--format", "json", str(file))
        severities.append(json.loads(out)["results"][0]["findings"][0]["severity"])
    assert severities == ["error", "review", "advice"]


def test_select_and_ignore(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RACE)
    assert run(capsys, "--select", "UB,DEAD", str(file))[0] == 0
    assert run(capsys, "--select", "RACE", str(file))[0] == 1
    assert run(capsys, "--ignore", "race004", str(file))[0] == 0
    assert run(capsys, "--ignore", "NOPE", str(file))[0] == 2


@pytest.mark.daily(days=3, least=0)
def test_what_is_ignored_does_not_keep_the_search_from_its_end(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(OVERFILLED)
    looked = []
    for given in ((), ("--ignore", "UB212")):
        code, out = run(capsys, "--format", "json", *given, str(file))
        result = json.loads(out)["results"][0]
        looked.append((code, {f["code"] for f in result["findings"]}, result["executions"] < 100))
    every = {"UB212", "RACE003", "DEAD003"}
    assert looked == [(1, every, True), (1, every - {"UB212"}, True)]


RACE_BEHIND_A_DEADLOCK = """\
PTX late
{ .shared .u32 x; .shared .b64 b; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [b], 1;
  bar.sync 0;
  mbarrier.arrive.shared::cta.b64 _, [b];
  await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;
  mbarrier.arrive.shared::cta.b64 _, [b];
  await mbarrier.try_wait.parity.shared::cta.b64 [b], 1;
  st.shared.u32 [x], 1;
  mbarrier.arrive.shared::cta.b64 _, [b];
  await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;
}
Q@cta 0 {
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;
  ld.shared.u32 r0, [x];
  mbarrier.arrive.shared::cta.b64 _, [b];
}
"""


@pytest.mark.daily(days=3)
@pytest.mark.parametrize("kind", ["deadlock", "race", "undefined"])
def test_what_a_file_expects_is_looked_for(file: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    file.write_text(f"{RACE_BEHIND_A_DEADLOCK}expect {kind}\n")
    assert main(["check", str(file)]) == 0
    assert "(as expected)" in capsys.readouterr().out


def test_suppression_wants_a_reason(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RACE.replace(STORE, f"{STORE}  // mcheck: ignore RACE004 the fence is in the caller"))
    code, out = run(capsys, "-v", str(file))
    assert code == 0
    assert "RACE004 is suppressed in line 4: the fence is in the caller" in out
    file.write_text(RACE.replace(STORE, f"{STORE}  // mcheck: ignore RACE004"))
    assert main(["check", str(file)]) == 1
    assert "without a reason" in capsys.readouterr().err


def test_a_suppression_above_the_line(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RACE.replace("  st.shared", "  // mcheck: ignore RACE004 known\n  st.shared"))
    assert run(capsys, str(file))[0] == 0
    file.write_text(CLEAN.replace("  st.shared", "  // mcheck: ignore RACE004 known\n  st.shared"))
    assert main(["check", str(file)]) == 0
    assert "unused suppression" in capsys.readouterr().err


def test_text_shows_lines_with_carets(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RACE)
    assert "trace:" not in run(capsys, str(file))[1]
    _, out = run(capsys, "-v", str(file))
    assert "error[RACE004]: " in out
    assert f"{file}:4:3" in out
    assert "st.shared.u32 [buf], 7;" in out
    assert "^^^^" in out
    assert "trace:" in out


def test_what_a_sketch_need_not_have(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(CLEAN.replace("  st.shared", "  mul.f32 %f0, %f0, %f1;\n  st.shared"))
    status, out = run(capsys, str(file))
    assert status == 3
    assert "hint: leave arithmetic out" in out


def test_a_wait_without_await(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(REVIEW.replace("\n}\n", "\n  mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;\n}\n"))
    assert main(["check", str(file)]) == 2
    assert "hint: write await before it" in capsys.readouterr().err


def test_many_findings_are_counted(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "Q@cta 0 { ld.shared.u32 r0, [buf]; }\nR@cta 0 { st.shared.u32 [buf], 2; }\n"
    file.write_text(RACE + other)
    status, out = run(capsys, str(file))
    assert status == 1
    (counts,) = (line for line in out.splitlines() if " findings): " in line)
    assert counts == "  4 bugs (5 findings): RACE001 (2), RACE003, RACE004"


def test_a_wait_that_was_passed_before_has_the_right_parity(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ring = """PTX ring
{ .global .align 16 .b8 src[16]; .shared .align 16 .b8 buf[16]; .shared .b64 full, empty; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [empty], 1;
  for k in 0..2 {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty], (k%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [full];
  }
}
"""
    file.write_text(ring)
    assert "Nothing arrived on empty@0: who uses what line 8 fills has to arrive" in run(capsys, "-v", str(file))[1]
    file.write_text(ring.replace("(k%2)^1", "k%2"))
    assert "begin with parity 1 there" in run(capsys, str(file))[1]


def test_sarif(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RACE)
    _, out = run(capsys, "--format", "sarif", str(file))
    document = json.loads(out)
    assert document["version"] == "2.1.0"
    (result,) = document["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("RACE004", "error")
    assert document["runs"][0]["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == "RACE004"
    assert len(result["relatedLocations"]) == 2
    steps = result["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [s["executionOrder"] for s in steps] == sorted(s["executionOrder"] for s in steps)


def test_github_and_junit(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RACE)
    _, out = run(capsys, "--format", "github", str(file))
    assert out.startswith(f"::error file={file},line=5,col=3,title=RACE004 race::")
    _, out = run(capsys, "--format", "junit", str(file))
    root = ET.fromstring(out)
    assert [(suite.get("tests"), suite.get("failures")) for suite in root] == [("1", "1")]


def test_an_annotation_of_a_mistake_says_what_was_expected_and_a_hint(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The place is the annotation's own, and is not told again."""
    file.write_text("kernel k {}")
    _, out = run(capsys, "--format", "github", str(file))
    message = (
        "a litmus test starts with PTX and the name of the test%0Aexpected: PTX name"
        "%0Ahint: the first line is 'PTX' and a name"
    )
    assert out.splitlines()[0] == f"::error file={file},line=1,col=1,title=error::{message}"


def test_bad_input(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RACE.replace("[buf], 7", "[bufer], 7"))
    code, out = run(capsys, "--format", "json", str(file))
    assert (code, json.loads(out)["summary"]["error"]) == (2, 1)


def test_engines_agree(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text, status in ((CLEAN, 0), (RACE, 1)):
        file.write_text(text)
        for engine in ("both", "explicit", "z3", "protocol"):
            assert run(capsys, "--engine", engine, str(file))[0] == status


def test_both_says_which_engines_it_asked(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(CLEAN)
    assert "by the protocol, explicit and z3 engines" in run(capsys, "--engine", "both", "-v", str(file))[1]


@pytest.mark.daily(one_of="heavy")
def test_many_files_on_two_processes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for k in range(4):
        (tmp_path / f"t{k}.litmus").write_text(RACE if k == 2 else CLEAN)
    code, out = run(capsys, "--jobs", "2", "--format", "json", str(tmp_path))
    assert code == 1
    assert [r["verdict"] for r in json.loads(out)["results"]] == ["proved", "proved", "finding", "proved"]


@pytest.mark.daily(one_of="heavy")
def test_time_limits_hold_while_a_wide_sketch_is_prepared(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    roles = "worker@cluster 0..9, cta 0..17, lane 0"
    file.write_text(CLEAN.replace("P@cta 0", roles).replace("dst[16]", "dst[4096]"))
    start = process_time()
    assert run(capsys, "--engine", "explicit", "--timeout", "1", "--jobs", "1", str(file))[0] == 3
    assert process_time() - start < 6
