"""The catalogue: every code documented, every example a program, no code twice."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mcheck
from mcheck.base.errors import InputError
from mcheck.base.phrase import Case
from mcheck.findings import catalogue
from mcheck.findings.entry import Entry
from mcheck.findings.finding import KINDS, SEVERITIES
from mcheck.findings.fix_words import text_of
from mcheck.frontend.litmus import parse
from mcheck.frontend.ptx.reader import parse_module

CODES = (
    [f"RACE{n:03}" for n in range(1, 15)]
    + [f"UB{n}" for n in range(101, 112)]
    + [f"UB{n}" for n in range(201, 218) if n not in (209, 213)]
    + [f"UB{n}" for n in range(301, 308) if n != 303]
    + [f"UB{n}" for n in range(401, 406)]
    + [f"UB{n}" for n in (*range(501, 505), *range(601, 607), *range(701, 704))]
    + [f"DEAD{n:03}" for n in range(1, 9)]
)
NOT_ERRORS = {
    "RACE005": "review",
    "RACE007": "review",
    "RACE008": "review",
    "RACE011": "review",
    "RACE014": "review",
    "UB212": "review",
    "UB501": "review",
    "UB504": "review",
    "UB606": "review",
    "UB702": "review",
}
ENTRIES = pytest.mark.parametrize("entry", catalogue.all(), ids=lambda e: e.code)


def test_the_codes_are_these() -> None:
    assert [entry.code for entry in catalogue.all()] == CODES


def test_names_differ() -> None:
    entries = catalogue.all()
    assert len({e.name for e in entries}) == len(entries)


@ENTRIES
def test_documented(entry: Entry) -> None:
    assert re.fullmatch(r"(RACE|UB|DEAD)\d{3}", entry.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", entry.name)
    assert entry.kind in KINDS
    assert {"RACE": "race", "UB": "undefined", "DEAD": "deadlock"}[entry.code.rstrip("0123456789")] == entry.kind
    assert len(entry.explanation) > 80
    assert max(map(len, entry.explanation.splitlines())) <= 400
    assert entry.remedy.endswith(".")
    assert entry.section


@ENTRIES
def test_severities(entry: Entry) -> None:
    assert entry.level in SEVERITIES
    assert entry.level == NOT_ERRORS.get(entry.code, "error")
    by_profile = [catalogue.severity(entry.code, profile) for profile in catalogue.PROFILES]
    grave = [SEVERITIES.index(s) for s in by_profile]
    assert grave == sorted(grave), "strict is never milder than ptx, ptx never milder than permissive"


@pytest.mark.parametrize(
    ("code", "severities"),
    [
        ("RACE006", ["error", "error", "review"]),
        ("RACE007", ["error", "review", "advice"]),
        ("RACE008", ["error", "review", "advice"]),
        ("UB212", ["error", "review", "advice"]),
        ("RACE001", ["error", "error", "error"]),
    ],
)
def test_severity_of(code: str, severities: list[str]) -> None:
    assert [catalogue.severity(code, profile) for profile in ("strict", "ptx", "permissive")] == severities


def test_cases_that_messages_name_have_their_fixes() -> None:
    root = Path(mcheck.__file__).parent
    named = {name for path in root.rglob("*.py") for name in re.findall(r'\bCase\("([^"]*)"\)', path.read_text())}
    assert named == {case for entry in catalogue.all() for case in entry.remedies}


def test_the_fix_of_a_case() -> None:
    entry = catalogue.get("UB204")
    for case, text in entry.remedies.items():
        assert text_of((entry.fix_for(("the mbarrier object is elsewhere", Case(case))),)) == text
    assert text_of((entry.fix_for(("the mbarrier object is not there", Case("no such rank"))),)) == entry.remedy


def test_lookup() -> None:
    assert catalogue.get("race001") is catalogue.get("RACE001")
    with pytest.raises(InputError) as caught:
        catalogue.get("RACE01")
    assert "RACE0" in (caught.value.hint or "")
    with pytest.raises(InputError):
        catalogue.severity("RACE001", "lax")


@ENTRIES
def test_examples_differ_and_expect(entry: Entry) -> None:
    assert entry.bad != entry.good
    if entry.is_module_only:
        assert entry.good.startswith(".version ")
        return
    assert entry.bad.startswith("PTX ")
    assert entry.good.startswith("PTX ")
    assert f"expect {'clean' if entry.level == 'advice' else entry.kind}\n" in entry.bad
    assert "expect clean\n" in entry.good


@ENTRIES
@pytest.mark.parametrize("which", ["bad", "good"])
def test_examples_parse(entry: Entry, which: str) -> None:
    if entry.is_module_only:
        assert set(parse_module(getattr(entry, which)).functions) == {"k"}
        return
    program = parse(getattr(entry, which), f"{entry.code}-{which}.litmus")
    assert program.threads
    assert not program.warnings
