"""Folders with very many files: what a walk over them costs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcheck.run.collect import collect

FEW, MANY = 2_000, 16_000


def seconds(count: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """The seconds of the processor for a folder of so many tests, which only the walk over it has."""

    def walk(path: str, **_: object) -> Iterator[tuple[str, list[str], list[str]]]:
        yield path, [], [f"{number}.{end}" for number in range(count) for end in ("litmus", "txt")]

    monkeypatch.setattr(os, "walk", walk)
    started = time.process_time()
    assert len(collect([str(folder)])) == count
    return time.process_time() - started


def test_a_folder_costs_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = min(seconds(FEW, tmp_path, monkeypatch) for _ in range(3))
    many = seconds(MANY, tmp_path, monkeypatch)
    assert many < 3 * few * MANY / FEW
