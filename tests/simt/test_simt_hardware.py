"""What kernels leave in memory on a chip (``hardware/kernels.json``), and what is said of them here."""

from __future__ import annotations

import json
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from mcheck.engines.concrete.machine import machine
from mcheck.engines.concrete.schedule import run
from mcheck.frontend import litmus
from mcheck.frontend.ptx import launch_reader, reader
from mcheck.ir.expr import Const, Lanes
from mcheck.semantics.chip_behaviour import SM_90
from mcheck.simt.trace_extraction import extract_traces
from tests.simt.transcribed import sketch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from hardware.kernels import KERNELS, Kernel  # noqa: E402 - the folder is no package of the distribution

ROW = 16
"""The bytes of a row that ``stmatrix`` stores."""


@cache
def observed() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "hardware" / "kernels.json").read_text(encoding="utf-8"))
    return found


def left(kernel: Kernel, name: str) -> bytes:
    """What the chip left in a buffer."""
    entry = observed()["left"][kernel.name]
    assert entry["text"] == sha256(kernel.text.encode()).hexdigest(), "the kernel is not the one that was run"
    return bytes.fromhex(entry[name])


def executed(kernel: Kernel, text: str) -> dict[str, bytes]:
    """What ``mcheck exec`` leaves in ``b`` and ``out``, by the transcription of a module."""
    m = machine(litmus.parse(sketch(text, kernel.launch), kernel.name), how=SM_90)
    data = kernel.data()
    for name, contents in {**data, "tm_data": data[kernel.on]}.items():
        place = m.program.memory.instance_of(name)
        assert place is not None
        m.memory.load_object(place, contents)
    run(m)
    assert not m.findings
    assert all(r.ended for r in m.runners)
    out = {}
    for name, of in (("b", "tm_data" if kernel.on == "b" else "b"), ("out", "out")):
        place = m.program.memory.instance_of(of)
        assert place is not None
        out[name] = m.memory.read(place.base, place.object.size)[0]
    return out


@pytest.mark.daily
@pytest.mark.parametrize("kernel", [k for k in KERNELS if not k.touched], ids=lambda k: k.name)
def test_the_bytes_are_those_of_the_chip(kernel: Kernel) -> None:
    found = executed(kernel, kernel.text)
    assert {name: data.hex() for name, data in found.items()} == {
        name: left(kernel, name).hex() for name in ("b", "out")
    }


@pytest.mark.daily
@pytest.mark.parametrize("kernel", [k for k in KERNELS if k.touched], ids=lambda k: k.name)
def test_the_bytes_that_change_are_those_that_are_followed(kernel: Kernel) -> None:
    """The matrices hold no byte that was there before."""
    lines = [line for line in kernel.text.splitlines() if "stmatrix" not in line]
    before, after = executed(kernel, "\n".join(lines))["out"], left(kernel, "out")
    changed = {k for k, (a, b) in enumerate(zip(before, after, strict=True)) if a != b}
    module = reader.parse_module(kernel.text)
    way = next(extract_traces(module, launch_reader.build_launch(module, launch_reader.from_object(kernel.launch))))
    tile = way.program.memory.instance_of("tile", way.program.threads[0].place.cta)
    assert tile is not None
    followed: set[int] = set()
    for thread in way.program.threads:
        for op in thread.code:
            if op.text.startswith("stmatrix"):
                address = op.address  # type: ignore[attr-defined]
                assert isinstance(address, Const | Lanes)
                at = address.value if isinstance(address, Const) else address.values[thread.place.lane]
                followed.update(range(at - tile.base, at - tile.base + ROW))
    assert followed == changed


def test_where_it_ran() -> None:
    assert "H200" in observed()["device"]
    assert set(observed()["left"]) == {k.name for k in KERNELS}
