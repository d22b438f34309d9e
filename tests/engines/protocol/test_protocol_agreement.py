"""The protocol engine beside the explicit one: the shipped suites, the catalogue, random programs."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from mcheck.base.budget import processor_time
from mcheck.cat import load_model
from mcheck.checking.run.result import kinds_hold
from mcheck.engines.protocol.findings_answer import check
from mcheck.findings import catalogue
from mcheck.findings.entry import Entry
from mcheck.frontend.litmus import load, parse
from tests.engine_findings import engine_findings
from tests.fuzz.themes import themed

LITMUS = Path(__file__).parents[3] / "litmus"

ALONGSIDE = {
    "UB215": {"UB504"},
    "UB216": {"DEAD003"},
}


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("suite", sorted(p.name for p in LITMUS.iterdir() if p.is_dir() and any(p.rglob("*.litmus"))))
def test_the_suites_hold(suite: str, all_tests: bool) -> None:
    wrong, answered, timeout = [], 0, 8 if all_tests else 2
    for path in sorted((LITMUS / suite).rglob("*.litmus")):
        test = load(str(path))
        with processor_time():
            found = check(test, load_model(test.model or "ptx-9.0"), timeout=timeout)
            if not (found.covered or kinds_hold(test.expectation.kinds, found.findings)):  # only soon after an error
                found = check(test, load_model(test.model or "ptx-9.0"), timeout=timeout, thorough=True)
        answered += found.verdict != "unknown"
        if found.verdict != "unknown" and not kinds_hold(test.expectation.kinds, found.findings):
            wrong.append(f"{path.name}: {[f.code for f in found.findings]}")
    assert not wrong
    assert answered or suite == "proxies"  # those are about aliases, which is left to the other engine


@pytest.mark.parametrize("entry", [e for e in catalogue.all() if not e.is_module_only], ids=lambda e: e.code)
def test_the_catalogue(entry: Entry) -> None:
    model = load_model("ptx-9.0")
    bad = check(parse(entry.bad, f"{entry.code}-bad.litmus"), model, timeout=30)
    good = check(parse(entry.good, f"{entry.code}-good.litmus"), model, timeout=30)
    found = {f.code for f in bad.findings}
    assert entry.code in found
    assert found <= {entry.code} | ALONGSIDE.get(entry.code, set())
    assert not [f.code for f in good.findings if f.severity == "error"]


@pytest.mark.daily
@pytest.mark.parametrize("first", range(12))
def test_random_programs(first: int, all_tests: bool) -> None:
    """The engines find the same kinds: races, undefined behaviour and deadlocks, for review or worse.

    They may differ in the code of a race between generic accesses: that a scope was too narrow (RACE010) shows only in
    executions in which the release is observed, and a read whose value decides nothing is followed as one that
    observes none.
    """
    compared, timeout = 0, 4 if all_tests else 1
    for k in range(first, 84, 12):
        test = parse(themed(Random(f"1:{k}")).text(), f"random-{k}")
        model = load_model(test.model or "ptx-9.0")
        with processor_time():
            here, there = (engine_findings(engine, test, model, timeout=timeout) for engine in ("protocol", "explicit"))
        if here.complete and there.complete:
            compared += 1
            assert here.kinds == there.kinds, (k, here.codes, there.codes)
            assert here.causes == there.causes, (k, here.codes, there.codes)
    assert compared > 4
