"""``mcheck outcomes --graph``."""

from __future__ import annotations

import json
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


def test_lists_what_is_forbidden_and_why(mcheck: Any, litmus: Litmus, tmp_path: Path) -> None:
    path = litmus("MP")
    done = mcheck("outcomes", path, "--forbidden")
    told = "d: P1 R x = 0 -fr→ a: P0 W x = 1 -po→ b: P0 W f = 1 -rf→ c: P1 R f = 1 -po→ d"
    assert done.status == 0, done.err
    assert done.out == f"MP under ptx-9.0: 1 forbidden state\n\nP1:r0=1; P1:r1=0;  forbidden by Causality\n    {told}\n"
    (found,) = json.loads(mcheck("outcomes", path, "--forbidden", "--format", "json").out)["forbidden"]
    assert found["state"] == {"P1:r0": 1, "P1:r1": 0}
    assert (found["forbidden_by"], found["explanation"]) == ("Causality", told)
    assert found["cycle"][0] == "fr from (P1 R x = 0) to (P0 W x = 1)"
    target = tmp_path / "why.txt"
    assert mcheck("outcomes", path, "--forbidden", "-o", target).status == 0
    assert target.read_text() == done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--graph", 1), "needs an output file: mcheck outcomes"),
        (("--graph", 1, "-o", "x.png"), ".graphml"),
        (("--graph", 9, "-o", "x.svg"), "has no outcome 9"),
        (("--graph", 7, "--forbidden", "-o", "x.svg"), "has no forbidden state 7"),
        (("--forbidden", "-o", "x.svg"), "--graph N"),
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
