"""Repairs of programs with findings: each is checked, and as cheap as the fixed twin of the bug."""

import tomllib
from pathlib import Path

import pytest

from benchmarks.fences import KERNELS, bugs, code_lines, twin_of
from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.fences.costs import Costs, cost_of_text, read_costs
from mcheck.checking.fences.examination import Examined, Limits, examine_text
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.checking.run.result import Result

DATA = tomllib.loads((Path(__file__).parent / "fence_repairs.toml").read_text(encoding="utf-8"))
QUICK = (
    "A05-same-thread-without-proxy-fence",
    "D04-init-fenced-by-another-thread",
    "E11-wait-for-the-phase-before",
    "F08-expected-and-copied-bytes-differ",
    "K04-result-read-after-read-wait",
    "M07-cta-scope-across-ctas",
)


def check(text: str) -> Result:
    return check_case(Case("t.litmus", text=text), Settings(timeout=20), Options())


def repair(name: str, trials: int = 400) -> Examined:
    path = KERNELS / f"{name}.litmus"
    limits = Limits(timeout=90, processor_time=True, trials=trials)
    return examine_text(str(path), path.read_text(encoding="utf-8"), read_costs(), limits)


def compare(name: str) -> None:
    """The repairs of a bug are proved; one is its twin, or argued in the data; one costs no more than the twin."""
    found = repair(name)
    if name in DATA["unmended"]:
        pytest.skip(DATA["unmended"][name])
    assert found.repairs is not None
    assert found.repairs.found, found.reason
    twin, costs = twin_of(KERNELS / f"{name}.litmus").read_text(encoding="utf-8"), read_costs()
    for each in found.repairs.found:
        assert check(each.text).verdict == Verdict.PROVED
    assert found.fixed is not None
    assert "expect clean" in found.fixed
    if name not in DATA["dearer"]:
        assert min(cost_of_text(each.text, costs) for each in found.repairs.found) <= cost_of_text(twin, costs)
    same = any(code_lines(each.text) == code_lines(twin) for each in found.repairs.found)
    assert same or name in DATA["other"] or name in DATA["dearer"]


@pytest.mark.daily
@pytest.mark.parametrize("name", QUICK)
def test_a_bug_is_mended_as_its_twin_is(name: str) -> None:
    compare(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [bug.stem for bug in bugs() if bug.stem not in QUICK])
def test_each_bug_of_the_kernels_is_mended(name: str) -> None:
    compare(name)


def test_the_data_speak_of_bugs_that_are_there() -> None:
    named = {name for table in DATA.values() for name in table}
    assert named <= {bug.stem for bug in bugs()}


def test_the_trials_end_where_they_are_limited() -> None:
    found = repair("K04-result-read-after-read-wait", trials=2)
    assert found.repairs is not None
    assert found.repairs.found == ()
    assert found.repairs.trials <= 2
    assert found.reason is not None
    assert "--trials 2" in found.reason


CONDITION = """\
PTX c
{ .global .align 16 .u32 g[4]; .shared .align 16 .u32 s[4]; }
P@cta 0 {
  st.shared.u32 [s], 1;
  cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ld.global.u32 r0, [g];
}
forall (P:r0 == %d)
expect %s
"""


@pytest.mark.daily(days=4, least=0)
def test_a_repair_gives_the_expected_verdict_of_a_condition() -> None:
    limits = Limits(timeout=60, processor_time=True, trials=100)
    right = examine_text("c.litmus", CONDITION % (1, "pass"), read_costs(), limits)
    assert right.repairs is not None
    assert right.repairs.found
    wrong = examine_text("c.litmus", CONDITION % (7, "pass"), read_costs(), limits)
    assert wrong.repairs is not None
    assert wrong.repairs.found == ()


def test_no_time_means_no_repair_and_says_so() -> None:
    path = KERNELS / "A05-same-thread-without-proxy-fence.litmus"
    found = examine_text(str(path), path.read_text(encoding="utf-8"), None, Limits(timeout=0.001))
    assert found.repairs is None or found.repairs.limit is not None
    assert found.reason


def test_a_store_is_never_moved_behind_the_copy_that_reads_it() -> None:
    found = repair("A05-same-thread-without-proxy-fence")
    assert found.repairs is not None
    assert all(each.text.index("st.shared") < each.text.index("cp.async.bulk") for each in found.repairs.found)


def test_other_costs_choose_another_repair() -> None:
    known = read_costs()
    fence = "fence.proxy.async"
    spaces = ("shared::cta", "shared::cluster", "global")
    dear = {**known.cycles, **{f"{fence}.{space}": 10 * known.cycles[fence] for space in spaces}}
    path = KERNELS / "A05-same-thread-without-proxy-fence.litmus"
    found = examine_text(
        str(path), path.read_text(encoding="utf-8"), Costs(dear, known.wider, known.edit), Limits(timeout=60)
    )
    assert found.repairs is not None
    assert "fence.proxy.async;" in found.repairs.found[0].text


@pytest.mark.daily(days=4)
@pytest.mark.parametrize(
    "name",
    ["H03-release-before-store-has-read", "O06-descriptor-stored-in-bulk-without-wait", "Q01-last-cta-gate-relaxed"],
)
def test_the_parts_of_a_hand_over_change_together(name: str) -> None:
    compare(name)
