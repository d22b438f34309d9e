"""Final states from the protocol engine: wide sketches, loops of atomics, and agreement with the explicit engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from mcheck.answers.result import Answer
from mcheck.base.budget import processor_time
from mcheck.cat import load_model
from mcheck.checking.policy.ask import ask as choose
from mcheck.checking.policy.question import Question
from mcheck.engines.explicit.engine import answer as enumerate_all
from mcheck.engines.protocol.final_states import answer
from mcheck.frontend.litmus import load, parse
from tests.fuzz.themes import themed

LITMUS = Path(__file__).parents[3] / "litmus"

RING = """PTX tma-ring
{
  .global .align 128 .b8  src[8192];
  .shared .align 128 .b8  buf[2][1024];
  .shared .align 8   .b64 full[2], empty[2];
}
const S = 2, N = 8;
producer@cta 0, warp 0, lane 0 {
  for s in 0..S {
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 128;
  }
  for k in 0..2048 { CHANGE }
  fence.proxy.async.global;
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf[k%S]], [src + 1024*k], 1024, [full[k%S]];
  }
}
consumer@cta 0, warp 1..5 {
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    ld.shared.u32 r0, [buf[k%S] + 4*%laneid];
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];
  }
}
"""


TURNS = """PTX turns-of-a-word
{ .global .u32 x = 0; }
P0@cta 0 {
  ld.relaxed.gpu.global.u32 r0, [x];
  st.relaxed.gpu.global.u32 [x], 2;
}
P1@cta 1 {
  st.relaxed.gpu.global.u32 [x], 1;
  ld.relaxed.gpu.global.u32 r1, [x];
  st.relaxed.gpu.global.u32 [x], 3;
}
exists (P0:r0 == 1 /\\ P1:r1 == 2 /\\ x == 3)
"""
"""Every access may come between two of the other thread."""


def states(given: Answer) -> set[tuple[object, ...]]:
    return {tuple(value for _, value in o.state) for o in given.outcomes}


def ask(text: str) -> Answer:
    return answer(parse(text, "test.litmus"), load_model("ptx-9.0"), timeout=60)


def test_what_a_read_returned_in_one_order_it_returns_in_another() -> None:
    """A choice goes by the write that is read, not by its place among those that happen to be there."""
    found = ask(TURNS)
    assert (1, 2, 3) in states(found)
    assert states(found) == states(enumerate_all(parse(TURNS, "test.litmus"), load_model("ptx-9.0")))


def test_the_data_of_a_ring_reach_every_lane() -> None:
    text = RING.replace("CHANGE", "st.global.u32 [src + 4*k], k + 5;")
    given = ask(
        text + "locations [consumer[0]:r0; consumer[37]:r0; consumer[127]:r0;]\nexists (consumer[1]:r0 == 1798)"
    )
    assert given.verdict == "pass"
    assert given.complete
    assert states(given) == {(1798, 1797, 1797 + 5, 1797 + 31)}


def test_auto_takes_the_engine_that_has_states() -> None:
    text = RING.replace("CHANGE", "") + "forall (consumer[5]:r0 == 0)"
    given = choose(parse(text, "ring.litmus"), load_model("ptx-9.0"), Question(timeout=60))
    assert (given.verdict, given.complete, given.engine) == ("pass", True, "protocol")


CAS = """PTX cas
{ .global .u32 x = 0; }
P@cta 0, warp 0, lane 0..%d {
  ld.relaxed.gpu.global.u32 r0, [x];
L:
  add.u32 r1, r0, 1;
  mov.u32 r3, r0;
  atom.relaxed.gpu.global.cas.b32 r0, [x], r3, r1;
  setp.ne.u32 %%p1, r0, r3;
  @%%p1 bra L;
}
"""


def test_increments_by_compare_and_swap() -> None:
    given = ask(CAS % 2 + "locations [P[0]:r0; P[1]:r0;]\nforall (x == 2)")
    assert (given.verdict, given.complete) == ("pass", True)
    assert states(given) == {(2, 0, 1), (2, 1, 0)}


LOCK = """PTX lock
{ .global .u32 lock = 0; .global .u32 d = 0; }
P@cta 0, warp 0, lane 0..2 {
L:
  atom.ACQUIRE.gpu.global.TAKE;
  setp.ne.u32 %p1, r0, 0;
  @%p1 bra L;
  ld.global.u32 r1, [d];
  add.u32 r1, r1, 1;
  st.global.u32 [d], r1;
  st.release.gpu.global.u32 [lock], 0;
}
forall (d == 2)
"""


@pytest.mark.daily
@pytest.mark.parametrize("take", ["cas.b32 r0, [lock], 0, 1", "exch.b32 r0, [lock], 1"])
def test_spin_locks(take: str) -> None:
    given = ask(LOCK.replace("ACQUIRE", "acquire").replace("TAKE", take))
    assert (given.verdict, given.complete, states(given)) == ("pass", True, {(2,)})
    racy = ask(LOCK.replace("ACQUIRE", "relaxed").replace("TAKE", take))
    assert not racy.complete
    assert racy.verdict == "fail"  # a stale counter, and with it a lost increment, has been reached


@pytest.mark.parametrize("operation", ["atom.relaxed.gpu.global.add.u32 r0,", "red.relaxed.gpu.global.add.u32"])
def test_a_counter_of_a_warp(operation: str) -> None:
    given = ask(f"PTX warp\n{{ .global .u32 x = 0; }}\nP@cta 0, warp 0 {{ {operation} [x], 1; }}\nforall (x == 32)")
    assert (given.verdict, given.complete, given.executions) == ("pass", True, 1)


def test_the_place_of_one_lane_among_a_warp() -> None:
    """Lanes of which nothing is asked may change places: the one that is asked about has 12 places among them."""
    lanes = "P@cta 0, warp 0, lane 0..12 { atom.relaxed.gpu.global.add.u32 r0, [x], 1; }"
    given = ask(f"PTX warp\n{{ .global .u32 x = 0; }}\n{lanes}\nexists (P[3]:r0 == 11)")
    assert (given.verdict, given.complete) == ("pass", True)
    assert states(given) == {(k,) for k in range(12)}
    assert given.executions < 40


def test_floating_point_sums_depend_on_the_order() -> None:
    text = """PTX floats
{ .global .f32 x = 0; }
P@cta 0, warp 0, lane 0..3 { mov.b32 r1, ONE + %laneid; red.relaxed.gpu.global.add.f32 [x], r1; }
exists (x == 0)"""
    given = ask(text.replace("ONE", "0x3f800000"))
    everything = enumerate_all(parse(text.replace("ONE", "0x3f800000"), "floats"), load_model("ptx-9.0"))
    assert given.executions > 1
    assert states(given) == states(everything)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("st.relaxed.gpu x, 1 | st.relaxed.gpu y, 1; st.relaxed.gpu y, 2 | st.relaxed.gpu x, 2;", "interleaving"),
        ("ld.relaxed.gpu r0, x | ld.relaxed.gpu r0, y; st.relaxed.gpu y, 1 | st.relaxed.gpu x, 1;", "interleaving"),
    ],
)
def test_orders_that_no_interleaving_shows(body: str, why: str) -> None:
    """Two writes in opposite orders (2+2W) and load buffering: allowed, and no interleaving has them."""
    rows = "\n".join(f" {row.strip()} ;" for row in body.rstrip(";").split(";"))
    text = f"PTX t\n{{ x = 0; y = 0; }}\n P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n{rows}\nlocations [x; y;]\nexists (x == 9)"
    given = ask(text)
    assert given.verdict == "unknown"
    assert why in str(given.reason)


def test_what_a_fence_acquires_is_not_handed_on_by_one_in_front_of_it() -> None:
    bodies = [
        f"ld.relaxed.gpu.global.u32 r0, [{read}]; fence.release.gpu; fence.acquire.gpu; "
        f"st.relaxed.gpu.global.u32 [{written}], 1;"
        for read, written in ("xy", "yz", "zx")
    ]
    roles = "\n".join(f"P{k}@cta {k} {{ {body} }}" for k, body in enumerate(bodies))
    given = ask(
        f"PTX t\n{{ .global .u32 x = 0, y = 0, z = 0; }}\n{roles}\nexists (P0:r0 == 1 /\\ P1:r0 == 1 /\\ P2:r0 == 1)"
    )
    assert given.verdict == "unknown"
    assert "interleaving" in str(given.reason)


MULTICAST = """PTX multicast
{
  .global .u32 x = 0; .global .align 16 .b8 g[16];
  .shared .align 16 .b8 s[16]; .shared .align 8 .b64 a;
}
P0@cluster 0, cta 0 {
  barrier.cluster.arrive; barrier.cluster.wait;
  ld.relaxed.gpu.global.u32 r0, [x];
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s], [g], 16, [a], 2;
}
P1@cluster 0, cta 1 {
  mbarrier.init.shared::cta.b64 [a], 1; fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive; barrier.cluster.wait;
  mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [a], 16;
  await mbarrier.try_wait.parity.shared::cta.b64 [a], 0;
  st.relaxed.gpu.global.u32 [x], 1;
}
exists (P0:r0 == 1)"""

ASYNC_STORE = """PTX async-store
{ .global .u32 x = 0, y = 0; }
P0@cta 0 { ld.relaxed.gpu.global.u32 r0, [x]; st.async.release.gpu.global.u32 [y], 1; }
P1@cta 1 { ld.relaxed.gpu.global.u32 r0, [y]; st.relaxed.gpu.global.u32 [x], 1; }
exists (P0:r0 == 1 /\\ P1:r0 == 1)"""


LANES = """PTX lanes
{ .global .u32 x = 0; }
P0@cta 0, warp 0, lane 0 { ld.relaxed.gpu.global.u32 r0, [x]; elect.sync _|%p1, 3; }
P1@cta 0, warp 0, lane 1 { elect.sync _|%p1, 3; st.relaxed.gpu.global.u32 [x], 1; }
exists (P0:r0 == 1)"""


@pytest.mark.parametrize(
    ("text", "states_of_all"), [(MULTICAST, 2), (ASYNC_STORE, 4), (LANES, 2)], ids=["multicast", "st.async", "lanes"]
)
def test_load_buffering_through_what_orders_no_memory(text: str, states_of_all: int) -> None:
    given = ask(text)
    assert given.verdict == "unknown"
    assert "interleaving" in str(given.reason)
    assert len(states(enumerate_all(parse(text, "buffered"), load_model("ptx-9.0")))) == states_of_all


@pytest.mark.daily(least=0)
@pytest.mark.parametrize("first", range(0, 20, 5))
def test_the_suites(first: int, all_tests: bool, enumerated: Callable[[Path], Answer]) -> None:
    """Every fifth test: ``python -m benchmarks.agreement litmus`` compares all, and Z3 as well."""
    compared, timeout = 0, 5 if all_tests else 1
    for path in sorted(p for p in LITMUS.rglob("*.litmus") if "kernels" not in p.parts)[first::20]:
        test = load(str(path))
        model = load_model(test.model or "ptx-9.0")
        with processor_time():
            given = answer(test, model, timeout=timeout)
        if not given.complete or not given.outcomes or given.undefined:
            continue
        there = enumerated(path)
        if there.complete:
            compared += 1
            assert states(given) == states(there), path
    assert compared > 15


PARTS = 12


@pytest.mark.daily
@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs(part: int, all_tests: bool) -> None:
    """The same states, wherever the protocol engine says that it has them all; none too many where it does not."""
    timeout = 5 if all_tests else 1
    for k in (1184 + part, *range(part, 1000, PARTS)):  # 1184 needs an order that findings do not
        name = f"states:{k}"
        test = parse(themed(Random(name)).text(), name)
        model = load_model(test.model or "ptx-9.0")
        with processor_time():
            given = answer(test, model, timeout=timeout)
        if given.undefined or not given.outcomes:
            continue
        with processor_time():
            there = enumerate_all(test, model, timeout=timeout)
        if there.undefined or not there.complete:
            continue
        assert states(given) <= states(there), name
        if given.complete:
            assert states(given) == states(there), name
            return
    pytest.fail("of no program are all states known")


@pytest.mark.parametrize("where", ["[s]", "[r1]"])
def test_data_behind_an_address_in_a_register(where: str) -> None:
    """A shared address fits a register of 32 bits."""
    given = ask(f"""PTX T
{{ .global .align 16 .u32 g[4] = {{7, 8, 9, 10}}; .shared .align 16 .u32 s[4]; .shared .b64 b; }}
P@cta 0 {{
  mov.u32 r1, s;
  mbarrier.init.shared::cta.b64 [b], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [b], 16;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [g], 16, [b];
  await mbarrier.try_wait.parity.shared::cta.b64 [b], 0;
  ld.shared.u32 r0, {where};
}}
forall (P:r0 == 7)
""")
    assert states(given) == {(7,)}
    assert given.verdict == "pass"
