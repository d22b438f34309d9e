"""Arithmetic that takes and leaves subnormal numbers as zeros of their sign, done by the processor itself.

``cp.reduce.async.bulk.add.f32`` flushes subnormals (PTX ISA 9.7.9.25.4.2); x86 processors do where two bits of their
control register say so, which C keeps in the floating-point environment (``fenv.h``).
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from mcheck.base.records import dataclass

Environment = ctypes.c_char * 32
"""A floating-point environment on x86-64; the control register is its last word (System V ABI)."""
AT = 28
ZEROS = 0x8040
"""Results that are subnormal become zero (flush to zero), and so do operands (denormals are zeros)."""


@dataclass(frozen=True, slots=True)
class _Processor:
    """The C library, and an environment in which the processor flushes."""

    library: ctypes.CDLL
    zeros: ctypes.Array[ctypes.c_char]


@contextmanager
def flushing() -> Iterator[bool]:
    """Has this thread flush subnormal f32 and f64 numbers meanwhile; false where the processor cannot be told to."""
    processor = _processor()
    if processor is None:
        yield False
        return
    before = Environment()
    processor.library.fegetenv(before)
    processor.library.fesetenv(processor.zeros)
    try:
        yield True
    finally:
        processor.library.fesetenv(before)


@cache
def _processor() -> _Processor | None:
    """Nothing if the environment does not look as said above: which numbers that must be flushed tell."""
    import numpy as np

    if platform.machine() != "x86_64" or sys.platform != "linux":
        return None
    small, least = np.full(64, 1e-40, np.float32), np.full(64, 2.0**-126, np.float32)
    try:
        library = ctypes.CDLL("libm.so.6")
        before = Environment()
        library.fegetenv(before)
        register = int.from_bytes(before.raw[AT:], "little") | ZEROS
        zeros = Environment.from_buffer_copy(before.raw[:AT] + register.to_bytes(4, "little"))
        library.fesetenv(zeros)
    except (OSError, AttributeError):  # a system without glibc
        return None
    flushed = not (small + small).any() and not (least * np.float32(1.5) - least).any()
    library.fesetenv(before)
    return _Processor(library, zeros) if flushed and (small + small).all() else None
