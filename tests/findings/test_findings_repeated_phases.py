"""Races of copies behind a wait for the parity that its thread has waited for before."""

from __future__ import annotations

import pytest

from mcheck.checking.check.command import check_case
from mcheck.checking.run.case import Case, Options, Settings
from mcheck.findings.finding import Finding
from mcheck.findings.fix import Change, Property
from mcheck.findings.groups import causes, group_findings

HEAD = """PTX rounds
{ .global .align 16 .b8 src[16]; .shared .align 16 .u32 buf[4]; .shared .b64 full; .shared .b64 empty; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [empty], 1;
  bar.sync 0;
"""
COPY = """  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf], [src], 16, [full];
"""
WAIT = "  await mbarrier.try_wait.parity.shared::cta.b64 [{}], {};\n"
READ = "  ld.shared.u32 r0, [buf];\n"
GIVE = "  fence.proxy.async.shared::cta;\n  mbarrier.arrive.shared::cta.b64 _, [empty];\n"


def ring(*parities: int, given: bool = True) -> str:
    """A ring of one stage, whose reader waits for these parities of ``full``; ``given``: it hands the stage back."""
    writer = COPY + "".join((WAIT.format("empty", k % 2) if given else "") + COPY for k in range(len(parities) - 1))
    reader = "".join(WAIT.format("full", parity) + READ + (GIVE if given else "") for parity in parities)
    return f"{HEAD}{writer}}}\nQ@cta 0 {{\n  bar.sync 0;\n{reader}}}\n"


def races(text: str) -> list[Finding]:
    found = check_case(Case("rounds.litmus", text=text), Settings(engine="protocol"), Options())
    return [f for f in found.findings if f.code == "RACE003"]


def test_right_parities_are_proved() -> None:
    case = Case("rounds.litmus", text=ring(0, 1, 0))
    assert check_case(case, Settings(engine="protocol"), Options()).verdict == "proved"


def test_a_parity_that_stays_is_named() -> None:
    (race,) = races(ring(0, 1, 1))
    (step,) = race.fixes[0].steps
    assert isinstance(step, Change)
    assert (step.what, step.old, step.new) == (Property.PARITY, "1", "0")
    assert "waits for the same phase of full@0 twice" in race.message
    assert race.missing.startswith("Wait for parity 0 instead of 1 of full@0 at line 26: it waits for parity 1 twice")


@pytest.mark.daily(days=3, least=0)
@pytest.mark.parametrize("parities", [(0, 0), (0, 1, 1)])
def test_a_stage_that_is_never_handed_back_has_no_wrong_parity(parities: tuple[int, ...]) -> None:
    found = races(ring(*parities, given=False))
    assert found
    assert not any("parity" in f.missing and "twice" in f.missing for f in found)


def test_a_first_wait_for_parity_1_is_named() -> None:
    found = races(ring(1, 0))
    early = [f for f in found if "waits for the phase before the first one of full@0" in f.message]
    assert early
    for race in early:
        (step,) = race.fixes[0].steps
        assert isinstance(step, Change)
        assert (step.what, step.old, step.new) == (Property.PARITY, "1", "0")


STAGES = """PTX early
{
  .global .align 16 .b8 src[32];
  .shared .align 16 .b8 buf[32];
  .shared .b64 full[2];
}
A@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [full], 2;
  mbarrier.init.shared::cta.b64 [full + 8], 2;
  bar.sync 0;
  for k in 0..2 {
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full + 8*k], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf + 16*k], [src + 16*k], 16, [full + 8*k];
  }
}
B@cta 0, warp 1, lane 0 {
  bar.sync 0;
  for k in 0..2 {
    mbarrier.arrive.shared::cta.b64 _, [full + 8*k];
  }
  for k in 0..2 {
    await mbarrier.try_wait.parity.shared::cta.b64 [full + 8*k], k%2;
    ld.shared.u32 r0, [buf + 16*k];
  }
}
"""
"""Two stages in which the reader arrives, too, and waits for the parity of the round, not of the phase."""


def test_a_first_wait_for_parity_1_is_named_where_the_reader_arrives_too() -> None:
    found = check_case(Case("early.litmus", text=STAGES), Settings(), Options()).findings
    (race,) = [f for f in found if f.kind == "race"]
    assert "waits for the phase before the first one of full" in race.message
    (step,) = race.fixes[0].steps
    assert isinstance(step, Change)
    assert (step.what, step.old, step.new) == (Property.PARITY, "1", "0")
    (bug,) = causes(group_findings(found))
    assert found[bug.members[0]] is race, "the wait that never ends follows from it"


ANNOUNCED = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;"
ARRIVE = "  mbarrier.arrive.shared::cta.b64 _, [full];\n"


def test_a_first_wait_for_parity_1_is_named_where_another_thread_announces_the_bytes() -> None:
    """Compilers may choose one thread to announce, and another one to copy. The reader then misses phase 0 for good."""
    announce, copy = (f"{line}\n" for line in COPY.splitlines())
    reader = f"}}\nQ@cta 0 {{\n  bar.sync 0;\n  bar.sync 1;\n{WAIT.format('full', 1)}{READ}}}\n"
    issuer = f"}}\nR@cta 0 {{\n  bar.sync 0;\n  bar.sync 1;\n{copy}"
    found = races(f"{HEAD}{announce}  bar.sync 1;\n{issuer}{reader}")
    early = [f for f in found if "waits for the phase before the first one of full@0" in f.message]
    assert early
    assert early[0].missing.startswith("Wait for parity 0 instead of 1 of full@0 at line")


def test_a_wait_for_the_second_phase_is_no_early_one() -> None:
    """The first phase is over without a copy, the second one too where no bytes are announced."""
    reader = f"}}\nQ@cta 0 {{\n  bar.sync 0;\n{WAIT.format('full', 1)}{READ}}}\n"
    first = ARRIVE + WAIT.format("full", 0) + "  bar.sync 0;\n"
    right = HEAD.replace("  bar.sync 0;\n", first) + COPY + reader
    case = Case("rounds.litmus", text=right)
    assert check_case(case, Settings(engine="protocol"), Options()).verdict == "proved"
    found = races(right.replace(ANNOUNCED, "mbarrier.arrive.shared::cta.b64 _, [full];"))
    assert found
    assert not any("before the first one" in f.message for f in found)


RING = """PTX ring
{ .global .align 16 .b8 src[96]; .shared .align 16 .u32 buf[2][4]; .shared .b64 full[2]; .shared .b64 empty[2]; }
producer@cta 0, warp 0, lane 0 {
  for s in 0..2 {
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], COUNT;
  }
  bar.sync 0;
  for k in 0..6 {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%2]], FREED;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%2]], 16;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [buf[k%2]], [src + 16*k], 16, [full[k%2]];
  }
}
consumer@cta 0, warp 1, lane 0..4 {
  bar.sync 0;
  for k in 0..6 {
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%2]], FILLED;
    ld.shared.u32 r0, [buf[k%2] + 4*%laneid];
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [empty[k%2]];
  }
}
"""


def whole_ring(freed: str = "((k/2)%2)^1", filled: str = "(k/2)%2", count: int = 4) -> str:
    return RING.replace("FREED", freed).replace("FILLED", filled).replace("COUNT", str(count))


def leading(text: str) -> Finding:
    found = races(text)
    (bug,) = causes(group_findings(found))
    return found[bug.members[0]]


def test_the_ring_is_proved() -> None:
    case = Case("ring.litmus", text=whole_ring())
    assert check_case(case, Settings(engine="protocol"), Options()).verdict == "proved"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (whole_ring(freed="1"), "Flip the parity of the wait for empty[0]@0 at line 10 after each round of the ring"),
        (whole_ring(filled="0"), "Flip the parity of the wait for full[0]@0 at line 18 after each round of the ring"),
    ],
)
def test_a_parity_that_never_flips_is_named_at_its_wait(text: str, says: str) -> None:
    """Also where the race is between another lane, which the others overtake, and the copy."""
    assert leading(text).missing.startswith(says)


def test_a_race_that_too_many_arrivals_lead_to_says_so() -> None:
    lead = leading(whole_ring(count=1))
    assert "4 threads arrive on empty[0]@0, which counts 1" in lead.message
    assert lead.missing.startswith("Initialise empty[0]@0 at line 6 with count 4 instead of 1")
