"""Threads that take over another one's code have what unrolling each alone gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.errors import InputError
from mcheck.syntax import binding, parse

KERNELS = sorted((Path(__file__).parents[2] / "litmus" / "kernels").rglob("*.litmus"))[::4]

MIXED = """PTX all-that-a-thread-may-differ-in
const N = 3;
{
  .global .u32 x, y[64];
  .shared .align 8 .b64 bar[2];
  .shared .u32 buf[64];
}
P@cluster 0, cta 0..2, warp 0..2 {
  const mine = %laneid % 2;
  for k in 0..N + %warpid {
    if (%laneid == k) {
      st.shared.u32 [buf[k]], mine;
    } else {
      ld.shared.u32 r1, [buf[%laneid]];
    }
    L:
    setp.eq.u32 %p1, r1, k;
    @%p1 bra L;
    for j in 0..mine + 1 {
      mbarrier.arrive.release.cluster.shared::cluster.b64 _, [bar[j]@(1 - %cluster_ctarank)];
      st.global.u32 [y + 4*%tid.x + j], k;
    }
  }
  ld.global.u32 r2, [x];
  if (r2 == %laneid) {
    st.shared.u32 [buf], N;
  }
}
"""


def threads(text: str, most: int, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(binding, "MOST_ALIKE", most)
    return repr(parse(text, "alike.litmus").threads)


@pytest.mark.parametrize("text", [MIXED, *(p.read_text(encoding="utf-8") for p in KERNELS)])
def test_the_code_is_that_of_each_thread_alone(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads(text, 8, monkeypatch) == threads(text, 0, monkeypatch)


def test_a_thread_that_goes_wrong_where_others_do_not_is_told() -> None:
    text = """PTX wrong
{ .shared .u32 buf[4]; }
P@cta 0, warp 0 {
  for k in 0..8 / (3 - %laneid) {
    st.shared.u32 [buf], k;
  }
}
"""
    with pytest.raises(InputError, match="division by zero"):
        parse(text, "wrong.litmus")
