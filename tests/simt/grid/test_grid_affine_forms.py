"""What becomes of forms in the coordinates by an instruction, against its result in every cluster."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from mcheck.isa.opcode import read_opcode
from mcheck.simt.grid.footprints.affine_forms import Coordinates, coordinate_rule
from mcheck.simt.grid.footprints.space import MAX_SYMBOLS, Space, dot
from mcheck.simt.parametric.affine import Value

CLUSTERS = 40
"""Those of the grid, along x."""
FIRST = 7
"""The cluster that was executed."""


def row() -> Coordinates:
    return Coordinates(0, 0, 0, space=Space((-FIRST, 0, 0), (CLUSTERS - 1 - FIRST, 0, 0), (FIRST, 0, 0)))


def constant(number: int) -> Value:
    return Value(np.array([number], np.uint64), np.zeros((MAX_SYMBOLS, 1), np.int64), np.zeros(1, np.bool_))


def number_of_cluster(step: int = 1, plus: int = 0) -> Value:
    found = constant(step * FIRST + plus)
    found.slopes[0, 0] = step
    return found


def apply(n: Coordinates, text: str, *operands: Value) -> Value:
    rule = coordinate_rule(read_opcode(tuple(text.split("."))))
    assert rule is not None
    return rule(n, list(operands))


def results(n: Coordinates, found: Value, here: int) -> list[int] | None:
    """The result in each cluster, in their order, given that ``here``; none if it is not known."""
    if found.bad.any():
        return None
    slopes = found.slopes[:, 0].tolist()
    return [here + dot(slopes, n.space.symbols(cluster)) for cluster in n.space.all_clusters()]


def clusters_left_out(n: Coordinates) -> list[tuple[int, ...]]:
    return [cluster for cluster in n.space.all_clusters() if not n.space.contains(cluster)]


def in_each_cluster(of: Callable[[int], int]) -> list[int]:
    return [of(cluster) for cluster in range(CLUSTERS)]


@pytest.mark.parametrize("mask", [0, 1, 6, 8, 0x1E, 0x20, 1 << 20, 1 << 32, 0x7FF00000000, (1 << 64) - 4])
def test_what_a_run_of_ones_leaves_is_followed(mask: int) -> None:
    n = row()
    found = apply(n, "and.b64", number_of_cluster(3, 1), constant(mask))
    expected = in_each_cluster(lambda k: (3 * k + 1) & mask)
    assert results(n, found, expected[FIRST]) == expected
    assert not clusters_left_out(n)


@pytest.mark.parametrize("mask", [5, 0x12, (1 << 63) + 1])
def test_what_several_runs_leave_is_not_followed(mask: int) -> None:
    assert apply(row(), "and.b64", number_of_cluster(), constant(mask)).bad.all()


def rounded_down(divisor: int, bits: int) -> int:
    """The factor by which a number is divided if 1 is added to it."""
    return (1 << (bits + divisor.bit_length() - 1)) // divisor


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("divisor", [3, 5, 6, 7, 11, 33, 100])
@pytest.mark.parametrize("up", [0, 1])
def test_a_division_by_the_upper_half_of_a_product_is_followed(bits: int, divisor: int, up: int) -> None:
    n = row()
    factor = rounded_down(divisor, bits) + up
    half = apply(n, f"mul.hi.u{bits}", number_of_cluster(5, 1 - up), constant(factor))
    expected = in_each_cluster(lambda k: (5 * k + 1 - up) * factor >> bits)
    assert results(n, half, expected[FIRST]) == expected
    shift = divisor.bit_length() - 1
    here = Value(np.array([expected[FIRST]], np.uint64), half.slopes, half.bad)
    quotient = apply(n, f"shr.u{bits}", here, constant(shift))
    expected = in_each_cluster(lambda k: 5 * k // divisor)
    assert results(n, quotient, expected[FIRST]) == expected
    assert not clusters_left_out(n)


def test_a_factor_that_is_no_rounded_fraction_is_not_followed() -> None:
    assert apply(row(), "mul.hi.u64", number_of_cluster(), constant(0x123456789ABCDEF1)).bad.all()


def test_zero_is_not_divided_by_a_factor_that_is_rounded_down() -> None:
    n = row()
    found = apply(n, "mul.hi.u32", number_of_cluster(), constant(rounded_down(3, 32)))
    assert results(n, found, (FIRST * 2 - 1) // 3) is not None
    assert clusters_left_out(n) == [(-FIRST, 0, 0)]
