"""Small programs on which the exhaustive engine once went wrong, and others that try it hard."""

from __future__ import annotations

import pytest

from mcheck import syntax
from mcheck.cat import load_model
from mcheck.explore.engine import answer
from mcheck.explore.result import Answer


def ask(text: str, model: str = "ptx-9.0", **options: object) -> Answer:
    program = syntax.parse("PTX t\n" + text, "t.litmus")
    return answer(program, load_model(model), timeout=30, **options)  # type: ignore[arg-type]


def values(found: Answer, label: str) -> set[object]:
    return {dict(o.state)[label] for o in found.outcomes}


THIN_AIR = """
{ .global .u32 x, y, tab[4]; .reg .u64 rd1, rd2; }
a@cta 0 {
  ld.relaxed.gpu.u32 r0, [x];
  mul.lo.u32 r9, r0, 4; cvt.u64.u32 rd2, r9; mov.u64 rd1, tab; add.u64 rd1, rd1, rd2;
  ld.weak.u32 r1, [rd1];
  add.u32 r2, r0, 0;
  st.relaxed.gpu.u32 [y], r2;
}
b@cta 1 { ld.relaxed.gpu.u32 r0, [y]; st.relaxed.gpu.u32 [x], r0; }
c@cta 2 { ld.relaxed.gpu.u32 r0, [y]; setp.eq.u32 %p1, r0, 7; @%p1 st.relaxed.gpu.u32 [x], 1; }
exists (a:r0 == 1)
"""


def test_a_value_used_as_an_address_still_carries_its_dependencies() -> None:
    """A register that an address has fixed must not lose the read that it comes from, or thin air slips in."""
    found = ask(THIN_AIR)
    assert found.verdict == "fail"
    assert values(found, "a:r0") == {0}


@pytest.mark.parametrize("condition", ["exists (b:r2 == 3)", "~exists (b:r2 == 3)", "forall (b:r2 != 3)"])
def test_the_verdict_alone_sees_undefined_executions_that_the_condition_does_not_ask_for(condition: str) -> None:
    text = f"""
{{ .global .align 8 .u32 x[2]; .global .u32 y; .reg .u64 d; }}
a@cta 0 {{ st.weak.u32 [x], 1; st.weak.u32 [y], 1; }}
b@cta 1 {{ ld.weak.u64 d, [x]; ld.weak.u32 r2, [y]; }}
{condition}
"""
    full, quick = ask(text), ask(text, verdict_only=True)
    assert full.undefined
    assert quick.undefined
    assert (full.verdict, quick.verdict) == (("pass",) * 2 if condition.startswith("exists") else ("fail",) * 2)


UNKNOWN = {
    "a branch on an uninitialised register": (
        "ld.relaxed.gpu.u32 r1, [x]; setp.eq.u32 %p1, r1, r2; @%p1 st.weak.u32 [z], 1;",
        "exists (z == 1)",
        "pass",
    ),
    "the same, the other way": (
        "ld.relaxed.gpu.u32 r1, [x]; setp.eq.u32 %p1, r1, r2; @%p1 st.weak.u32 [z], 1;",
        "exists (z == 0)",
        "pass",
    ),
    "a sum with an uninitialised register": ("ld.weak.u32 r1, [x]; add.u32 r3, r1, r2;", "exists (a:r3 == 1)", "pass"),
    "both ways of one register agree": (
        "setp.eq.u32 %p1, r2, 3; @%p1 st.weak.u32 [z], 1; @!%p1 st.weak.u32 [x], 1;",
        "exists (z == 1 /\\ x == 1)",
        "fail",
    ),
    "shared memory nobody wrote": (
        "ld.shared.u32 r1, [s]; if (r1 == 7) { st.weak.u32 [z], 1; }",
        "forall (z == 0)",
        "fail",
    ),
    "bytes of shared memory that are known": (
        "st.shared.u8 [s], 5; ld.shared.u32 r1, [s]; and.b32 r3, r1, 255; ld.shared.u8 r4, [s];",
        "forall (a:r4 == 5)",
        "pass",
    ),
}


@pytest.mark.parametrize("name", UNKNOWN)
@pytest.mark.parametrize("quick", [False, True])
def test_unknown_values_go_both_ways(name: str, quick: bool) -> None:
    code, condition, verdict = UNKNOWN[name]
    found = ask(
        f"{{ .global .u32 x, z; .shared .u32 s; }}\na@cta 0 {{ .reg .u32 r2; {code} }}\n{condition}\n",
        verdict_only=quick,
    )
    assert found.verdict == verdict
