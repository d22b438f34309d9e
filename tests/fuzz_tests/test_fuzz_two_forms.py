"""Random programs as litmus tests and as PTX modules: the same is said of both."""

from __future__ import annotations

import pytest

from tests.fuzz.comparisons import Plan
from tests.fuzz.draft import read
from tests.fuzz.record import Record
from tests.fuzz.two_forms import compare, compare_forms

EVERYTHING = """PTX everything
model ptx-9.0
{
  .shared .align 8 .b64 bar;
  .shared .align 16 .u32 x[4];
  .global .u32 f = 0;
}
writer@cluster 0, cta 0, warp 0, lane 0 {
  barrier.cluster.arrive;
  barrier.cluster.wait;
  for k in 0..2 {
  st.shared::cluster.u32 [x[1]@1], k;
  }
  fence.acq_rel.cluster;
  mov.u32 r1, 1;
  if (r1 == 1) { st.release.cluster.u32 [f], r1; }
  barrier.cluster.arrive;
  barrier.cluster.wait;
}
reader@cluster 0, cta 1, warp 1, lane 0..2 {
  barrier.cluster.arrive;
  barrier.cluster.wait;
  if (%laneid == 0) {
  await ld.acquire.cluster.global.u32 r0, [f] == 1;
  } else {
  bra OUT;
  }
  ld.shared.u32 r2, [x + 4];
OUT:
  barrier.cluster.arrive;
  barrier.cluster.wait;
}
"""


def test_both_forms_are_one_program() -> None:
    right, wrong = read(EVERYTHING), read(EVERYTHING.replace("ld.acquire.", "ld.relaxed."))
    for seed in ("1", "2", "3"):
        made, damaged = compare(right, seed, 5.0), compare(wrong, seed, 5.0)
        assert made is not None
        assert damaged is not None
        assert (made.what, made.told.verdict) == ("", "proved")
        assert (damaged.what, damaged.told.verdict) == ("", "finding")


NUMBERS = """PTX numbers
model ptx-9.0
{
  .global .align 16 .u32 y[4] = {0, 0, 0, 2};
}
P0@cta 0 {
  for i in 0..2 {
  st.relaxed.gpu.global.u32 [y], i + 1;
  }
  st.global.u32 [y + 8], 1;
  ld.weak.global.u64 r2, [y + 8];
  if (r2 == 1) { bar.sync 1, 96; }
  ld.global.u32 r3, [y];
  if (r3 != 2) { bar.sync 1, 96; }
}
"""


@pytest.mark.parametrize(("condition", "verdict"), [("r2 == 1", "proved"), ("r2 == 8589934593", "finding")])
def test_sums_and_registers_of_64_bits_have_a_form_as_a_module(condition: str, verdict: str) -> None:
    for seed in ("1", "2"):
        made = compare(read(NUMBERS.replace("r2 == 1", condition)), seed, 5.0)
        assert made is not None
        assert (made.what, made.told.verdict) == ("", verdict)


@pytest.mark.daily(days=6)
@pytest.mark.parametrize("part", range(12))
def test_nothing_is_missed_in_modules(part: int) -> None:
    record = Record({})
    plan = Plan(seed="forms", families=(), engines=(), timeout=0.5)
    for number in range(4 * part, 4 * part + 4):
        compare_forms(plan, number, record)
    assert not [one for one in record.different if any("missed" in text for text in one[1])]
