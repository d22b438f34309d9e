"""Folders with very many files: what a walk over them costs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcheck.checking.run.collect import collect_tests
from tests.effort import effort

FEW, MANY = 2_000, 16_000


def seconds(count: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> float:
    """The seconds of the processor for a folder of so many tests, which only the walk over it has."""

    def walk(path: str, **_: object) -> Iterator[tuple[str, list[str], list[str]]]:
        yield path, [], [f"{number}.{end}" for number in range(count) for end in ("litmus", "txt")]

    monkeypatch.setattr(os, "walk", walk)

    def walked() -> None:
        assert len(collect_tests([str(folder)])) == count

    return effort(walked, 0)


@pytest.mark.daily(days=4, least=0)
def test_a_folder_costs_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = seconds(FEW, tmp_path, monkeypatch)
    many = seconds(MANY, tmp_path, monkeypatch)
    assert many < 3 * few * MANY / FEW
