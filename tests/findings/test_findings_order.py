"""What a finding follows from stands before it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mcheck.base.errors import Span
from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.findings.finding import Access, Finding
from mcheck.findings.ordering import drop_redundant
from mcheck.report.checked import describe
from mcheck.report.lines import plain

RING = """PTX ring-with-a-wrong-count
"empty counts 64 arrivals, and 128 threads arrive in every round"
{
  .global .align 128 .b8 src[8192];
  .shared .align 128 .b8 buf[2][128];
  .shared .align 8 .b64 full[2], empty[2];
}
const S = 2, N = 8;
producer@cta 0, warp 0, lane 0 {
  for s in 0..S {
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 64;
  }
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 128;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf[k%S]], [src + 128*k], 128, [full[k%S]];
  }
}
consumer@cta 0, warp 1..5 {
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    ld.shared.u32 r0, [buf[k%S] + 4*%laneid];
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];
  }
}
"""


@pytest.mark.daily(days=3, least=0)
def test_a_wrong_count_comes_first() -> None:
    checked = check_case(Case("ring.litmus", text=RING), Settings(timeout=60), Options())
    codes = [f.code for f in checked.findings]
    assert codes[0] == "UB212"
    assert {"DEAD003", "RACE003"} <= set(codes[1:])
    assert codes.index("RACE003") < codes.index("DEAD003"), "who reads too early may wait for what never comes"
    first = checked.findings[0]
    assert "with count 128 instead of 64" in first.missing
    assert "so many threads arrive on it, at line 27" in first.missing
    told = [plain(line).strip() for line in describe(checked, details=False)]
    assert any("with count 128 instead of 64" in line for line in told), "the cause is told without -v too"
    race = next(f for f in checked.findings if f.code == "RACE003")
    assert race.trace[0].span == race.accesses[0].span, "nothing before the earlier access matters"
    assert any(step.skipped > 1 for step in race.trace)


def finding(code: str, severity: str, *lines: int) -> Finding:
    places = tuple(Access(thread="P", instruction=f"line {n}", span=Span("t.litmus", n, 1)) for n in lines)
    return Finding(code=code, kind="race", severity=severity, said=(code,), accesses=places)


def test_a_pair_that_races_is_not_for_review_besides() -> None:
    """Either side may be named first; another pair of the same code stays."""
    race, same = finding("RACE003", "error", 1, 2), finding("RACE005", "review", 2, 1)
    other = finding("RACE005", "review", 1, 3)
    assert drop_redundant([same, race, other]) == (race, other)
    assert drop_redundant([same, other]) == (same, other)


def test_strong_accesses_with_narrow_scopes_race_by_them_alone() -> None:
    """Beside RACE010, RACE001 of the same two says nothing more; of weak ones it says that nobody waits."""

    def strong(found: Finding, thread: str = "P") -> Finding:
        return replace(found, accesses=tuple(replace(a, strong=True, thread=thread) for a in found.accesses))

    narrow, plain_race = finding("RACE010", "error", 1, 2), finding("RACE001", "error", 2, 1)
    assert drop_redundant([plain_race, narrow]) == (plain_race, narrow)
    assert drop_redundant([strong(plain_race), strong(narrow)]) == (strong(narrow),)
    assert drop_redundant([strong(plain_race, "Q"), strong(narrow)]) == (strong(narrow),), "whoever of a role it is"
    elsewhere = strong(finding("RACE001", "error", 1, 3))
    assert drop_redundant([elsewhere, strong(narrow)]) == (elsewhere, strong(narrow))


def test_two_atomics_race_once() -> None:
    """Of the reads and the writes of the two, the writes are told; another pair of statements is another race."""

    def sides(*kinds: str, lines: tuple[int, int] = (1, 2)) -> Finding:
        given = finding("RACE001", "error", *lines)
        places = tuple(replace(a, access=kind) for a, kind in zip(given.accesses, kinds, strict=True))
        return replace(given, accesses=places)

    other = sides("read", "write", lines=(1, 3))
    one_way, both, back = sides("read", "write"), sides("write", "write"), sides("write", "read", lines=(2, 1))
    assert drop_redundant([one_way, other, both, back]) == (both, other)


def test_deadlocks_that_stand_in_a_larger_one() -> None:
    def stuck(code: str, *lines: int) -> Finding:
        return replace(finding(code, "error", *lines), kind="deadlock")

    alone, both, again, other = (
        stuck("DEAD003", 1),
        stuck("DEAD006", 1, 2),
        stuck("DEAD006", 2, 1, 1),
        stuck("DEAD003", 3),
    )
    assert drop_redundant([alone, both, again, other]) == (both, other)
