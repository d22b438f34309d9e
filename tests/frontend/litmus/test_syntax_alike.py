"""Threads that take over another one's code, and rounds that share operations, have what unrolling each alone gives."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.base.errors import InputError
from mcheck.frontend.litmus import binding, parse
from mcheck.frontend.litmus.unroll import Unroller

KERNELS = sorted((Path(__file__).parents[3] / "litmus" / "kernels").rglob("*.litmus"))[::4]

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


@pytest.mark.daily
@pytest.mark.parametrize("text", [MIXED, *(p.read_text(encoding="utf-8") for p in KERNELS)])
def test_the_code_is_that_of_each_thread_alone(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert threads(text, 8, monkeypatch) == threads(text, 0, monkeypatch)


def resolved_one_by_one(text: str) -> str:
    """The threads of a text of which nothing is resolved once for two places."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Unroller, "_key", lambda *_: (object(),))
        return repr(parse(text, "alike.litmus").threads)


@pytest.mark.daily
@pytest.mark.parametrize("text", [MIXED, *(p.read_text(encoding="utf-8") for p in KERNELS)])
def test_rounds_have_the_operations_of_each_alone(text: str) -> None:
    assert repr(parse(text, "alike.litmus").threads) == resolved_one_by_one(text)


def expressions() -> st.SearchStrategy[str]:
    """Expressions of loop variables, of constants, of one that hides another, and of what the thread is."""
    leaves = st.sampled_from(("k", "j", "S", "m", "buf", "buf[k % S]", "buf[(j + m) % 4]", "%laneid", "3", "0"))
    signs = st.sampled_from(("+", "-", "*", "/", "%", "<<", "&", "^", "==", "<", "&&"))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.tuples(inner, signs, inner).map(lambda x: f"({x[0]} {x[1]} {x[2]})"), inner.map(lambda x: f"(-{x})")
        ),
        max_leaves=6,
    )


@pytest.mark.daily(days=3, least=0)
@given(expressions(), expressions())
def test_what_is_shared_is_alike(first: str, second: str) -> None:
    text = f"""PTX shared
const S = 4;
{{ .shared .u64 buf[4]; .global .u32 out; }}
P@cta 0..2, warp 0, lane 0..2 {{
  for k in 0..9 {{
    const m = k / 3;
    const j = k + 1;
    mov.u64 r1, {first};
    for j in 0..3 {{
      const m = (k + j) % 2;
      mov.u64 r2, {second};
      st.shared.u64 [buf[(k + m) % S]], r2;
    }}
  }}
}}
"""
    found = []
    for way in (lambda: repr(parse(text, "alike.litmus").threads), lambda: resolved_one_by_one(text)):
        try:
            found.append(way())
        except InputError as error:
            found.append(str(error))
    assert found[0] == found[1]


def test_rounds_that_are_alike_have_the_same_operations() -> None:
    text = """PTX ring
{ .shared .u32 buf[4]; .global .u32 x[64]; }
P@cta 0, warp 0, lane 0 {
  for k in 0..64 {
    ld.shared.u32 r1, [buf[k % 4]];
    st.global.u32 [x + 4*k], ((k / 4) % 2) ^ 1;
  }
}
"""
    code = parse(text, "ring.litmus").threads[0].code
    assert len({id(op) for op in code if op.text.startswith("ld")}) == 4
    assert len({id(op) for op in code if op.text.startswith("st")}) == 64


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
