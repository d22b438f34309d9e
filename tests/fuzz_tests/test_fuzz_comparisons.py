"""The long comparisons in short: random programs, metamorphic pairs, edited models, and their record."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from benchmarks.mutants import TABLE, mutants
from benchmarks.mutations import NAME, unfit
from mcheck.base.errors import InputError
from mcheck.cat import full_text, load_model, parse_model
from mcheck.frontend.litmus import parse
from tests.cat.pretty import show_model
from tests.fuzz import comparisons, differential, edited_models
from tests.fuzz.comparisons import Plan, compare_pair, compare_program
from tests.fuzz.differential import EngineAnswer, contradictions, run_engines
from tests.fuzz.draft import Draft
from tests.fuzz.edited_models import compare_edit, suites
from tests.fuzz.edits import EDITS, edited
from tests.fuzz.metamorphic import RELATIONS, Pair, violations
from tests.fuzz.programs import FAMILIES, draft, legal
from tests.fuzz.record import Record, resume, run_items, table

ROOT = Path(__file__).parents[2]
PLAN = Plan(seed="test", families=(), engines=("explicit", "z3"), timeout=20.0, thorough=True)


def answered(**what: object) -> EngineAnswer:
    known = {"verdict": "pass", "undefined": False, "kinds": frozenset(), "codes": frozenset(), "states": frozenset()}
    return EngineAnswer(**(known | what))  # type: ignore[arg-type]


def codes(*names: str) -> dict[str, frozenset[str]]:
    return {"codes": frozenset(names), "kinds": frozenset("race" if n[0] == "R" else "undefined" for n in names)}


STATE, OTHER = (("P:r0", 1),), (("P:r0", 2),)


@pytest.mark.parametrize(
    ("one", "two", "what"),
    [
        ({}, {}, []),
        ({}, {"verdict": "fail"}, ["verdict"]),
        ({}, {"verdict": "unknown", "codes": None, "kinds": None, "states": None, "undefined": None}, []),
        (codes("RACE001"), {}, ["kinds"]),
        (codes("RACE001"), codes("RACE010"), ["codes"]),
        (codes("RACE001"), codes("UB201"), ["kinds"]),
        ({"states": frozenset({STATE})}, {"states": frozenset({STATE, OTHER})}, ["states"]),
        ({"states": frozenset({STATE})}, {"states": None}, []),
        ({"undefined": True}, {}, ["undefined"]),
        ({"verdict": "crash"}, {}, ["crash"]),
    ],
)
def test_contradictions(one: dict, two: dict, what: list[str]) -> None:
    found = contradictions({"explicit": answered(**one), "z3": answered(**two)})
    assert [d.what for d in found] == what


@pytest.mark.daily
@pytest.mark.parametrize("family", FAMILIES)
def test_random_programs_of_every_family(family: str, all_tests: bool) -> None:
    record, number, limit = Record({}), 12 if all_tests else 4, PLAN.timeout if all_tests else 1.0
    plan = replace(PLAN, families=(family,), timeout=limit)
    run_items(record, number, lambda k, r: compare_program(plan, k, r), None)
    assert record.different == []
    assert record.counts["answers"]["by all"] >= (number / 2 if all_tests else 1)


def test_a_difference_is_made_small_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that is blind for races."""
    real = differential.run_engine

    def blind(engine: str, *rest: object) -> EngineAnswer:
        told = real(engine, *rest)  # type: ignore[arg-type]
        return replace(told, codes=frozenset(), kinds=frozenset()) if engine == "z3" and told.codes else told

    monkeypatch.setattr(differential, "run_engine", blind)
    monkeypatch.setattr(comparisons, "run_engine", blind)
    record = Record({})
    plan = replace(PLAN, families=("plain",), save=tmp_path, patience=5.0, thorough=False)
    numbers = iter(range(50))
    while not record.different:
        compare_program(plan, next(numbers), record)
    name = record.different[0][0]
    small = (tmp_path / f"{name}-small.litmus").read_text(encoding="utf-8")
    assert len(small.splitlines()) <= len((tmp_path / f"{name}.litmus").read_text(encoding="utf-8").splitlines())
    assert contradictions(run_engines(parse(small, "small.litmus"), PLAN.engines))


@pytest.mark.daily(least=0)
def test_metamorphic_pairs() -> None:
    record = Record({})
    run_items(record, 60, lambda k, r: compare_pair(replace(PLAN, engines=("explicit",)), k, r), None)
    assert record.different == []
    assert set(record.counts["pairs"]) == set(RELATIONS)


@pytest.mark.daily
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_relation_gives_other_programs(relation: str) -> None:
    made = [RELATIONS[relation](Random(k), draft(Random(f"pairs:{k}"))) for k in range(40)]
    pairs = [p for p in made if p is not None and legal(p.first) and legal(p.second)]
    assert len(pairs) > 10
    assert all(p.first != p.second for p in pairs)


EMPTY = Draft("empty", "", (), ())


@pytest.mark.parametrize(
    ("fewer", "first", "second", "wrong"),
    [
        (False, codes("RACE001"), codes("RACE010"), True),
        (True, codes("RACE001"), codes("RACE010"), False),
        (True, codes("RACE001"), {}, False),
        (True, {}, codes("UB201"), True),
        (True, {"states": frozenset({STATE, OTHER})}, {"states": frozenset({STATE})}, False),
        (True, {"states": frozenset({STATE})}, {"states": frozenset({STATE, OTHER})}, True),
        (False, {"verdict": "pass"}, {"verdict": "fail"}, True),
        (False, {"verdict": "pass"}, {"verdict": "unknown"}, False),
    ],
)
def test_violations(fewer: bool, first: dict, second: dict, wrong: bool) -> None:
    assert bool(violations(Pair(EMPTY, EMPTY, fewer=fewer), answered(**first), answered(**second))) == wrong


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("first", range(len(edited_models.BASES)), ids=edited_models.BASES)
def test_edited_models_are_followed_by_z3(first: int, all_tests: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not all_tests:
        monkeypatch.setattr(edited_models, "TRIED", 40)
    record = Record({})
    tests = suites(ROOT / "litmus" / "bulk")
    run_items(record, 4, lambda k, r: compare_edit(PLAN, first + len(edited_models.BASES) * k, r, tests), None)
    assert record.different == []
    assert record.counts["z3, findings"]["agreed"] > 10
    assert record.counts["z3, states"]["agreed"] > 10
    assert record.counts["tests"]["changed by the edit"] > 0


@pytest.mark.daily(least=0)
def test_every_edit_is_a_model_and_most_are_others() -> None:
    base = load_model("ptx-9.0")
    changed = 0
    for k in range(40):
        what, model = edited(Random(k), base)
        again = parse_model(show_model(model), "again.cat")  # may be simpler still: what was recursive need not be
        assert show_model(parse_model(show_model(again), "again.cat")) == show_model(again), what
        changed += model.statements != base.statements
    assert changed > 30
    for edit in EDITS:
        assert any(edit(Random(k), base) is not None for k in range(20))


def test_a_record_is_taken_up_again(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    seen: list[int] = []

    def step(number: int, record: Record) -> None:
        seen.append(number)
        record.count("seen", "odd" if number % 2 else "even")
        if number == 3:
            record.differs("3", ["why"])

    first = resume({"what": "this"}, path)
    run_items(first, 4, step, path)
    again = resume({"what": "this"}, path)
    run_items(again, 7, step, path)
    assert seen == list(range(7))
    assert resume({"what": "this"}, path) == again
    assert again.counts["seen"] == {"even": 4, "odd": 3}
    assert again.different == [("3", ["why"])]
    assert again.text().startswith("7 (what this), 1 with differences")
    again.seconds = 12.4
    assert table([again]).splitlines() == [
        "compared  items  answered by all  with differences  seconds",
        "this          7                -                 1       12",
    ]
    with pytest.raises(InputError, match="another comparison"):
        resume({"what": "that"}, path)


@pytest.mark.daily(one_of="processes")
def test_the_command(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    command = [sys.executable, "-m", "benchmarks.agreement", "--engines", "explicit,z3", "--state", str(state)]

    def run(*more: str) -> str:
        done = subprocess.run([*command, *more], capture_output=True, text=True, check=True, cwd=ROOT)
        return done.stdout

    assert "3 (compared random programs, seed 1, engines explicit,z3), 0 with differences" in run("--programs", "3")
    assert "5 (compared random programs" in run("--programs", "5")


@pytest.mark.parametrize(("rows", "least"), [(TABLE, 5), (TABLE.with_name("engine-mutants.toml"), 20)])
def test_every_mutant_fits_the_code(rows: Path, least: int) -> None:
    assert len(mutants(rows)) >= least


def test_every_mutation_fits_the_model() -> None:
    assert unfit(full_text(NAME)) == []


BUGS = """
[net]
tests = ["tests/fuzz_tests/test_fuzz_draft.py::test_statements_and_blocks", "tests/docs/test_docs_coverage.py"]
engines = "explicit,z3"
programs = 0

[[mutant]]
name = "blocks have no end"
file = "tests/fuzz/draft.py"
old = "found.append((start, k + 1))"
new = "pass"

[[mutant]]
name = "another word"
file = "tests/fuzz/draft.py"
old = "Drafts: litmus tests"
new = "Drafts: tests"
"""


@pytest.mark.daily(one_of="processes")
def test_mutants_are_planted_and_noticed(tmp_path: Path) -> None:
    """The first by a test, side by side with the second, which is none; what fails in any copy notices neither."""
    (tmp_path / "bugs.toml").write_text(BUGS, encoding="utf-8")
    kept = tmp_path / "noticed.json"
    command = ["benchmarks.mutants", "--table", str(tmp_path / "bugs.toml"), "-j", "2", "--json", str(kept)]
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1, done.stderr
    without, first, second, count = done.stdout.splitlines()
    assert without.startswith("without a mutant: tests/docs/")
    noticed = "tests/fuzz_tests/test_fuzz_draft.py::test_statements_and_blocks"
    assert first.endswith(f"blocks have no end (tests/fuzz/draft.py): {noticed}")
    assert second.endswith("another word (tests/fuzz/draft.py): NOT NOTICED")
    assert count == "2 mutants, 1 not noticed"
    rows = json.loads(kept.read_text(encoding="utf-8"))["mutants"]
    assert [(row["name"], row["noticed"]) for row in rows] == [("blocks have no end", [noticed]), ("another word", [])]
