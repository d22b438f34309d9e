"""Small programs on which the explicit engine once went wrong, and others that try it hard."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time

import pytest

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer
from mcheck.engines.z3.engine import answer as by_z3
from mcheck.frontend import litmus


def ask(text: str, model: str = "ptx-9.0", **options: object) -> Answer:
    program = litmus.parse("PTX t\n" + text, "t.litmus")
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


DECLARATIONS = ".global .u32 x, y, f; .global .u64 q; .shared .u64 s; .reg .u64 d, e;"
PROGRAMS = {
    "a register divided by zero": (
        "a@cta 0 { ld.weak.u32 r1, [x]; if (4 / r1 == 0) { st.weak.u32 [y], 1; } }",
        "y",
        {0, 1},
    ),
    "an instruction that divides by zero": (
        "a@cta 0 { ld.weak.u32 r1, [x]; div.u32 r1, 4, r1; if (r1 == 9) { st.weak.u32 [y], 1; } }",
        "y",
        {0, 1},
    ),
    "the other side of && is not looked at": (
        "a@cta 0 { ld.weak.u32 r1, [x]; if (r1 != 0 && 4 / r1 == 4) { st.weak.u32 [y], 1; } }",
        "y",
        {0},
    ),
    "a shift by less than nothing": (
        "a@cta 0 { ld.weak.u32 r1, [x]; if ((1 << (r1 - 1)) == 0) { st.weak.u32 [y], 1; } }",
        "y",
        {0, 1},
    ),
    "a shift by billions": (
        "a@cta 0 { ld.weak.u32 r1, [x]; if ((1 << (r1 + 4000000000)) == 0) { st.weak.u32 [y], 1; } }",
        "y",
        {0, 1},
    ),
    "a pointer through memory": (
        (
            "a@cta 0 { mov.u64 d, x; st.release.gpu.u64 [q], d; }"
            "b@cta 1 { ld.acquire.gpu.u64 e, [q]; setp.ne.u64 %p1, e, 0; @%p1 st.weak.u32 [e], 5; }"
        ),
        "x",
        {0, 5},
    ),
    "a word that points to itself": (
        "a@cta 0 { mov.u64 d, q; st.weak.u64 [q], d; ld.weak.u64 e, [q]; st.weak.u64 [e], 7; }",
        "q",
        {7},
    ),
    "a loop that counts": (
        (
            "a@cta 0 { mov.u32 r0, 0; L: st.relaxed.gpu.u32 [x], r0; add.u32 r0, r0, 1; "
            "setp.lt.u32 %p1, r0, 5; @%p1 bra L; }"
        ),
        "x",
        {4},
    ),
    "a loop that tests before it reads": (
        (
            "a@cta 0 { st.relaxed.gpu.u32 [f], 3; }"
            "b@cta 1 { mov.u32 r0, 0; L: setp.ne.u32 %p1, r0, 0; @%p1 bra D; ld.relaxed.gpu.u32 r0, [f]; bra L;"
            " D: st.weak.u32 [x], r0; }"
        ),
        "x",
        {3},
    ),
    "a lock by compare-and-swap": (
        (
            "a@cta 0..3 { L: atom.acquire.gpu.cas.b32 r1, [f], 0, 1; setp.ne.u32 %p1, r1, 0; @%p1 bra L;"
            " ld.weak.u32 r2, [y]; add.u32 r2, r2, 1; st.weak.u32 [y], r2; st.release.gpu.u32 [f], 0; }"
        ),
        "y",
        {3},
    ),
    "an atomic that is awaited tries again": (
        "a@cta 0 { await atom.relaxed.gpu.add.u32 r0, [f], 1 == 1; }",
        "f",
        {2},
    ),
    "a label at the end": ("a@cta 0 { bra D; st.weak.u32 [x], 1; D: }", "x", {0}),
    "a pointer in shared memory, behind a barrier": (
        (
            "a@cta 0, warp 0, lane 0 { mov.u64 d, x; st.shared.u64 [s], d; bar.sync 0; }"
            "b@cta 0, warp 1, lane 0 { bar.sync 0; ld.shared.u64 d, [s]; st.weak.u32 [d], 5; }"
        ),
        "x",
        {5},
    ),
    "32 lanes at a barrier": (
        "a@cta 0, warp 0 { st.weak.u32 [x], 1; bar.sync 0; if (%laneid == 0) { st.weak.u32 [x], 2; } }",
        "x",
        {2},
    ),
}
WIDE = {"32 lanes at a barrier"}


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow if n in WIDE else ()) for n in PROGRAMS])
def test_the_states_are(name: str) -> None:
    code, label, expected = PROGRAMS[name]
    found = ask(f"{{ {DECLARATIONS} }}\n{code}\nexists ({label} == 0)\n", findings=False)
    assert found.complete, found.reason
    assert values(found, label) == expected


UNANSWERED = {
    "a pointer that may be unknown": (
        (
            "a@cta 0, warp 0, lane 0 { mov.u64 d, x; st.shared.u64 [s], d; }"
            "b@cta 0, warp 1, lane 0 { ld.shared.u64 d, [s]; st.weak.u32 [d], 5; }"
        ),
        "unknown initial contents",
    ),
    "a pointer that nobody wrote": (
        "a@cta 0 { ld.shared.u64 d, [s]; ld.weak.u32 r0, [d]; }",
        "unknown initial contents",
    ),
    "a loop with an effect": ("a@cta 0 { L: st.weak.u32 [x], 1; bra L; }", "unrolling bound"),
    "a lock that writes while it waits": (
        "a@cta 0..2 { await atom.acquire.gpu.exch.b32 r0, [f], 1 == 0; st.release.gpu.u32 [f], 0; }",
        "unrolling bound",
    ),
    "a poll that counts its tries": (
        (
            "a@cta 0 { st.relaxed.gpu.u32 [f], 1; }"
            "b@cta 1 { mov.u32 r1, 0; L: ld.relaxed.gpu.u32 r0, [f]; add.u32 r1, r1, 1; setp.ne.u32 %p1, r0, 1;"
            " @%p1 bra L; }"
        ),
        "unrolling bound",
    ),
}


@pytest.mark.parametrize("name", UNANSWERED)
def test_what_is_not_followed_is_unknown(name: str) -> None:
    code, reason = UNANSWERED[name]
    found = ask(f"{{ {DECLARATIONS} }}\n{code}\nexists (x == 77)\n", findings=False)
    assert (found.verdict, found.complete) == ("unknown", False)
    assert reason in (found.reason or "")


@pytest.mark.daily
@pytest.mark.parametrize(
    "code",
    [
        "a@cta 0, warp 0 { atom.relaxed.gpu.global.add.u32 r0, [x], 1; }",
        (
            "a@cta 0, warp 0..2 { ld.relaxed.gpu.u32 r0, [x]; barrier.sync r0, 64; }"
            "b@cta 1 { st.relaxed.gpu.u32 [x], 3; }"
        ),
    ],
)
def test_the_time_given_is_kept(code: str) -> None:
    program = litmus.parse(f"PTX t\n{{ {DECLARATIONS} }}\n{code}\nexists (x == 77)\n", "t.litmus")
    started = process_time()
    found = answer(program, load_model("ptx-9.0"), timeout=1)
    assert process_time() - started < 5
    assert found.verdict == "unknown"
    assert "1 s" in (found.reason or "")


SEEDED = """
import sys
from mcheck.frontend.litmus import load
from mcheck.cat import load_model
from mcheck.engines.explicit.engine import answer
for path in sys.argv[1:]:
    print(path, answer(load(path), load_model("ptx-9.0"), witnesses=True))
"""


@pytest.mark.daily(days=4, least=0)
def test_the_answer_does_not_depend_on_hash_seeds() -> None:
    paths = [str(p) for p in sorted(Path("litmus").rglob("*.litmus"))[::40] if p.parent.name != "kernels"]
    assert paths
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SEEDED, *paths],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(outputs) == 1


@pytest.mark.daily
@pytest.mark.parametrize("path", sorted(Path("litmus").rglob("*.litmus"))[::16], ids=lambda p: p.stem)
def test_the_verdict_alone_is_the_same_verdict(path: Path) -> None:
    program = litmus.load(str(path))
    model = load_model(program.model or "ptx-9.0")
    full = answer(program, model, timeout=2, findings=False)
    if full.verdict != "unknown":
        assert answer(program, model, timeout=5, findings=False, verdict_only=True).verdict == full.verdict


INIT_AGAIN = """
{
  .global .u32 x = 0;
  .shared .align 8 .b64 bar;
}
P0@cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
  mbarrier.arrive.shared::cta.b64 _, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 1;
  mbarrier.inval.shared::cta.b64 [bar];
  mbarrier.init.shared::cta.b64 [bar], 1;
  bar.sync 0;
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
  ld.global.u32 r0, [x];
}
P1@cta 0 {
  bar.sync 0;
  st.global.u32 [x], 1;
  mbarrier.arrive.shared::cta.b64 _, [bar];
}
forall (P0:r0 == 1)
"""


def test_the_phases_of_the_next_object_count_from_0_again() -> None:
    """PTX ISA 9.7.13.15.3: what came before mbarrier.inval is earlier than all phases of the next object."""
    found = ask(INIT_AGAIN)
    assert found.verdict == "pass"
    assert values(found, "P0:r0") == {1}


HALF_A_MAP = """
{ .global .align 16 .u32 g[4], h[4] = {5, 6, 7, 8};
  .global .tensormap gm = { global_address = g, elemtype = u32, rank = 1, global_dim = {4}, global_stride = {},
    box_dim = {4}, element_stride = {1}, interleave_layout = none, swizzle_mode = none, swizzle_atomicity = 16B,
    fill_mode = zero };
  .shared .align 128 .b8 map[128]; .shared .align 128 .u32 s[4]; .shared .align 8 .b64 bar; }
a@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [map], h;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [gm], [map], 128;
  fence.proxy.tensormap::generic.acquire.gpu [gm], 128;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [s], [gm, {0}], [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
forall (h[0] == 5)
"""


@pytest.mark.parametrize("ask_it", [answer, by_z3], ids=["explicit", "z3"])
def test_a_copy_by_a_map_that_nobody_filled_is_unknown(ask_it: Callable[..., Answer]) -> None:
    """One field of the map is set, the others hold what was there: it may copy anything from anywhere."""
    found = ask_it(litmus.parse("PTX t\n" + HALF_A_MAP, "t.litmus"), load_model("ptx-9.0"), timeout=30)
    assert (found.verdict, found.complete) == ("unknown", False)
    assert "tensor map depends on unknown initial contents" in (found.reason or "")
