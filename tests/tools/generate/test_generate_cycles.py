"""Cycles: each once, laid out as litmus tests with the names and verdicts that the classic shapes have."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.cat import load_model
from mcheck.tools.generate import names
from mcheck.tools.generate.alphabet import load
from mcheck.tools.generate.cycles import cycles
from mcheck.tools.generate.judge import Generated, generate, judge

LITMUS = Path(__file__).parents[3] / "litmus"

KNOWN = {
    "MP+rlxs": "MP+rlx+rlx",
    "MP+fence.acq_rels": "MP+fence.acq_rels",
    "SB+rlxs": "SB+rlx+rlx",
    "SB+fence.scs": "SB+fence.scs.ptx-9.3",
    "SB+fence.acq_rels": "SB+fence.acq_rels",
    "LB+rlxs": "LB+rlx+rlx",
    "LB+fence.acq_rels": "LB+fence.acq_rels",
    "S+rlxs": "S+rlx",
    "R+rlxs": "R+rlx",
    "R+fence.acq_rels": "R+fence.acq_rels",
    "R+fence.scs": "R+fence.scs",
    "2+2W+rlxs": "2+2W+rlx",
    "2+2W+fence.acq_rels": "2+2W+fence.acq_rels",
    "2+2W+fence.scs": "2+2W+fence.scs",
}
"""Names of generated tests, and of the tests of the suites that are the same."""


def generated(alphabet: str, size: int) -> dict[str, Generated]:
    return {test.name: test for test in generate(load(alphabet), size)}


@pytest.mark.parametrize(("alphabet", "size"), [("families", 4), ("async", 3), ("cluster", 2), ("tensor", 2)])
def test_each_cycle_is_there_once(alphabet: str, size: int) -> None:
    found = list(cycles(load(alphabet), size))
    assert len({_least(c) for c in found}) == len(found)


def _least(cycle: tuple[object, ...]) -> tuple[str, ...]:
    written = [str(arc) for arc in cycle]
    return min(tuple(written[n:] + written[:n]) for n in range(len(written)))


@pytest.mark.daily(days=8, least=0)
@pytest.mark.parametrize("alphabet", ["async", "classic", "cluster", "families", "reduce", "scopes", "tensor"])
def test_names_are_unique(alphabet: str) -> None:
    found = [test.name for test in generate(load(alphabet), load(alphabet).sizes[0])]
    assert len(set(found)) == len(found)


def test_all_families_of_four_edges_are_found() -> None:
    families = {names.name(c).split("+")[0] for c in cycles(load("families"), 4) if "-" not in names.name(c)}
    assert families >= {"MP", "SB", "LB", "S", "R"}
    assert any(names.name(c).startswith("2+2W") for c in cycles(load("families"), 4))


def test_iriw_has_six_edges() -> None:
    assert "IRIW+fence.scs" in generated("families", 6)


def test_one_of_two_lone_writes_is_a_release() -> None:
    """Both rotations are of the family; a lone relaxed access has no token."""
    found = (names.name(c) for c in cycles(load("classic"), 6) if any(arc.source.note == "rel" for arc in c))
    assert next(n for n in found if n.startswith("IRIW")) == "IRIW+rlx+w.rel+rlx"


@pytest.mark.parametrize("name", KNOWN)
def test_classic_verdicts_are_those_of_the_suites(name: str) -> None:
    found = generated("families", 4)[name]
    file = next(LITMUS.rglob(f"{KNOWN[name]}.litmus"))
    assert f"expect {judge(found, load_model('ptx-9.0')).verdict}\n" in file.read_text()


def test_a_forbidden_test_names_the_axiom() -> None:
    found = judge(generated("families", 4)["MP+fence.acq_rels"], load_model("ptx-9.0"))
    assert (found.verdict, found.axiom) == ("fail", "Causality")
    assert '"Forbidden by Causality of ptx-9.0."' in found.text


@pytest.mark.daily(least=0)
@pytest.mark.parametrize(("alphabet", "size", "every"), [("async", 3, 40), ("cluster", 3, 15), ("tensor", 3, 8)])
def test_what_is_written_is_read_and_judged(alphabet: str, size: int, every: int) -> None:
    model = load_model("ptx-9.0")
    for number, test in enumerate(generate(load(alphabet), size)):
        if number % every == 0:
            found = judge(test, model)
            assert found.verdict in ("pass", "fail"), found.reason
            assert found.program().expectation.verdict == found.verdict


def test_a_missing_proxy_fence_is_a_race_and_the_fence_mends_it() -> None:
    found = generated("async", 2)  # a read of a buffer, and then the copy that fills it: can the read see the copy?
    model = load_model("ptx-9.0")
    without = judge(found["RfiwR-IssuesRw.Load"], model)
    mended = judge(found["RfiwR-Proxy.IssuesRw.Load"], model)
    assert without.codes == ("RACE006",)
    assert (mended.verdict, mended.codes) == ("fail", ())
