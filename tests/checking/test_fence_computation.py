"""What a repair changes beside the order: accesses, and waits that wait for nothing."""

from __future__ import annotations

import pytest

from benchmarks.fences import KERNELS, bugs, twin_of
from mcheck.checking.fences.computation import LESS, MORE, computation_of, describe_changes
from mcheck.checking.fences.examination import Examined, Limits, examine_text
from mcheck.report.fences import entry, lines

CHANGED_BY_THE_TWIN = {
    "H02-two-buffers-for-three-uses": {LESS, MORE},
    "H11-copy-over-metadata": {LESS, MORE},
    "I04-last-lane-reads-the-next-tile": {LESS, MORE},
    "P02-split-index-decoded-differently": {LESS},
    "P11-states-advance-at-different-rates": {MORE},
}
"""Other buffers, offsets, coordinates and bounds of loops."""
RING = """\
PTX ring
const N = any;
{ .global .align 16 .b8 g[16]; .shared .align 16 .b8 s[16]; .shared .align 8 .b64 full, empty; }
producer@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.init.shared::cta.b64 [empty], 1;
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty], (k%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 16;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [g], 16, [full];
  }
}
consumer@cta 0, warp 1, lane 0 {
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [full], k%2;
    ld.shared.u32 r0, [s];
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [empty];
  }
}
"""


def changes(before: str, after: str) -> tuple[str, ...]:
    one, other = computation_of(before, "t.litmus"), computation_of(after, "t.litmus")
    assert one is not None
    assert other is not None
    return describe_changes(one, other)


def mended(name: str) -> Examined:
    path = KERNELS / f"{name}.litmus"
    return examine_text(str(path), path.read_text(encoding="utf-8"), None, Limits(timeout=90, processor_time=True))


@pytest.mark.daily(days=3, least=0)
def test_the_twins_of_the_kernels_compute_the_same_unless_data_say_so() -> None:
    known = 0
    for bug in bugs():
        one, other = (computation_of(each.read_text(encoding="utf-8"), str(each)) for each in (bug, twin_of(bug)))
        if one is not None and other is not None:
            known += 1
            assert set(describe_changes(one, other)) == CHANGED_BY_THE_TWIN.get(bug.stem, set()), bug.stem
    assert known > 110


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("(k%2)^1", "k%2", ()),
        ("[full], k%2", "[full], (k%2)^1", ("the first wait at `full` ends before a copy has come",)),
        ("fence.proxy.async.shared::cta;", "", ()),
        ("    fence.proxy.async.shared::cta;\n    mb", "    mb", ()),
        ("[s], [g], 16, [full]", "[s], [g], 8, [full]", (LESS, MORE)),
        ("    ld.shared.u32 r0, [s];\n", "", (LESS,)),
        ("    ld.shared.u32 r0, [s];\n", "    ld.shared.u32 r0, [s];\n    ld.shared.u32 r0, [s];\n", (MORE,)),
        ("consumer@cta 0, warp 1, lane 0", "consumer@cta 0, warp 2, lane 0", ()),
    ],
)
def test_accesses_are_compared(old: str, new: str, said: tuple[str, ...]) -> None:
    assert old in RING
    assert changes(RING, RING.replace(old, new)) == said


def test_fewer_rounds_are_fewer_accesses() -> None:
    assert changes(RING.replace("any", "4"), RING.replace("any", "3")) == (LESS,)


def test_a_wait_that_nobody_ends_is_lost() -> None:
    text = (KERNELS / "P09-nobody-signals.litmus").read_text(encoding="utf-8")
    assert changes(text, text.replace("[b0], 0", "[b0], 1")) == (
        "nobody else completes the phase that is awaited at `b0`",
    )
    own = text.replace(
        "  await mbarrier.try_wait.parity.shared::cta.b64 [b1]", "  mbarrier.arrive.b64 _, [b1];\n  \\g<0>"
    )
    own = own.replace("\\g<0>", "await mbarrier.try_wait.parity.shared::cta.b64 [b1]")
    assert changes(text, own) == ("nobody else completes the phase that is awaited at `b1`",)


def test_where_loaded_data_decide_nothing_is_said() -> None:
    assert computation_of((KERNELS / "A03-zero-trips-read-from-memory.litmus").read_text(encoding="utf-8"), "t") is None
    assert computation_of("no test", "t") is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["P09-nobody-signals", "M06-wait-on-a-remote-barrier"])
def test_a_repair_that_keeps_every_wait_is_preferred(name: str) -> None:
    found = mended(name).repairs
    assert found is not None
    assert found.found
    assert all(repair.is_plain for repair in found.found)


@pytest.mark.slow
def test_a_repair_that_computes_something_else_says_so() -> None:
    found = mended("P11-states-advance-at-different-rates")
    assert found.repairs is not None
    assert [repair.changes for repair in found.repairs.found] == [(MORE,)]
    assert entry(found)["repairs"][0]["changes"] == [MORE]  # type: ignore[index]
    assert f"    not only the order changes: {MORE}" in list(lines(found))
