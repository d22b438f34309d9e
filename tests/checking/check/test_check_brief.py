"""A brief check: the verdict of a whole one, by as little work as shows it."""

from mcheck.base.verdicts import Verdict
from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings

RACE = """PTX late
const N = any;
{ .shared .u32 x; }
a@cta 0, warp 0, lane 0 {
  for k in 0..N { if (k >= 2) { st.shared.u32 [x], k; } }
}
b@cta 0, warp 1, lane 0 {
  for k in 0..N { if (k >= 2) { ld.shared.u32 r0, [x]; } }
}
"""


def test_a_brief_check_stops_at_the_first_error_and_seeks_no_further_numbers() -> None:
    whole, brief = (check_case(Case("t", text=RACE), Settings(), Options(brief=each)) for each in (False, True))
    assert whole.verdict == brief.verdict == Verdict.FINDING
    assert {finding.code for finding in brief.findings} <= {finding.code for finding in whole.findings}
    assert brief.executions < whole.executions


def test_a_brief_check_proves_what_a_whole_one_proves() -> None:
    mended = RACE.replace("ld.shared.u32 r0, [x];", "add.u32 r0, r0, 1;")
    whole, brief = (check_case(Case("t", text=mended), Settings(), Options(brief=each)) for each in (False, True))
    assert whole.verdict == brief.verdict == Verdict.PROVED
    assert brief.executions == whole.executions
