"""Every code's two programs, run: ``bad`` has exactly this finding, ``good`` has none of severity error."""

from __future__ import annotations

from typing import Any

import pytest

from mcheck.base.budget import processor_time
from mcheck.cat import load_model
from mcheck.cat.ast import Model
from mcheck.engines.explicit.engine import answer
from mcheck.findings import catalogue
from mcheck.findings.entry import Entry
from mcheck.frontend.litmus import parse
from mcheck.ptx import check

ALONGSIDE = {
    "UB215": {"UB504"},  # nobody can wait for the copy any more
    "UB216": {"DEAD003"},  # the phase that got too many bytes may never complete
    "DEAD005": {"DEAD004"},  # who keeps a cluster barrier waiting waits for something else itself
}
"""What may be found beside a code, because the one defect cannot be had without the other."""

LAUNCHES: dict[str, dict[str, Any]] = {"RACE012": {"launches": [{"grid": 1}, {"grid": 1, "programmatic": True}]}}
"""How the examples of a code are launched, if not once."""


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model("ptx-9.0")


def codes(text: str, name: str, model: Model, *, errors_only: bool = False) -> set[str]:
    found = answer(parse(text, name), model, timeout=20)
    assert found.reason is None or found.findings, found.reason
    return {f.code for f in found.findings if not errors_only or f.severity == "error"}


LITMUS = pytest.mark.parametrize("entry", [e for e in catalogue.all() if not e.is_module_only], ids=lambda e: e.code)
MODULES = pytest.mark.parametrize("entry", [e for e in catalogue.all() if e.is_module_only], ids=lambda e: e.code)


@LITMUS
def test_bad(entry: Entry, model: Model) -> None:
    found = codes(entry.bad, f"{entry.code}-bad.litmus", model)
    assert entry.code in found
    assert found <= {entry.code} | ALONGSIDE.get(entry.code, set())


@LITMUS
def test_good(entry: Entry, model: Model) -> None:
    assert codes(entry.good, f"{entry.code}-good.litmus", model, errors_only=True) == set()


@pytest.mark.daily
@MODULES
def test_modules(entry: Entry) -> None:
    launched = LAUNCHES.get(entry.code, {"grid": entry.grid})
    with processor_time():  # groups of CTAs have a limit of their own
        bad, good = check(entry.bad, launched), check(entry.good, launched)
    assert [f.code for f in bad.findings] == [entry.code]
    assert (good.verdict, good.findings) == ("proved", ())
