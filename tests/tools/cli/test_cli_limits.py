"""What would help where a limit cut an answer, and the pages that codes link to."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcheck.answers.result import Covers
from mcheck.base.reasons import Cause, Reason, timeout_reason
from mcheck.checking.run.result import Result
from mcheck.findings import catalogue
from mcheck.report.longer_limits import suggest_limits

LATE = (timeout_reason(3),)
LOOP = "P@cta 0 {\n  for k in 0..9 { bar.sync 0; }\n}\n"
ROOT = Path(__file__).parents[3]
SUITE = ROOT / "litmus" / "bulk"
QUEUE = ROOT / "tests" / "simt" / "corpus" / "cuda" / "queue.ptx"


def result(path: str, **fields: Any) -> Result:
    return Result(path=path, name="x", verdict="unknown", model="ptx-9.0", **fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, ""),
        ({"reasons": (Reason(Cause.UNSUPPORTED, "x"),)}, ""),
        ({"reasons": LATE}, "a longer --timeout or fewer threads"),
        ({"reasons": LATE, "source": LOOP}, "a longer --timeout or fewer rounds (or `any` for their number)"),
        ({"reasons": LATE, "source": "const N = any;\n" + LOOP}, "a longer --timeout or a constant number"),
        ({"reasons": (Reason(Cause.NUMBERS, because=(Reason(Cause.MEMORY),)),)}, "more --memory or fewer threads"),
    ],
)  # fmt: skip
def test_what_would_help_fits_the_program(fields: dict[str, Any], said: str) -> None:
    found = suggest_limits(result("x.litmus", **fields))
    assert found.startswith(f"may help: {said}" if said else said)
    assert bool(found) == bool(said)


def test_a_module_of_many_clusters_may_have_fewer() -> None:
    found = suggest_limits(result("x.ptx", reasons=(timeout_reason(3),), covers=Covers(clusters=1, total=4)))
    assert "a smaller grid" in found


@pytest.mark.daily(days=3, least=0)
def test_a_check_that_runs_out_of_time_says_how_far_it_came(mcheck: Callable) -> None:
    done = mcheck("check", QUEUE, "--cpu-timeout", 0.7)
    assert done.status == 3
    assert "no answer within 0.7 s" in done.out
    assert re.search(r"\b[1-9]\d* executions? (explored|by)", done.out)
    assert "may help: a longer --timeout" in done.out


@pytest.mark.parametrize("site", ["", "https://docs.example.org/mcheck"])
def test_a_rule_links_to_the_page_of_its_code(site: str, mcheck: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCHECK_SITE_URL", site)
    done = mcheck("check", "--format", "sarif", SUITE / "bulk-destination-written-before-without-fence.litmus")
    (rule,) = json.loads(done.out)["runs"][0]["tool"]["driver"]["rules"]
    page = f"{site}/findings/#race004-{catalogue.get('RACE004').name}" if site else "https://docs.nvidia.com/"
    assert rule["helpUri"].startswith(page)


@pytest.mark.daily(days=3, least=0)
def test_counts_of_several_files_name_the_codes(mcheck: Callable, litmus: Callable) -> None:
    done = mcheck("check", litmus("one"), litmus("two"))
    assert done.out.splitlines()[-1].endswith("2 with findings (2 bugs, 2 findings: RACE001), 0 unknown, 0 errors")
