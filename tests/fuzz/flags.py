"""Signalling by a flag in global memory."""

from __future__ import annotations

from random import Random


def set_flag(random: Random) -> tuple[str, ...]:
    """Set the flag."""
    return (f"st.{random.choice(('relaxed', 'release'))}.gpu.u32 [f], 1;",)


def await_flag(random: Random, register: str) -> tuple[str, ...]:
    """Wait for the flag."""
    return (f"await ld.{random.choice(('relaxed', 'acquire'))}.gpu.u32 {register}, [f] == 1;",)
