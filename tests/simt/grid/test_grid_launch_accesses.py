"""The accesses of a launch, against those of its clusters executed one by one; and common bytes of two launches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from mcheck.base.budget import Limit
from mcheck.frontend.ptx.launch import Buffer, Launch
from mcheck.ir.memory import Instance
from mcheck.simt.grid.footprints.footprint import Form
from mcheck.simt.grid.footprints.regions import Extent
from mcheck.simt.grid.footprints.space import Space
from mcheck.simt.grid.launches.launch_accesses import ClassPath, LaunchAccess, LaunchFootprint, follow_launch
from mcheck.simt.grid.launches.launch_overlap import CommonBytes, OverlapFinder
from mcheck.simt.grid.launches.launch_watch import Placement
from mcheck.simt.trace_extraction import extract_traces
from tests.simt.grid.kernels import each, kernel

SEEDS = range(60)
KINDS = {"read": "read", "write": "write", "reduce": "reduce", "update": "reduce"}


def declared(launch: Launch) -> Launch:
    """The launch, its buffers shared with other launches."""

    def change(place: object) -> object:
        return replace(place, declared=True) if isinstance(place, Buffer) else place

    arguments = tuple(
        replace(a, places=tuple((k, change(p)) for k, p in a.places))  # type: ignore[misc]
        for a in launch.arguments
    )
    return replace(launch, arguments=arguments)


def touched(found: LaunchFootprint) -> dict[str, set[tuple[str, int]]]:
    """The bytes of every kind of access, by name of the buffer and offset."""
    out: dict[str, set[tuple[str, int]]] = {"read": set(), "write": set(), "reduce": set()}
    for access in found.accesses:
        for e in access.extents:
            starts: NDArray[np.int64] = e.low + access.path.clusters[:, : len(e.slopes)] @ np.array(e.slopes, np.int64)
            for stride, count in e.steps:
                starts = (starts[:, None] + stride * np.arange(count)).reshape(-1)
            for start in np.unique(starts).tolist():
                out[KINDS[access.form.kind]] |= {(access.memory[1], at) for at in range(start, start + e.length)}
    return out


@pytest.mark.daily
@pytest.mark.parametrize("seed", SEEDS)
def test_all_clusters_together(seed: int) -> None:
    module, launch = kernel(seed)
    found = follow_launch(module, declared(launch), Limit(None))
    assert found.left_out == 0
    instances = next(extract_traces(module, launch)).program.memory.instances
    wanted: dict[str, set[tuple[str, int]]] = {"read": set(), "write": set(), "reduce": set()}
    for accessed, _ in each(module, launch).values():
        for kind, addresses in accessed.items():
            wanted[kind] |= {place(instances, at) for at in addresses}
    if all(access.exact and access.form.sure for access in found.accesses):
        assert touched(found) == wanted
    else:
        assert all(wanted[kind] <= there for kind, there in touched(found).items())


def place(instances: tuple[Instance, ...], address: int) -> tuple[str, int]:
    held = next(i for i in instances if i.base <= address < i.base + i.object.size)
    return held.object.name, address - held.base


@pytest.mark.daily(days=3, least=0)
def test_some_launches_have_several_classes_and_most_are_exact(all_tests: bool) -> None:
    seeds = SEEDS[:40] if all_tests else SEEDS[:24]
    found = [follow_launch(m, declared(launch), Limit(None)) for m, launch in map(kernel, seeds)]
    assert any(len(f.paths) > 1 for f in found)
    assert sum(all(a.exact and a.form.sure for a in f.accesses) for f in found) > len(found) // 2


# --- common bytes ---------------------------------------------------------------------------------------------


def access(low: int, length: int, slope: int, count: int, *steps: tuple[int, int]) -> LaunchAccess:
    """An access by each of ``count`` clusters, ``slope`` bytes after that of the one before it."""
    space = Space((0, 0, 0), (count - 1, 0, 0), (0, 0, 0))
    rows = np.array([(k, 0, 0) for k in range(min(count, 1000))], np.int64)
    path = ClassPath(
        number=0, space=space, clusters=rows, complete=count <= 1000, sure=True, waits=False, start=0, triggers=False
    )
    return LaunchAccess(
        memory=("buffer", "x"), form=Form(buffer=0, kind="write"), span=None, exact=True, path=path,
        extents=(Extent(low, length, steps, (slope,)),), placement=Placement(0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "common"),
    [
        (access(0, 16, 64, 4), access(16, 16, 64, 4), None),
        (access(0, 16, 64, 4), access(192, 4, 0, 1), CommonBytes((192, 196), (3, 0))),
        (access(0, 16, 64, 4), access(200, 100, 0, 1), CommonBytes((200, 208), (3, 0))),
        (access(0, 4, 64, 4, (8, 8)), access(4, 4, 64, 4, (8, 8)), None),
        (access(0, 4, 64, 4, (8, 8)), access(4, 5, 64, 4, (8, 8)), CommonBytes((8, 9), (0, 0))),
        (access(0, 16, 16, 4), access(64, 16, 16, 4), None),
        (access(100, 1, 0, 1), access(0, 200, 0, 1), CommonBytes((100, 101), (0, 0))),
        (access(0, 4, 8, 5000), access(4, 4, 8, 5000), None),  # by divisors
        (access(0, 4, 8, 5000), access(36000, 8, 0, 1), "open"),
        (access(0, 4, 8, 5000), access(800, 8, 0, 1), CommonBytes((800, 804), (100, 0))),
    ],
)
def test_common_bytes(one: LaunchAccess, other: LaunchAccess, common: object) -> None:
    assert OverlapFinder().find(one, other) == common
    back = OverlapFinder().find(other, one)
    if isinstance(common, CommonBytes):
        assert isinstance(back, CommonBytes)
        assert back.bytes == common.bytes
        assert back.rows == common.rows[::-1]
    else:
        assert back == common
