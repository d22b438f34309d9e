"""Reports for machines against the schemas of their formats: every code, every verdict, odd names, odd characters."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator, FormatChecker
from lxml import etree

from mcheck.answers.result import Outcome
from mcheck.base.errors import InputError, Span
from mcheck.base.reasons import Cause, Reason
from mcheck.checking.policy.question import Completeness
from mcheck.checking.run.result import Result
from mcheck.findings import catalogue
from mcheck.findings.finding import Access, Finding
from mcheck.findings.fix import advise
from mcheck.findings.trace import Step, StepKind
from mcheck.report import checked
from mcheck.report.formats import junit, sarif
from mcheck.tools.cli.main import main

SCHEMAS = Path(__file__).parent / "schemas"
MALFORMED = Path(__file__).parents[1] / "frontend" / "litmus" / "malformed"
LITMUS = Path(__file__).parents[2] / "litmus"
SARIF = Draft4Validator(json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text()), format_checker=FormatChecker())
XML = [etree.XMLSchema(etree.parse(SCHEMAS / name)) for name in ("junit-10.xsd", "JUnit.xsd")]

RACE = """\
PTX race
{ .global .align 16 .b8 dst[16]; .shared .align 16 .b8 buf[16]; }
P@cta 0 {
  st.shared.u32 [buf], 7;
  cp.async.bulk.global.shared::cta.bulk_group [dst], [buf], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
}
"""
SUPPRESSED = RACE.replace("], 7;", '], 7;  // mcheck: ignore RACE004 the <caller> fences & "waits" \x7f\u2028')
UNUSED = RACE.replace("commit_group;", "commit_group;  // mcheck: ignore UB101 nothing")
EXPECTED = RACE + "expect race\n"
UNMET = RACE.replace("  st.shared.u32 [buf], 7;\n", "") + "expect deadlock\n"
UNKNOWN = (
    "PTX u\nmodel ptx-7.5\n{ x = 0; y @ generic aliases x; }\nP@cta 0 { st.weak.u32 [x], 1; ld.weak.u32 r0, [y]; }\n"
)

NAMES = ("a b", "ü", "100%", "q?x#y", "a:b", "quo\"te's", "<&>", "tab\tbell\x07", "new\nline", "[link](0)", "{0}", "𝔘")
CONTROLS = "".join(map(chr, range(32))) + "\x7f\x85\ufffe\uffff\ud800<&>\"']]>\u202e𝔘"


def sarif_of(text: str) -> dict[str, Any]:
    """The document, which keeps to the schema and to what the standard says beside it."""
    document: dict[str, Any] = json.loads(text)
    errors = sorted(SARIF.iter_errors(document), key=str)
    assert not errors, errors[0]
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["partialFingerprints"]
    prints = [json.dumps((r["partialFingerprints"], r["locations"][0]["physicalLocation"])) for r in run["results"]]
    assert len(set(prints)) == len(prints)
    for location in _artifact_locations(document):
        assert ("uriBaseId" in location) == (not location["uri"].startswith("file:///")), location
        assert location.get("uriBaseId", "%SRCROOT%") in run["originalUriBaseIds"]
        assert location["uri"].isascii()
        assert " " not in location["uri"]
    return document


def _artifact_locations(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, list):
        return [found for item in node for found in _artifact_locations(item)]
    if not isinstance(node, dict):
        return []
    here = [node["artifactLocation"]] if "artifactLocation" in node else []
    here += [a["location"] for a in node.get("artifacts", ())]
    return here + [found for value in node.values() for found in _artifact_locations(value)]


def junit_of(text: str) -> etree._Element:
    """The root of the document, which keeps to both schemas."""
    root = etree.fromstring(text.encode("utf-8"))
    for schema in XML:
        schema.assertValid(root)
    for suite in root:
        cases = suite.findall("testcase")
        counts = (len(cases), len(suite.findall("*/failure")), len(suite.findall("*/error")))
        assert tuple(int(suite.get(name)) for name in ("tests", "failures", "errors")) == counts
    return root


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs a command in an empty folder and returns what it writes."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        main([*arguments, "-o", "report", "--jobs", "1"])
        return Path("report").read_text(encoding="utf-8")

    return run


def write(name: str, text: str) -> str:
    path = Path(name + ".litmus")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_the_schemas_reject() -> None:
    with pytest.raises(AssertionError):
        sarif_of('{"version": "2.1.0", "runs": [{"tool": {}}]}')
    for schema in XML:
        assert not schema.validate(etree.fromstring("<testsuites><testsuite/></testsuites>"))


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("profile", ["strict", "permissive"])
def test_every_code(report: Callable, profile: str) -> None:
    entries = [entry for entry in catalogue.all() if not entry.is_module_only]
    paths = [write(f"codes/{entry.code}", entry.bad) for entry in entries]
    paths += [write(f"clean/{entry.code}", entry.good) for entry in entries]
    document = sarif_of(report("check", "--profile", profile, "--format", "sarif", *paths))
    run = document["runs"][0]
    rules = {rule["id"]: rule for rule in run["tool"]["driver"]["rules"]}
    assert set(rules) == {entry.code for entry in entries}
    assert all(rule["help"]["text"] and rule["help"]["markdown"] for rule in rules.values())
    assert {r["level"] for r in run["results"]} == ({"error"} if profile == "strict" else {"error", "warning", "note"})
    root = junit_of(report("check", "--profile", profile, "--format", "junit", *paths))
    assert [suite.get("name") for suite in root] == ["clean", "codes"]
    assert len(root.findall(".//testcase")) == 2 * len(rules)


def test_every_verdict(report: Callable) -> None:
    texts = {
        "race": RACE, "suppressed": SUPPRESSED, "unused": UNUSED, "expected": EXPECTED, "unmet": UNMET,
        "unknown": UNKNOWN, "error": RACE.replace("[buf], 7", "[bufer], 7"), "empty": "", "controls": CONTROLS[:-20],
    }  # fmt: skip
    paths = [write(f"v/{name}", text) for name, text in texts.items()]
    (run,) = sarif_of(report("check", "--engine", "protocol", "--format", "sarif", *paths))["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False
    assert run["invocations"][0]["exitCode"] == 2
    by_file = {r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]: r for r in run["results"]}
    assert set(by_file) == {f"v/{name}.litmus" for name in ("race", "suppressed", "unused", "expected")}
    assert by_file["v/race.litmus"].get("suppressions") is None
    assert by_file["v/suppressed.litmus"]["suppressions"][0]["justification"].startswith("the <caller>")
    assert by_file["v/expected.litmus"]["suppressions"][0]["justification"] == "expected by the file: expect race"
    assert len(by_file["v/race.litmus"]["relatedLocations"]) == 2
    assert by_file["v/race.litmus"]["codeFlows"][0]["threadFlows"][0]["locations"]
    notes = {
        (n["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], n["level"]): n
        for n in run["invocations"][0]["toolExecutionNotifications"]
    }
    region = notes["v/error.litmus", "error"]["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"]) == (4, 18)
    assert notes["v/unmet.litmus", "error"]["message"]["text"] == "expected deadlock, found nothing"
    assert ("v/unknown.litmus", "warning") in notes
    assert "unused suppression" in notes["v/unused.litmus", "warning"]["message"]["text"]
    root = junit_of(report("check", "--engine", "protocol", "--format", "junit", *paths))
    said = {case.get("name"): [why.tag for why in case] for case in root.iter("testcase")}
    assert {name for name, why in said.items() if not why} == {"expected.litmus", "suppressed.litmus"}
    assert said["unknown.litmus"] == said["error.litmus"] == said["empty.litmus"] == ["error"]
    assert said["unmet.litmus"] == said["race.litmus"] == ["failure"]


@pytest.mark.daily
@pytest.mark.parametrize("command", ["check", "run"])
def test_odd_names(report: Callable, command: str) -> None:
    paths = [write(f"{folder}/{name}", RACE) for name in NAMES for folder in ("plain", name, " ")]
    raw = os.fsdecode(b"\xff\xfe.litmus")
    Path(raw).write_text(RACE.replace("[buf], 7", "[bufer], 7"))
    root = junit_of(report(command, "--format", "junit", *paths, raw))
    assert len(root.findall(".//testcase")) == len(paths) + 1
    (run,) = sarif_of(report(command, "--format", "sarif", *paths, raw))["runs"]
    assert len(run["results"]) == len(paths)
    assert len(run["artifacts"]) == len(paths) + 1
    for form in ("text", "json", "github"):
        assert "bufer" in report(command, "--format", form, *paths, raw)


def test_mismatches_of_run(report: Callable) -> None:
    """A result per test that answers otherwise, at its expect line, and one per finding; what has no answer is a
    notification.
    """
    unmodelled = "PTX u\n{ .global .u32 x; }\nP@cta 0 { suld.b.1d.b32.trap r0, [x, {r1}]; }\n"
    texts = {"unmet": UNMET, "expected": EXPECTED, "unknown": unmodelled, "error": "PTX"}
    paths = [write(f"r/{name}", text) for name, text in texts.items()]
    (run,) = sarif_of(report("run", "--format", "sarif", *paths))["runs"]
    found, *others = run["results"]
    place = found["locations"][0]["physicalLocation"]
    assert found["ruleId"] == "mismatch"
    assert place["artifactLocation"]["uri"] == "r/unmet.litmus"
    assert place["region"]["startLine"] == len(UNMET.splitlines())
    assert "expected deadlock" in found["message"]["text"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert others
    for other in others:  # what is found, as `mcheck check` tells it
        assert rules[other["ruleIndex"]] == other["ruleId"] != "mismatch"
        expected = other["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "r/expected.litmus"
        assert ("suppressions" in other) is expected
    assert [n["level"] for n in run["invocations"][0]["toolExecutionNotifications"]] == ["warning", "error"]
    assert run["invocations"][0]["exitCode"] == 2


def test_findings_of_run_are_annotations(report: Callable) -> None:
    lines = report("run", "--format", "github", write("r/expected", EXPECTED)).splitlines()
    assert lines[0].startswith("::notice file=r/expected.litmus,line=")
    assert "title=RACE" in lines[0]
    assert lines[-1].startswith("::notice title=mcheck::1 of 1 tests ok")


def test_a_path_outside_the_folder(report: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    write("a b", RACE)
    monkeypatch.chdir(inner)
    for path, uri in (("../a b.litmus", f"file://{tmp_path}/a%20b.litmus"), (str(tmp_path / "a b.litmus"), None)):
        (run,) = sarif_of(report("check", "--format", "sarif", path))["runs"]
        assert run["artifacts"][0]["location"]["uri"] == (uri or f"file://{tmp_path}/a%20b.litmus")
    monkeypatch.chdir(tmp_path)
    (run,) = sarif_of(report("check", "--format", "sarif", str(tmp_path / "a b.litmus")))["runs"]
    assert run["artifacts"][0]["location"] == {"uri": "a%20b.litmus", "uriBaseId": "%SRCROOT%"}


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("suite", ["barriers", "tensor"])
@pytest.mark.parametrize("command", ["run", "check"])
def test_the_suites(report: Callable, command: str, suite: str) -> None:
    paths = (str(LITMUS / suite), str(MALFORMED))
    if command == "run":
        junit_of(report("run", "--format", "junit", *paths))
    else:
        sarif_of(report("check", "--format", "sarif", *paths, "--timeout", "2"))


def test_a_fix_that_inserts_instructions_is_an_edit(report: Callable) -> None:
    """In SARIF, and in JSON by the statement that it stands at; applied, the program is clean."""
    path = write("t", RACE)
    (run,) = sarif_of(report("check", "--format", "sarif", path))["runs"]
    (fix,) = run["results"][0]["fixes"]
    (inserted,) = fix["artifactChanges"][0]["replacements"]
    lines, region = RACE.split("\n"), inserted["deletedRegion"]
    line, at = lines[region["startLine"] - 1], region["startColumn"] - 1
    lines[region["startLine"] - 1] = line[:at] + inserted["insertedContent"]["text"] + line[at:]
    (found,) = json.loads(report("check", "--format", "json", path))["results"][0]["findings"]
    assert found["edits"] == [{"insert": "fence.proxy.async.shared::cta;", "line": 5, "column": 3, "after": False}]
    mended = json.loads(report("check", "--format", "json", write("t", "\n".join(lines))))
    assert mended["results"][0]["verdict"] == "proved"


def test_fingerprints_outlive_other_edits(report: Callable) -> None:
    def prints(text: str) -> list[str]:
        (run,) = sarif_of(report("check", "--format", "sarif", write("t", text)))["runs"]
        return [next(iter(r["partialFingerprints"].values())) for r in run["results"]]

    assert prints(RACE) == prints("// another line\n" + RACE.replace("  st.shared", "\t  st.shared"))
    assert prints(RACE) != prints(RACE.replace("[buf], 7", "[buf], 8"))


def _finding(text: str, path: str) -> Finding:
    access = Access(thread=text, instruction=text, span=Span(path, 1, 1, 3), object=text, bytes=(0, 4))
    return Finding(
        code="RACE001", kind="race", severity="error", said=(text,), accesses=(access,), section="8.7",
        fixes=(advise("{}", text),),
        trace=(Step(thread=text, instruction=text, kind=StepKind.READ, span=Span(path, 1, 1, 3), number=1),),
    )  # fmt: skip


@pytest.mark.parametrize("text", [CONTROLS, "", " ", "]]>", "{0} {", "x" * 100_000])
def test_odd_characters_in_what_is_said(text: str) -> None:
    problem = InputError(text, Span("a.litmus", 1, 1))
    checked_result = partial(Result, about=Completeness.FINDINGS, model="m")
    found = [
        checked_result(
            path="a.litmus", name=text, verdict="finding", findings=(_finding(text, "a.litmus"),), source=text
        ),
        checked_result(
            path="b.litmus", name=text, verdict="finding", suppressed=((_finding(text, "b.litmus"), text),), source=text
        ),
        checked_result(
            path="a.litmus",
            name=text,
            verdict="error",
            reasons=(Reason(Cause.INPUT, text),),
            problem=problem,
            warnings=((text, None),),
        ),
        checked_result(path=text or ".", name=text, verdict="unknown", reasons=(Reason(Cause.INPUT, text),)),
    ]
    if "\0" not in text:
        sarif_of(sarif.document(found))
    junit_of(checked.junit(found))
    outcome = Outcome(state=((text, "unknown"),))
    results = [
        Result(path="a", name=text, condition=text, verdict="pass", expected="fail", model="m", outcomes=(outcome,)),
        Result(
            path=text, name=text, verdict="error", model=text, reasons=(Reason(Cause.INPUT, text),), problem=problem
        ),
        Result(path=text, name=text, verdict="unknown", model=text, reasons=(Reason(Cause.INPUT, text),)),
    ]
    junit_of(junit.document(results))
