"""Numbers of rounds up to which guards keep their value, found by evaluating them."""

from __future__ import annotations

from random import Random

import pytest

from mcheck.frontend.litmus import parse
from mcheck.frontend.litmus.parametric.first_rounds import MOST
from mcheck.ir.loop_unrolling import Aperiodic, LoopPeriodicity

LOOP = """PTX guarded
const N = any;
{{ .global .u32 x; }}
one@cta 0, warp 0, lane 0 {{
  for k in {low}..N + {beyond} {{
    {define}
    if ({guard}) {{ ld.global.u32 r0, [x]; }}
    ld.global.u32 r1, [x];
  }}
}}
"""


def early_rounds(guard: str, *, low: int = 0, beyond: int = 0, define: str = "") -> LoopPeriodicity | None:
    """What is known of the rounds before a guard changes late."""
    program = parse(LOOP.format(guard=guard, low=low, beyond=beyond, define=define), "guarded.litmus", every=True)
    assert program.early_rounds is not None
    try:
        return program.early_rounds()
    except Aperiodic:
        return None


def last_number(guard: str, *, low: int = 0, beyond: int = 0, define: str = "") -> int | None:
    """The largest N up to which the guard is known not to change, ``None`` if that is not known."""
    found = early_rounds(guard, low=low, beyond=beyond, define=define)
    return None if found is None else found.until


@pytest.mark.parametrize(
    ("guard", "change"),
    [
        ("k*k == 998001", 999),
        ("k*k >= 998001", 999),
        ("k*k + k > 40000", 200),
        ("(k*k) >> 12 == 1", 64),
        ("(k*k)/4096", 64),
        ("!(k*k == 10000) && 1", 100),
        ("(k*k == 2500) + (k*k*k == 64000)", 40),
        ("(k*(k+1)/2) % 5000 == 4950", 99),
        ("k*k == 3", None),
    ],
)
def test_a_guard_made_of_products_changes_where_evaluation_says_so(guard: str, change: int | None) -> None:
    expected = MOST if change is None else change
    assert last_number(guard) == expected
    assert last_number(guard, low=2, beyond=3) == expected - 3


def test_a_constant_of_the_loop_stands_for_what_it_is() -> None:
    assert last_number("square == 998001", define="const square = k*k;") == 999
    assert last_number("square - k > 40000", define="const half = k*(k/2); const square = 2*half;") == next(
        k for k in range(1000) if 2 * (k * (k // 2)) - k > 40000
    )


@pytest.mark.parametrize(
    "guard", ["k*k == N", "k*k > 100", "(k*k) % 7 == 2", "k*k == %laneid", "1000/(k*k - 100) == 7", "k << (k/20) == 43"]
)
def test_no_number_is_known(guard: str) -> None:
    """The guard depends on more than the round, changes soon, or has no value in some round."""
    assert last_number(guard) is None


def made(rng: Random, depth: int) -> str:
    """A sum, product, quotient, remainder or shift of rounds and numbers, never negative."""
    if not depth or rng.random() < 0.15:
        return rng.choice(["k", "k", "k", str(rng.randrange(1, 9))])
    left, number = made(rng, depth - 1), rng.choice([2, 3, 5, 16, 64, 100, 1000])
    return rng.choice(
        [f"({left} + {made(rng, depth - 1)})", f"({left} * {made(rng, depth - 1)})", f"({left} / {number})",
         f"({left} % {number})", f"({left} >> {rng.randrange(1, 9)})", f"({left} & {number})"]
    )  # fmt: skip


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(8))
def test_no_random_guard_changes_before_the_number_that_is_named(seed: int) -> None:
    rng = Random(seed)
    named = 0
    for _ in range(25):
        low, beyond = rng.randrange(3), rng.randrange(3)
        inner = made(rng, 3)
        guard = f"{inner} {rng.choice(['==', '>=', '!='])} {rng.choice([7, 50, 400, 2500, 64000])}"
        found = early_rounds(guard, low=low, beyond=beyond)
        if found is None or found.until is None:
            continue
        named += 1
        value = eval(f"lambda k: int({guard.replace('/', '//')})")
        (cuts,) = found.loops.values()
        alike = range(low + cuts.ahead, min(found.until, 3000) + beyond - cuts.behind)
        assert all(value(k) == value(k + found.period) for k in alike[: -found.period]), guard
    assert named > 2
