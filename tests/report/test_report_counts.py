"""The count of an init as the fix of what it leads to."""

from __future__ import annotations

from mcheck.base.phrase import Site
from mcheck.findings.finding import Finding
from mcheck.findings.fix import Change, Fix, Fixes, Property, advise
from mcheck.report.bugs import _with_count


def finding(code: str, *fixes: Fix) -> Finding:
    severity = "review" if code == "UB212" else "error"
    return Finding(code=code, kind="race", severity=severity, said=(code,), accesses=(), section="9.7.13", fixes=fixes)


def test_a_count_that_too_many_arrive_on_mends_the_race_that_it_leads_to() -> None:
    count: Fixes = (Fix((Change(what=Property.COUNT, sites=(Site(25, 7),), new="128", old="4"),)),)
    wait = advise("Wait for phase 1")
    race, many = finding("RACE003", wait), finding("UB212", *count)
    assert _with_count(race, [race, many]).fixes == count
    assert _with_count(race, [race, finding("UB212", wait)]) == race
    assert _with_count(race, [race, finding("DEAD003", *count)]) == race  # not what the arrivals show
    assert _with_count(finding("UB212", wait), [finding("DEAD003", *count)]).fixes == count
