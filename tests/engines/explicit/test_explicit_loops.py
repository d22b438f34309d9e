"""Loops of compare-and-swap: iterations that fail are followed exactly, however often they repeat."""

from __future__ import annotations

import pytest

from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer as enumerate_all
from mcheck.engines.z3.engine import answer as solve
from mcheck.frontend.litmus import parse

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


@pytest.mark.daily(least=0)
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


FLAG = """PTX flag
{{ .global .u32 y = 0; .global .u32 z = 0; }}
P@cta 0 {{ {write} st.release.gpu.global.u32 [y], 1; }}
Q@cta 0 {{ {wait} }}
locations [y; Q:r2;]
"""
WAITS = {
    "loop": "L: ld.acquire.gpu.global.u32 r2, [y]; setp.ne.u32 %p1, r2, 1; @%p1 bra L;",
    "await": "await ld.acquire.gpu.global.u32 r2, [y] == 1;",
}


@pytest.mark.parametrize("engine", [enumerate_all, solve])
@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize(
    ("write", "codes", "executions"),
    [
        ("st.global.u32 [y], 2;", {"RACE001"}, 3),  # with a try in vain: it reads 0 or 2
        ("st.global.u32 [z], 2;", set(), 1),
        ("st.relaxed.cta.global.u32 [y], 2;", set(), 1),
    ],
)
def test_a_try_in_vain_is_followed_where_it_may_race(
    engine: object, wait: str, write: str, codes: set[str], executions: int
) -> None:
    program = parse(FLAG.format(write=write, wait=WAITS[wait]), "t")
    given = engine(program, load_model("ptx-9.0"), timeout=60, findings=True)  # type: ignore[operator]
    assert {f.code for f in given.findings} == codes
    assert [tuple(v for _, v in o.state) for o in given.outcomes] == [(1, 1)]
    if engine is enumerate_all:
        assert given.executions == executions


OWN_COPY = """PTX own-copy-in-a-round-in-vain
{ .global .align 16 .u32 y[4] = {1, 1, 1, 1}; .shared .align 16 .u32 s[4]; .shared .align 8 .b64 b; }
P@cta 0 {
  mbarrier.init.shared::cta.b64 [b], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [y], 16, [b];
L:
  mbarrier.test_wait.parity.shared::cta.b64 %p1, [b], 0;
  ld.relaxed.cta.shared.u32 r1, [s];
  @!%p1 bra L;
}
"""
FAILING_SWAP = """PTX failing-swap-that-waits-for-the-second-write
"a swap that fails has read all the same, and nothing orders that read and the weak store (8.7)"
{ .global .u32 y = 0; }
P@cta 0 {
  st.global.u32 [y], 2;
  st.release.gpu.global.u32 [y], 1;
}
Q@cta 0 { await atom.acquire.gpu.global.cas.b32 r2, [y], 1, 7 == 1; }
"""
TWO_KINDS = """PTX round-in-vain-of-two-kinds
"every second round reads d, and the loop ends behind one of those, which may read it again: only the first one races"
{ .global .u32 d = 0; .global .u32 g = 0; }
P@cta 0 {
  st.global.u32 [d], 1;
  st.release.gpu.global.u32 [g], 1;
}
Q@cta 1 {
  mov.u32 r1, 0;
L:
  xor.b32 r1, r1, 1;
  setp.eq.u32 %p1, r1, 1;
  ld.acquire.gpu.global.u32 r2, [g];
  @%p1 bra L;
  ld.global.u32 r3, [d];
  setp.ne.u32 %p2, r2, 1;
  @%p2 bra L;
}
"""


@pytest.mark.parametrize("engine", [enumerate_all, solve])
@pytest.mark.parametrize(("text", "code"), [(OWN_COPY, "RACE003"), (FAILING_SWAP, "RACE001"), (TWO_KINDS, "RACE001")])
def test_what_is_read_in_vain_races(engine: object, text: str, code: str) -> None:
    given = engine(parse(text, "t"), load_model("ptx-9.0"), timeout=60, findings=True)  # type: ignore[operator]
    assert {f.code for f in given.findings} == {code}
