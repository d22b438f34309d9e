"""Copies as runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcheck.semantics import copy_bytes
from mcheck.semantics.copy_bytes import Run


@pytest.mark.parametrize(
    ("size", "src_size", "ignore", "runs"),
    [
        (16, None, False, (Run(0, 0, 16),)),
        (16, 16, False, (Run(0, 0, 16),)),
        (16, 5, False, (Run(0, 0, 5), Run(5, None, 11))),
        (4, 0, False, (Run(0, None, 4),)),
        (8, None, True, (Run(0, None, 8),)),
        (8, 3, True, (Run(0, None, 8),)),
    ],
)
def test_cp_async(size: int, src_size: int | None, ignore: bool, runs: tuple[Run, ...]) -> None:
    assert copy_bytes.cp_async(size, src_size, ignore) == runs


@pytest.mark.parametrize(
    ("size", "mask", "runs"),
    [
        (0, None, ()),
        (1024, None, (Run(0, 0, 1024),)),
        (1024, 0xFFFF, (Run(0, 0, 1024),)),
        (32, 0x00FF, (Run(0, 0, 8), Run(16, 16, 8))),
        (32, 0x8001, (Run(0, 0, 1), Run(15, 15, 2), Run(31, 31, 1))),
        (32, 0, ()),
    ],
)
def test_bulk(size: int, mask: int | None, runs: tuple[Run, ...]) -> None:
    assert copy_bytes.bulk(size, mask) == runs


@given(st.integers(0, 8), st.integers(0, 0xFFFF))
def test_masked_bytes(chunks: int, mask: int) -> None:
    runs = copy_bytes.bulk(16 * chunks, mask)
    assert all(run.src == run.dst for run in runs)
    copied = [k for run in runs for k in range(run.dst, run.dst + run.length)]
    assert copied == [k for k in range(16 * chunks) if mask >> k % 16 & 1]
