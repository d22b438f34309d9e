"""What is said of the clusters of a grid, against all of them executed one by one."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pytest

from mcheck.base.budget import Limit
from mcheck.checking.modules.grid_coverage import compute_coverage
from mcheck.frontend.ptx.launch import Launch
from mcheck.simt.grid.footprints.footprint import Footprint
from mcheck.simt.grid.footprints.regions import enumerate_beginnings
from mcheck.simt.trace_extraction import extract_traces
from tests.simt.grid.kernels import Bytes, each, kernel

SEEDS = 60


def told(footprint: Footprint, cluster: tuple[int, ...]) -> tuple[Bytes, Bytes]:
    """The bytes that a cluster accesses for sure, and those that it may access."""
    symbols = footprint.space.symbols(cluster)
    sure: Bytes = {"read": set(), "write": set(), "reduce": set()}
    perhaps: Bytes = {"read": set(), "write": set(), "reduce": set()}
    for form in footprint.beginnings:
        for region in footprint.regions(form):
            (extent,) = region.dimensions
            starts = enumerate_beginnings(extent, symbols, 1 << 20)
            assert starts is not None
            found = (starts[:, None] + np.arange(extent.length)).reshape(-1).tolist()
            perhaps[form.kind].update(found)
            if form.sure:
                sure[form.kind].update(found)
    return sure, perhaps


def cta(given: Launch, cluster: tuple[int, ...]) -> str:
    return f"CTA ({', '.join(str(a + b) for a, b in zip(given.first, cluster, strict=True))})"


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(SEEDS))
def test_clusters_of_a_class_access_what_is_said_of_them(seed: int) -> None:
    look(seed)


@cache
def look(seed: int) -> tuple[bool, bool]:
    """Whether a kernel is said to be the same in all clusters, and whether they are apart."""
    read, given = kernel(seed)
    way, *others = extract_traces(read, given, Limit(None))
    if others:  # what is chosen where data decides is not what another cluster chooses
        return False, False
    footprint = way.footprint
    assert footprint is not None
    space = footprint.space
    clusters = each(read, given)
    for cluster, (bytes_, operations) in clusters.items():
        if not space.contains(cluster):
            continue
        if any(form.buffer < 0 for form in footprint.beginnings):
            continue
        sure, perhaps = told(footprint, cluster)
        for kind, accessed in bytes_.items():
            assert sure[kind] <= accessed, (cluster, kind)
            assert accessed <= perhaps[kind], (cluster, kind)
        slopes = {form.slopes for form in footprint.beginnings}  # of several, lanes that meet here part elsewhere
        if all(form.sure for form in footprint.beginnings) and len(slopes) <= 1:
            assert operations == way.operations
    given_answer = compute_coverage([footprint], given, Limit(None))
    covers = given_answer.covers
    for clash in given_answer.clashes:
        first, second = ({c: b for c, (b, _) in clusters.items() if cta(given, c) == s.cta} for s in clash.sides)
        (a,), (b,) = first.values(), second.values()
        base = next(i.base for i in footprint.buffers if i.object.name == clash.object)
        bytes_ = range(base + clash.bytes[0], base + clash.bytes[1])
        assert a[clash.sides[0].kind].issuperset(bytes_)
        assert b[clash.sides[1].kind].issuperset(bytes_)
    if covers.clusters == covers.total:
        assert all(map(space.contains, clusters))
        for (one, (a, _)), (other, (b, _)) in product(clusters.items(), clusters.items()):
            if one != other:
                touched = b["read"] | b["write"] | b["reduce"]
                assert not a["write"] & touched
                assert not a["reduce"] & b["read"]
    alike = all(map(space.contains, clusters))
    return alike, covers.clusters == covers.total


@pytest.mark.daily(days=4, least=0)
def test_grids_of_all_sorts_are_among_the_kernels() -> None:
    found = [look(seed) for seed in range(SEEDS)]
    assert sum(alike for alike, _ in found) > SEEDS // 5
    assert sum(apart for _, apart in found) > SEEDS // 12
    assert sum(not alike for alike, _ in found) > SEEDS // 5
