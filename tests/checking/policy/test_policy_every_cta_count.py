"""A constant that is any number of CTAs: a few sizes are checked, and the smallest with an error is told."""

from __future__ import annotations

import pytest

from mcheck.answers.result import Answer
from mcheck.base.errors import InputError
from mcheck.base.reasons import format_reasons
from mcheck.cat import load_model
from mcheck.checking.policy import every_cta_count
from mcheck.checking.policy.ask import ask
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.litmus import parse

LAST_BLOCK = """PTX last-block
const G = any;
{{ .global .u32 part[64], count = 0; }}
block@cta 0..G {{
  st.global.u32 [part + 4*%ctaid.x], 1;
  atom.{order}.gpu.global.add.u32 r0, [count], 1;
  if (r0 == %nctaid.x - 1) {{ for k in 0..G {{ ld.global.u32 r1, [part + 4*k]; }} }}
}}
"""
BESIDE = """PTX beside
const G = any;
{ .global .u32 x; }
one@cta 0 { for k in 0..G { st.global.u32 [x], 1; } }
others@cta 1..G+1 { st.global.u32 [x], 2; }
"""


def about(text: str) -> Answer:
    program = parse(text, "any.litmus", every=True)
    return ask(program, load_model("ptx-9.0"), Question(about=Completeness.FINDINGS))


@pytest.mark.daily(days=3, least=0)
def test_sizes_without_an_error_are_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(every_cta_count, "MOST", 3)
    monkeypatch.setattr(every_cta_count, "PATIENCE", 60.0)
    found = about(LAST_BLOCK.format(order="acq_rel"))
    assert (found.verdict, found.covered, found.findings) == ("bounded", False, ())
    assert format_reasons(found.reasons) == (
        "explored up to G = 3: that more threads do what these do is not proved"
        " (any.litmus:5:3: an access of part may leave it with G = 65)"
    )


@pytest.mark.daily(days=4, least=0)
def test_the_smallest_size_with_an_error_is_told() -> None:
    found = about(LAST_BLOCK.format(order="relaxed"))
    assert found.verdict == "finding"
    assert {f.code for f in found.findings} == {"RACE001"}
    assert "found with G = 2, the smallest such value" in (format_reasons(found.reasons) or "")


def test_a_role_whose_place_names_the_number_is_there() -> None:
    found = about(BESIDE)
    assert (found.verdict, {f.code for f in found.findings}) == ("finding", {"RACE001"})


@pytest.mark.daily(least=0)
def test_a_size_that_takes_long_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(every_cta_count, "PATIENCE", -1.0)
    found = about(LAST_BLOCK.format(order="acq_rel"))
    assert "explored up to G = 4:" in (format_reasons(found.reasons) or "")
    monkeypatch.setattr(every_cta_count, "SMALL_PATIENCE", -1.0)
    found = about(LAST_BLOCK.format(order="acq_rel"))
    assert "explored up to G = 1:" in (format_reasons(found.reasons) or "")


def test_a_number_of_rounds_is_no_number_of_threads() -> None:
    rounds = "PTX t\nconst N = any;\n{ .global .u32 x; }\nP@cta 0 { for k in 0..N { ld.global.u32 r0, [x]; } }\n"
    assert not every_cta_count.counts_threads(parse(rounds, "t.litmus", every=True))
    assert every_cta_count.counts_threads(parse(BESIDE, "t.litmus", every=True))
    assert about(rounds).verdict == "proved"


def test_the_smallest_size_is_the_first_at_which_every_role_has_threads() -> None:
    found = about(BESIDE.replace("1..G+1", "1..G"))
    assert "found with G = 2, the smallest such value" in (format_reasons(found.reasons) or "")


LEAST = {"1..G": 2, "2..G": 3, "4..G + 1": 4, "0..G": 1, "0..G + 1": 0}
"""Ranges of CTAs, and the smallest number with which they have one."""


@pytest.mark.parametrize("place", LEAST)
def test_any_range_of_ctas_has_a_smallest_number(place: str) -> None:
    text = "PTX t\nconst G = any;\n{{ .global .u32 x[G + 1]; }}\nblock@cta {} {{ st.global.u32 [x], 1; }}\n"
    found = about(text.format(place))
    assert f"found with G = {LEAST[place] + 1}, the smallest such value" in (format_reasons(found.reasons) or "")


def test_each_size_is_bound_once() -> None:
    program = parse(BESIDE, "t.litmus", every=True)
    assert program.instance is not None
    assert program.instance(3) is program.instance(3)


def test_a_range_that_is_empty_with_every_number_is_an_error() -> None:
    with pytest.raises(InputError, match=r"the range 1\.\.1 is empty"):
        parse("PTX t\n{ .global .u32 x; }\nblock@cta any..1 { st.global.u32 [x], 1; }\n", "t.litmus", every=True)
