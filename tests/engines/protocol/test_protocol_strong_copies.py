"""Strong copies before the protocol engine, which follows them as weak ones: what it says, and what it leaves open."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import load, parse

BULK = Path(__file__).parents[3] / "litmus" / "bulk"


def asked(name: str) -> Answer:
    program = load(str(BULK / f"{name}.litmus"))
    return check(program, load_model(program.model or "ptx-9.0"))


@pytest.mark.daily(least=0)
def test_copies_that_the_model_orders_are_proved() -> None:
    for name in (
        "bulk-strong-refill-after-read-wait",
        "bulk-strong-multicast",
        "bulk-strong-store-then-generic-atomic",
    ):
        assert (asked(name).verdict, asked(name).findings) == ("proved", ()), name


def test_copies_in_no_order_are_left_open() -> None:
    given = asked("bulk-strong-two-stores-one-place")
    assert (given.verdict, given.findings) == ("unknown", ())
    assert "in no order (line 11 and line 18)" in str(given.reasons[0])


def test_a_source_that_is_refilled_too_early_is_for_review() -> None:
    given = asked("bulk-strong-refill-without-wait")
    assert [(f.code, f.severity) for f in given.findings] == [("RACE014", "review")]
    assert not given.covered


def test_what_strong_copies_may_order_is_no_finding() -> None:
    """The explicit engine finds no race on the data here: the copies synchronise (8.8)."""
    codes = {f.code for f in asked("bulk-strong-release-acquire").findings}
    assert codes == {"RACE014"}


def test_scopes_that_are_too_narrow_are_a_race() -> None:
    assert "RACE003" in {f.code for f in asked("bulk-strong-two-stores-scope-cta").findings}


def test_a_weak_and_a_strong_copy_do_not_merge() -> None:
    """What many accesses have in common is kept once, but not their strength: a race with the weak one stays."""
    text = (BULK / "bulk-strong-store-against-weak-store.litmus").read_text(encoding="utf-8")
    store = next(line for line in text.splitlines() if ".b128 [out]" in line)
    many = text.replace(
        store, "\n".join([store, "  cp.async.bulk.commit_group;", "  cp.async.bulk.wait_group 0;"] * 20)
    )
    given = check(parse(many, "many.litmus"), load_model("ptx-9.5"))
    assert "RACE003" in {f.code for f in given.findings}
