"""A flag in global memory by which the threads of programs without a plan let each other go on."""

from __future__ import annotations

from random import Random


def raised(random: Random) -> tuple[str, ...]:
    """Sets the flag."""
    return (f"st.{random.choice(('relaxed', 'release'))}.gpu.u32 [f], 1;",)


def awaited(random: Random, register: str) -> tuple[str, ...]:
    """Waits for it."""
    return (f"await ld.{random.choice(('relaxed', 'acquire'))}.gpu.u32 {register}, [f] == 1;",)
