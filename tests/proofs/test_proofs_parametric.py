"""Proofs for every number of rounds: what repeats is proved, and nothing that goes wrong late."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mcheck.base.budget import Limit
from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.engines.protocol.passes import passes_without
from mcheck.frontend.litmus import parse
from mcheck.ir.loop_unrolling import Aperiodic
from mcheck.proofs import parametric_proof
from mcheck.proofs.parametric_proof import Proof, prove
from tests.engines.protocol.sketches import changed
from tests.engines.protocol.unbounded import (
    GUARDED,
    IN_TURNS,
    PING_PONG,
    REGISTERS,
    TENSOR,
    TILES,
    TWO_PIPELINES,
    gemm,
    ring,
    tiles,
)


def proof(text: str, *without: str) -> Proof:
    program, model = parse(text, "any.litmus", every=True), load_model("ptx-9.0")
    return prove(program, model, "ptx", 2, Limit(None), passes=passes_without(without))


def results(within: str, behind: str) -> str:
    """The ring whose consumer stores a result in every round; what it does more in the loop, and behind it."""
    return changed(
        ring(),
        (".shared .align 128 .b8  buf", ".global .align 128 .b8 out[1024*N + 1024];\n  .shared .align 128 .b8  buf"),
        ("    \n  }\n}\n", f"    st.global.u32 [out + 128*k + 4*%laneid], 1;\n    {within}\n  }}\n  {behind}\n}}\n"),
    )


POLL = "mbarrier.try_wait.parity.shared::cta.b64 %p, [full[k%S]], (k/S)%2;"
PEEK = changed(
    ring(2),
    (
        "await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;",
        f"{POLL} @%p bra GO;\nWAIT: {POLL} @!%p bra WAIT;\nGO:",
    ),
)
"""A first look that saves the loop which waits, as ``consumer_try_wait`` and ``consumer_wait`` of CUTLASS."""
REDUCED = """PTX any-reduced
const N = any, S = 2;
{
  .global .align 128 .u32 sum[32];
  .shared .align 128 .u32 tile[S][32];
}
adder@cta 0..2, warp 0, lane 0 {
  for k in 0..N {
    cp.async.bulk.wait_group.read 1;
    st.shared.u32 [tile[k%S]], 1;
    fence.proxy.async.shared::cta;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [sum], [tile[k%S]], 128;
    cp.async.bulk.commit_group;
  }
  cp.async.bulk.wait_group 0;
}
"""
"""Two that wait for nobody: a state is none as long as one of them has not begun."""
REPEATING = {
    "ring": ring(), "registers": REGISTERS, "in-turns": IN_TURNS, "ping-pong": PING_PONG,
    "attention": TWO_PIPELINES, "gemm": gemm(), "peek": PEEK, "reduced": REDUCED,
    "results": results("", ""),
    **GUARDED, "tensor": TENSOR, **TILES,
}  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("text", REPEATING.values(), ids=REPEATING)
def test_what_repeats_is_proved(text: str) -> None:
    given = proof(text)
    assert given.answer.verdict == "proved"
    assert given.first <= 24


@pytest.mark.daily
@pytest.mark.parametrize(
    "text", [ring(), PING_PONG, gemm(), GUARDED["guards"]], ids=["ring", "ping-pong", "gemm", "guards"]
)
def test_full_runs_say_the_same_for_three_periods_more(text: str) -> None:
    given = proof(text)
    program = parse(text, "any.litmus", every=True)
    assert program.instance is not None
    for number in range(given.first, given.first + 3 * given.period + 1):
        found = check(program.instance(number), load_model("ptx-9.0"))
        assert (found.verdict, found.executions) == ("proved", 1), number


@pytest.mark.parametrize("place", ["k + 9*%ctaid.x", "k + 43*%ctaid.x", "(2 + %ctaid.x)*k + 33*%ctaid.x"])
def test_tiles_that_meet_later_are_no_repetition(place: str) -> None:
    with pytest.raises(Aperiodic):
        proof(tiles(place))


def test_many_stages_are_followed_as_long_as_it_takes() -> None:
    """In registers that are left as they are a period is one round, and five of these show nothing."""
    given = proof(changed(REGISTERS, ("const S = 3", "const S = 5")), "periodic-registers")
    assert given.answer.verdict == "proved"
    assert not given.turns


def test_few_periods_are_followed_where_more_would_be_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ring of 32 stages repeats after 64 rounds; here the limit is small, not the ring large."""
    program = parse(ring(), "any.litmus", every=True)
    assert program.rounds is not None
    few, most = (periods * program.rounds().period + ahead for periods, ahead in parametric_proof.HORIZONS)
    whole = proof(ring())
    monkeypatch.setattr(parametric_proof, "MOST_ROUNDS", most - 1)
    assert proof(ring()) == whole
    monkeypatch.setattr(parametric_proof, "MOST_ROUNDS", few - 1)
    with pytest.raises(Aperiodic, match="repeat after"):
        proof(ring())


@pytest.mark.daily
@pytest.mark.parametrize("name", sorted(REPEATING.keys() - TILES.keys() - {"in-turns", "reduced"}))  # none is shared
def test_smaller_numbers_are_as_they_are_by_themselves(name: str) -> None:
    program = parse(REPEATING[name], "any.litmus", every=True)
    model = load_model("ptx-9.0")
    given = prove(program, model, "ptx", 2, Limit(None), lambda _, answer: answer)
    assert program.instance is not None
    assert program.rounds is not None
    assert set(range(program.rounds().least + 1, given.first)) <= given.smaller.keys()
    for number, answer in given.smaller.items():
        assert answer == check(program.instance(number), model), number


COUNTED = "add.u32 n, n, 4; and.b32 n, n, 0x7FC; ld.global.u32 r1, [src + n];"
LATE = {
    "bytes-by-a-guard": (ring(bytes_="1024 + 16*(k >= 33)"), "found"),
    "bytes-by-a-late-guard": (ring(bytes_="1024 + 16*(k >= 333)"), "with a result that changes late"),
    "bytes-by-a-guard-half-way": (ring(bytes_="1024 + 16*(2*k >= N)"), "'>=' of a value that grows"),
    "a-guard-that-is-one-off": (changed(GUARDED["guards"], ("k + S < N", "k + S + 1 < N")), "found"),
    "a-number-that-decides": (ring(parity="(k/S + N)%2"), "N before the loop or in it"),
    "bytes-by-a-quotient": (ring(bytes_="1024 + 16*(k/33)"), "grows with the iteration"),
    "parity-flips-with-the-tile": (ring(parity="(k/S + k/64)%2"), "repeat after 128"),
    "parity-from-a-product": (ring(parity="(k*k)%2"), "'*' of a value that grows"),
    "the-last-round": (ring(parity="(k + (k == N-1))%2"), "found"),
    "a-counter-in-a-register": (ring(more=COUNTED), "register n of consumer"),
    "a-branch-on-a-counter": (
        ring(more="add.u32 n, n, 1; setp.eq.u32 p, n, 500; @p mbarrier.arrive.shared::cta.b64 _, [empty[0]];")
        .replace(".reg .b32 n;", ".reg .b32 n; .reg .pred p;"),
        "register n of consumer",
    ),
    "an-address-that-grows": (changed(ring(), ("[buf[k%S] + 4*%laneid]", "[buf[0] + 16*k]")), "the address of"),
    "a-source-that-ends": (changed(ring(), ("src[1024*N + 1024]", "src[65536]")), "its size does not"),
    "a-source-that-is-written": (
        changed(ring(), ("    \n  }\n}\n", "  }\n  if (%laneid == 0) { st.global.u32 [src], 1; }\n}\n")),
        "which differs at the ends of all periods",
    ),
    "contents-that-differ": (
        changed(ring(), (".global .align 128 .b8  src[1024*N + 1024]",
                         ".global .align 128 .b8  src[1024*N + 1024] = {0, 1}")),
        "not the same all over",
    ),
    "a-wrong-fence": (changed(ring(), ("fence.proxy.async.shared::cta", "fence.proxy.async.global")), "found"),
    "a-value-that-decides": (
        changed(ring(more="if (%laneid == 0) { st.shared.u32 [flag], k; ld.shared.u32 r1, [flag]; "
                     "if (r1 == 40) { ld.shared.u32 r2, [buf[0]]; } }"),
                (".shared .align 8 ", ".shared .align 4 .u32 flag;\n  .shared .align 8 ")),
        "what is stored and may decide something",
    ),
    "results-that-overlap": (changed(gemm(), ("out + 128*C*t", "out + 128*t")), "found"),
    "results-of-more-than-a-step": (
        changed(gemm(1), ("[tile], 128;", "[tile], 256;"), ("tile[128]", "tile[256]"), ("+ 128*C]", "+ 256]")),
        "overlaps what the next one writes",
    ),
    "results-that-are-read": (results("ld.global.u32 r3, [out + 128*k + 4*%laneid];", ""), "other than a plain write"),
    "results-that-are-written-behind-the-loop": (
        results("", "st.global.u32 [out + 4*%laneid], 2;"), "outside of the loop",
    ),
    "two-loops": (changed(ring(), ("for k in N..N+S", "for k in 0..N")), "a second loop"),
}  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("name", LATE)
def test_what_is_not_known_to_repeat_is_refused_by_name(name: str) -> None:
    text, why = LATE[name]
    with pytest.raises(Aperiodic, match=re.escape(why)):
        proof(text)


def test_values_that_decide_nothing_may_grow() -> None:
    more = "st.shared.u32 [val + 4*%laneid], k*k;"
    text = changed(ring(more=more), (".shared .align 8 ", ".shared .align 4 .u32 val[32];\n  .shared .align 8 "))
    assert proof(text).answer.verdict == "proved"


TENSOR_MAP = """.global .tensormap tm = { global_address = src, elemtype = f16, rank = 1, global_dim = {64},
    global_stride = {}, box_dim = {64}, element_stride = {1}, interleave_layout = none, swizzle_mode = none,
    swizzle_atomicity = 16B, fill_mode = zero };
  """


def test_a_tensor_map_that_nothing_writes_decides_nothing() -> None:
    more = "st.shared.u32 [val + 4*%laneid], k*k;"
    declared = ".shared .align 4 .u32 val[32];\n  " + TENSOR_MAP + ".shared .align 8 "
    assert proof(changed(ring(more=more), (".shared .align 8 ", declared))).answer.verdict == "proved"


def test_several_executions_are_left_to_the_numbers_one_by_one() -> None:
    sketch = Path(__file__).parents[2] / "litmus" / "kernels" / "P18-multicast-ring.litmus"
    with pytest.raises(Aperiodic, match="order may vary"):
        proof(changed(sketch.read_text(), ("N = 3", "N = any"), ("g[128 * N]", "g[128*N + 128]")))


def test_the_period_is_that_of_what_the_text_says() -> None:
    for text, period in ((ring(), 2), (ring(3), 6), (ring(2, parity="((k & 3)/S)%2"), 4), (gemm(blocks=3), 4)):
        program = parse(text, "any.litmus", every=True)
        assert program.rounds is not None
        assert program.rounds().period == period
