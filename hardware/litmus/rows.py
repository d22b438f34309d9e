"""Values that differ from thread to thread, computed from where a thread stands."""

from __future__ import annotations

from collections.abc import Mapping

Position = tuple[int, int, int]
"""The CTA of the instance, the warp and the lane."""


def computed(register: str, placed: Mapping[Position, int]) -> list[str] | None:
    """Sets a register to the value of the thread's place, which ``%cta``, ``%warp`` and ``%lane`` have; nothing where
    only a table would do.
    """
    values = set(placed.values())
    if len(values) == 1:
        return [f"mov.u32 {register}, {values.pop()};"]
    factors = linear(placed)
    if factors is not None:
        fixed, *steps = factors
        lines = [f"mov.u32 {register}, {fixed % (1 << 32)};"]
        for step, name in zip(steps, ("%cta", "%warp", "%lane"), strict=True):
            if step:
                lines.append(f"mad.lo.u32 {register}, {name}, {step % (1 << 32)}, {register};")
        return lines
    lanes: dict[int, int] = {}
    if values == {0, 1} and all(lanes.setdefault(lane, v) == v for (_, _, lane), v in placed.items()):
        mask = sum(v << lane for lane, v in lanes.items())
        return [f"shr.u32 {register}, {mask}, %lane;", f"and.b32 {register}, {register}, 1;"]
    return None


def linear(placed: Mapping[Position, int]) -> tuple[int, int, int, int] | None:
    """Numbers n, a, b, c with value = n + a * CTA + b * warp + c * lane everywhere, if there are some."""
    (first, start), *others = placed.items()
    steps = [0, 0, 0]
    for axis in (2, 1, 0):
        for where, value in others:
            apart = where[axis] - first[axis]
            if apart and all(where[n] == first[n] for n in range(axis)):
                left = value - start - sum(steps[n] * (where[n] - first[n]) for n in range(axis + 1, 3))
                if left % apart:
                    return None
                steps[axis] = left // apart
                break
    fixed = start - sum(s * f for s, f in zip(steps, first, strict=True))
    if all(v == fixed + sum(s * w for s, w in zip(steps, where, strict=True)) for where, v in placed.items()):
        return fixed, steps[0], steps[1], steps[2]
    return None
