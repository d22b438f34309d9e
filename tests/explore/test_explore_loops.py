"""Loops of compare-and-swap: iterations that fail are followed exactly, however often they repeat."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.explore.engine import answer as enumerate_all
from mcheck.solve.engine import answer as solve
from mcheck.syntax import parse

HEAD = "PTX t\n{ .global .u32 x = 0; .global .u32 y = 0; }\n"
INCREMENT = """
  ld.relaxed.gpu.global.u32 r0, [x];
L:
  add.u32 r1, r0, 1;
  mov.u32 r3, r0;
  atom.relaxed.gpu.global.cas.b32 r0, [x], r3, r1;
  setp.ne.u32 %p1, r0, r3;
  @%p1 bra L;
"""
RELOAD = """
L:
  ld.relaxed.gpu.global.u32 r0, [x];
  add.u32 r1, r0, 1;
  atom.relaxed.gpu.global.cas.b32 r2, [x], r0, r1;
  setp.ne.u32 %p1, r2, r0;
  @%p1 bra L;
"""


@pytest.mark.parametrize("engine", [enumerate_all, solve])
@pytest.mark.parametrize("body", [INCREMENT, RELOAD])
def test_increments(engine: object, body: str) -> None:
    roles = "".join(f"P{k}@cta {k} {{{body}}}\n" for k in range(2))
    given = engine(parse(f"{HEAD}{roles}locations [x; P0:r1; P1:r1;]", "t"), load_model("ptx-9.0"), timeout=60)  # type: ignore[operator]
    assert given.complete, given.reason
    assert {tuple(v for _, v in o.state) for o in given.outcomes} == {(2, 1, 2), (2, 2, 1)}


@pytest.mark.parametrize("engine", [enumerate_all, solve])
def test_three_threads(engine: object) -> None:
    role = f"P@cta 0, warp 0, lane 0..3 {{{RELOAD}}}\n"
    given = engine(parse(f"{HEAD}{role}forall (x == 3)", "t"), load_model("ptx-9.0"), timeout=60)  # type: ignore[operator]
    assert (given.verdict, given.complete) == ("pass", True)


def test_a_value_that_grows_for_ever_is_no_value() -> None:
    """Each thread adds to what the other wrote: no execution has a value above what both writes together make."""
    roles = "".join(
        f"P{k}@cta {k} {{ ld.relaxed.gpu.global.u32 r0, [{a}]; add.u32 r1, r0, 1; st.relaxed.gpu.global.u32 [{b}], r1;"
        f" mov.u64 %rd1, x; cvt.u64.u32 %rd2, r0; shl.b64 %rd2, %rd2, 2; add.u64 %rd1, %rd1, %rd2; }}\n"
        for k, (a, b) in enumerate((("x", "y"), ("y", "x")))
    )
    given = enumerate_all(parse(f"{HEAD}{roles}locations [x; y;]", "t"), load_model("ptx-9.0"), timeout=60)
    assert given.complete
    assert {tuple(v for _, v in o.state) for o in given.outcomes} == {(1, 1), (2, 1), (1, 2)}
