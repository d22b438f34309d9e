"""``mcheck outcomes --graph``."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Litmus = Callable[..., Path]


def test_writes_a_picture(mcheck: Any, litmus: Litmus, tmp_path: Path) -> None:
    for ending in ("svg", "graphml", "dot"):
        target = tmp_path / f"out.{ending}"
        done = mcheck("outcomes", litmus("MP"), "--graph", 2, "-o", target)
        assert done.status == 0, done.err
        text = target.read_text()
        if ending != "dot":
            ET.fromstring(text)
        assert "P1" in text


def test_writes_why_not(mcheck: Any, litmus: Litmus, tmp_path: Path) -> None:
    target = tmp_path / "why.svg"
    done = mcheck("outcomes", litmus("MP"), "--graph", 1, "--forbidden", "-o", target)
    assert done.status == 0, done.err
    assert "forbidden by Causality" in target.read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--graph", 1), "draws into a file: mcheck outcomes"),
        (("--graph", 1, "-o", "x.png"), ".graphml"),
        (("--graph", 9, "-o", "x.svg"), "has no outcome 9"),
        (("--graph", 7, "--forbidden", "-o", "x.svg"), "has no forbidden state 7"),
        (("--forbidden",), "goes with --graph"),
    ],
)
def test_says_what_is_wrong(
    mcheck: Any,
    litmus: Litmus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[object, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    done = mcheck("outcomes", litmus("MP"), *options)
    assert done.status == 2
    assert message in done.err
    assert not list(tmp_path.glob("x.*"))
