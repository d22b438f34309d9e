"""What the instructions return at which the lanes of a mask meet: elections, votes, exchanges, comparisons, reductions
(PTX ISA 9.0 sections 9.7.9.6, 9.7.13.9, 9.7.13.10, 9.7.13.12 and 9.7.13.14).

``brought`` has what each lane that has come brings; lanes of the mask that are not declared or have exited bring
nothing. ``None`` is a value that the section leaves open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from mcheck.base.errors import InternalError
from mcheck.ir.alu import wrap

LANES = 32
FULL = (1 << LANES) - 1


def elect(mask: int, lane: int, lanes: frozenset[int]) -> tuple[int, int]:
    """The leader and whether this lane is it. The section leaves the choice open, but the same for one mask: here it is
    the lowest lane (9.7.13.14).
    """
    leader = min((k for k in lanes if mask >> k & 1), default=lane)
    return leader, int(leader == lane)


def result(
    op: str, type_name: str, mask: int, lane: int, brought: Mapping[int, int], own: tuple[int, ...] = ()
) -> tuple[int | None, int | None]:
    """(value, predicate) that a lane gets. ``own`` are the operands that only this lane looks at."""
    name, _, mode = op.partition(".")
    match name:
        case "elect":
            return elect(mask, lane, frozenset(brought))
        case "vote":
            return vote(mode, brought), None
        case "shfl":
            return shuffle(mode, lane, brought, *own)
        case "match":
            return match_lanes(mode, lane, type_name, brought)
        case "redux":
            return redux(mode, type_name, brought), None
    raise InternalError(f"no result of '{op}'")


def vote(mode: str, brought: Mapping[int, int]) -> int:
    """``vote.sync``: of the predicates of the lanes (9.7.13.9)."""
    yes = [lane for lane, value in brought.items() if value]
    match mode:
        case "all":
            return int(len(yes) == len(brought))
        case "any":
            return int(bool(yes))
        case "uni":
            return int(len(yes) in (0, len(brought)))
    return sum(1 << lane for lane in yes)


def shuffle(mode: str, lane: int, brought: Mapping[int, int], b: int, c: int) -> tuple[int | None, int]:
    """``shfl.sync``: the value of another lane of the segment, and whether the computed lane is in range (9.7.9.6).

    What a lane brings that is not there is unpredictable.
    """
    b, clamp, segment = b & 31, c & 31, c >> 8 & 31
    most, least = lane & segment | clamp & ~segment & 31, lane & segment
    match mode:
        case "up":
            source, inside = lane - b, lane - b >= most
        case "down":
            source, inside = lane + b, lane + b <= most
        case "bfly":
            source, inside = lane ^ b, lane ^ b <= most
        case _:
            source = least | b & ~segment & 31
            inside = source <= most
    return brought.get(source if inside else lane), int(inside)


def match_lanes(mode: str, lane: int, type_name: str, brought: Mapping[int, int]) -> tuple[int, int]:
    """``match.sync``: the lanes with the same value, or all of them if all have it (9.7.13.10)."""
    values = {k: wrap(type_name, v) for k, v in brought.items()}
    same = sum(1 << k for k, v in values.items() if v == values[lane])
    if mode == "any":
        return same, 1
    everyone = int(len(set(values.values())) == 1)
    return same * everyone, everyone


_REDUCTIONS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def redux(mode: str, type_name: str, brought: Mapping[int, int]) -> int:
    """``redux.sync``: all values combined (9.7.13.12)."""
    return wrap(type_name, reduce(_REDUCTIONS[mode], [wrap(type_name, v) for v in brought.values()]))
