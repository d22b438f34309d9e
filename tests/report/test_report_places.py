"""Reports for machines name the source line of a compiled module first, and keep to their schemas."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft4Validator
from lxml import etree

from mcheck.base.errors import InputError, Span
from mcheck.base.phrase import Aside, Site, Sites, say
from mcheck.base.reasons import Cause, Reason
from mcheck.checking.policy.question import Completeness
from mcheck.checking.run.result import Result
from mcheck.checking.run.summary import summarize
from mcheck.findings.finding import Access, CompiledLine, Finding
from mcheck.findings.fix import Fix, Insert, Note, Point, advise
from mcheck.report import checked
from mcheck.report.finding import lines as finding_lines
from mcheck.report.formats import gitlab, sarif
from mcheck.report.lines import plain

SCHEMAS = Path(__file__).parent / "schemas"
GITLAB = Draft4Validator(
    {
        "type": "array",
        "items": {
            "type": "object",
            "required": ["description", "check_name", "fingerprint", "severity", "location"],
            "properties": {
                "description": {"type": "string", "minLength": 1},
                "check_name": {"type": "string", "minLength": 1},
                "fingerprint": {"type": "string", "minLength": 1},
                "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
                "location": {
                    "type": "object",
                    "required": ["path", "lines"],
                    "properties": {
                        "path": {"type": "string", "pattern": "^(?!\\./)."},
                        "lines": {
                            "type": "object",
                            "required": ["begin"],
                            "properties": {"begin": {"type": "integer", "minimum": 1}},
                        },
                    },
                },
            },
        },
    }
)
"""What GitLab's documentation of the report asks for."""
PTX = "\n".join(f"line {number} of the module" for number in range(1, 30))


@pytest.fixture
def result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    monkeypatch.chdir(tmp_path)
    Path("ring.cu").write_text("".join(f"line({number});\n" for number in range(1, 10)))
    accesses = tuple(
        Access(
            thread=thread,
            instruction="st.shared.u32 [%r1], %r2",
            span=Span("/cache/ring.ptx", line, 3),
            object="buf",
            bytes=(0, 4),
            access="write",
            source=(Span("ring.cu", source, 5),),
        )
        for thread, line, source in (("warp0[0]", 20, 3), ("warp1[0]", 25, 7))
    )
    found = Finding(code="RACE001", kind="race", severity="error", said=("two writes",), accesses=accesses)
    return Result(
        path="ring.cu", name="ring", about=Completeness.FINDINGS, verdict="finding", model="m", findings=(found,),
        source=PTX,
    )  # fmt: skip


def entries(*results: Result) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(gitlab.document(results))
    errors = list(GITLAB.iter_errors(found))
    assert not errors, errors[0]
    return found


def test_gitlab_has_the_place_that_a_terminal_shows(result: Result) -> None:
    (entry,) = entries(result)
    assert entry["location"] == {"path": "ring.cu", "lines": {"begin": 7}}
    assert (entry["check_name"], entry["severity"]) == ("RACE001", "critical")
    assert entry["description"].startswith("RACE001: ")
    assert "ring.cu:7" in checked.concise([result])


def test_gitlab_leaves_out_what_is_expected_and_keeps_fingerprints_apart(result: Result) -> None:
    twice = Result(
        path="ring.cu", name="ring", about=Completeness.FINDINGS, verdict="finding", model="m",
        findings=result.findings * 2, source=PTX,
    )  # fmt: skip
    prints = [entry["fingerprint"] for entry in entries(twice)]
    assert len(set(prints)) == 2
    assert prints[0] == entries(result)[0]["fingerprint"]
    expected = Result(
        path="ring.cu", name="ring", about=Completeness.FINDINGS, verdict="finding", model="m",
        findings=result.findings, source=PTX, expected_kinds=(("race",),),
    )  # fmt: skip
    assert entries(expected) == []


def test_gitlab_says_what_has_no_answer() -> None:
    error = InputError("it is wrong", Span("a.litmus", 4, 1))
    open_ = Result(
        path="b.litmus", name="b", about=Completeness.FINDINGS, verdict="unknown", model="m",
        reasons=(Reason(Cause.TIME, seconds=3.0),),
    )  # fmt: skip
    broken = Result(
        path="a.litmus", name="a", about=Completeness.FINDINGS, verdict="error", model="m", problem=error,
    )  # fmt: skip
    found = entries(open_, broken)
    assert [(e["check_name"], e["severity"], e["location"]["lines"]["begin"]) for e in found] == [
        ("unknown", "major", 1),
        ("error", "critical", 4),
    ]
    assert "no answer within 3 s" in found[0]["description"]


def test_sarif_has_the_source_first(result: Result) -> None:
    document = json.loads(sarif.document([result]))
    schema = json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text())
    assert not list(Draft4Validator(schema).iter_errors(document))
    (found,) = document["runs"][0]["results"]
    (first,) = found["locations"]
    assert first["physicalLocation"]["artifactLocation"]["uri"] == "ring.cu"
    assert first["physicalLocation"]["region"]["startLine"] == 7
    places = [place["physicalLocation"] for place in found["relatedLocations"]]
    assert [(p["artifactLocation"]["uri"], p["region"]["startLine"]) for p in places] == [
        ("ring.cu", 3), ("ring.cu", 7), ("file:///cache/ring.ptx", 20), ("file:///cache/ring.ptx", 25),
    ]  # fmt: skip


def test_github_annotates_the_source_and_counts_by_code(result: Result) -> None:
    said = checked.github([result], summarize([result]))
    assert said.startswith("::error file=ring.cu,line=7,col=5,title=RACE001 race::")
    assert "1 with findings (RACE001)" in said


def test_github_annotates_a_bug_once_in_the_words_of_a_terminal(result: Result) -> None:
    twice = replace(result, findings=result.findings * 2)
    note, counts = checked.github([twice], summarize([twice])).splitlines()
    text = note.partition("title=RACE001 race::")[2].split("%0A")
    assert text[:2] == [
        "`buf` is written twice, and nothing orders the two", "ring.cu:3: warp0[0] writes buf[bytes 0..4]",
    ]  # fmt: skip
    assert counts.startswith("::notice")


def test_junit_names_code_and_source(result: Result) -> None:
    text = checked.junit([result])
    document = etree.fromstring(text.encode())
    for name in ("junit-10.xsd", "JUnit.xsd"):
        etree.XMLSchema(etree.parse(SCHEMAS / name)).assertValid(document)
    assert document.find(".//failure").get("message") == "RACE001 at ring.cu:7: two writes"


def test_without_its_source_a_module_is_named(result: Result) -> None:
    Path("ring.cu").unlink()
    (entry,) = entries(result)
    assert entry["location"] == {"path": "/cache/ring.ptx", "lines": {"begin": 25}}


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ((4, 4, 4), "line 4 makes lanes wait"),
        ((4, 6, 4), "lines 4 and 6 makes lanes wait"),
        ((4, 5, 6), "lines 4, 5 and 6 makes lanes wait"),
    ],
)
def test_a_fix_names_each_line_of_an_unrolled_loop_once(result: Result, source: tuple[int, ...], said: str) -> None:
    compiled = tuple(
        CompiledLine(line=line, source=(Span("ring.cu", at, 5),)) for line, at in zip((21, 22, 23), source, strict=True)
    )
    lanes = Sites((Site(21), Site(22), Site(23)), " and ")
    fix = advise("Meet: shfl.sync at {} makes lanes wait for each other", lanes)
    (found,) = result.findings
    told = replace(result, findings=(replace(found, fixes=(fix,), lines=compiled),))
    assert f"shfl.sync at {said}" in "\n".join(plain(line) for line in checked.describe(told))


@pytest.mark.parametrize(
    ("chains", "first", "shown"),
    [
        (((3, 7), (4, 8)), "ring.cu:4:5", ("writes buf[bytes 0..4], called at line 7", "called at line 8")),
        (((3, 5, 7), (4,)), "ring.cu:4:5", ("writes buf[bytes 0..4], called at line 7",)),
        (((3, 7), (3, 8)), "ring.cu:8:5", ()),
        (((3, 7), (4, 7)), "ring.cu:4:5", ()),
        (((2, 7), (2, 8)), "ring.cu:8:5", ()),
        (((2, 7), (4, 8)), "ring.cu:4:5", ("called at line 8",)),
    ],
    ids=["two functions", "a function of a function", "one statement", "one call", "one wrapper", "a wrapper"],
)
def test_an_access_in_a_function_is_shown_there_with_its_call(
    result: Result, chains: tuple[tuple[int, ...], ...], first: str, shown: tuple[str, ...]
) -> None:
    """Line 2 is inline assembly, which is shown where it is called."""
    written = [f"line({number});" for number in range(1, 10)]
    written[1] = 'asm volatile("st.shared.u32 [%0], %1;" :: "r"(a), "r"(b));'
    Path("ring.cu").write_text("\n".join(written))
    (found,) = result.findings
    sources = (tuple(Span("ring.cu", line, 5) for line in chain) for chain in chains)
    accesses = tuple(replace(a, source=source) for a, source in zip(found.accesses, sources, strict=True))
    said = "\n".join(plain(line) for line in finding_lines(replace(found, accesses=accesses)))
    assert f"--> {first}\n" in said
    assert said.count("called at") == len(shown)
    assert all(each in said for each in shown)


def test_a_fix_tells_lines_apart_that_one_call_contains(result: Result) -> None:
    """The call of line 8 has both; a third line is of another call. Those of a header keep to their call."""

    def chain(*lines: int, path: str = "ring.cu") -> tuple[Span, ...]:
        return Span(path, lines[0], 5), *(Span("ring.cu", line, 5) for line in lines[1:])

    def told(*chains: tuple[Span, ...]) -> str:
        compiled = tuple(CompiledLine(line=line, source=one) for line, one in zip((21, 22, 23), chains, strict=True))
        points = Point(Site(21), after=False), Point(Site(22), after=True)
        fix = Fix((Insert(codes=("fence.acq_rel.sys",), points=points),), why=say("{} hands on", Site(23)))
        found = replace(result.findings[0], fixes=(fix,), lines=compiled)
        return "\n".join(plain(line) for line in checked.describe(replace(result, findings=(found,))))

    assert "before line 2 and after line 3: line 4 hands on" in told(chain(2, 5, 8), chain(3, 6, 8), chain(4, 9))
    Path("wait.cuh").write_text("first();\nsecond();\n")
    header = (chain(1, 8, path="wait.cuh"), chain(2, 8, path="wait.cuh"))
    assert "before line 8 and after line 8: line 4 hands on" in told(*header, chain(4, 9))


@pytest.mark.parametrize("cta", ["", "cta(0, 1, 0).", "gpu1.cta(0, 1, 0)."])
def test_a_fix_leaves_the_steps_of_an_execution_out(result: Result, cta: str) -> None:
    step = Aside(" (bar.sync 0, step 27)")
    note = Note(say("{}warp1 comes after {}{} of {}warp0[1..31] in time alone: no", cta, Site(3), step, cta))
    told = replace(result, findings=(replace(result.findings[0], fixes=(advise("Release it").noted(note),)),))
    text = "\n".join(plain(line) for line in checked.describe(told))
    assert f"of {cta}warp0[1..31] in time alone" in text
    assert "step 27" not in text


@pytest.mark.parametrize("width", [None, 60])
@pytest.mark.parametrize(
    ("threads", "said"),
    [
        (("warp0[0]", "warp0[0]"), ["warp0[0] writes buf[bytes 0..4], twice"]),
        (("warp0[0]", "warp1[0]"), ["warp0[0] writes buf[bytes 0..4]", "warp1[0] writes buf[bytes 0..4]"]),
    ],
)
def test_two_accesses_at_one_place_are_marked_once(
    result: Result, threads: tuple[str, str], said: list[str], width: int | None
) -> None:
    """As where a thread writes the same bytes in two rounds, or all CTAs the same flag."""
    finding = result.findings[0]
    first = replace(finding.accesses[0], thread=threads[0])
    accesses = (first, replace(first, thread=threads[1], span=Span("/cache/ring.ptx", 25, 3)))
    text = [plain(line) for line in finding_lines(replace(finding, accesses=accesses), PTX, width=width)]
    assert sum("^" in line for line in text) == 1
    labels = [line.replace("^", "").removeprefix("    | ").strip() for line in text if "writes" in line]
    assert labels == said


@pytest.mark.parametrize(("kind", "line"), [("race", 7), ("undefined", 7), ("deadlock", 3)])
def test_every_format_has_the_place_that_the_text_shows(result: Result, kind: str, line: int) -> None:
    found = replace(result, findings=(replace(result.findings[0], kind=kind),))
    text = "\n".join(plain(said) for said in checked.describe(found))
    assert f"--> ring.cu:{line}:5" in text
    assert f"ring.cu:{line}:5: " in checked.concise([found])
    assert f"file=ring.cu,line={line},col=5," in checked.github([found], summarize([found]))
    assert f"at ring.cu:{line}: " in checked.junit([found])
    (entry,) = entries(found)
    assert entry["location"]["lines"]["begin"] == line
    (place,) = json.loads(sarif.document([found]))["runs"][0]["results"][0]["locations"]
    assert place["physicalLocation"]["region"]["startLine"] == line
