"""The lanes of the executed clusters and their registers, each register one array over all lanes.

Lane k is thread ``k % width`` of CTA ``k // width``, where ``width`` is the CTA's size rounded up to whole warps; lanes
beyond the block do not exist. The lanes of warp w are ``32 w`` to ``32 w + 31``. CTAs are numbered cluster by cluster.
"""

from __future__ import annotations

from dataclasses import field
from math import prod

import numpy as np
from numpy.typing import NDArray

from mcheck.base.records import dataclass
from mcheck.frontend.ptx.lane_arithmetic import Word
from mcheck.frontend.ptx.launch import Extent, Launch
from mcheck.frontend.ptx.taint import UNKNOWN_NAMELESS
from mcheck.ir.memory import SHARED_BASE, SHARED_WINDOW, Cta

WARP = 32
Mask = NDArray[np.bool_]
Quality = NDArray[np.uint8]


def executed_ctas(launch: Launch) -> tuple[Cta, ...]:
    """The CTAs of the executed clusters, cluster by cluster, by rank."""
    size = prod(launch.cluster)
    gpus = [one.gpu for one in launch.concurrent for _ in one.executed_clusters]
    return tuple(
        Cta(number=number * size + rank, gpu=gpu, cluster=number, rank=rank)
        for number, gpu in enumerate(gpus)
        for rank in range(size)
    )


def cta_names(launch: Launch) -> tuple[str, ...]:
    """The names of the executed CTAs in their grids, by number, and their GPUs if there are several; that of a single
    one is empty.
    """
    found = []
    for one in launch.concurrent:
        gpu = f"gpu{one.gpu}." if launch.beside else ""
        number = len(one.executed_clusters) * prod(one.cluster)
        if one.group is not None or len(one.executed_clusters) > 1:
            found += [f"{gpu}cta({', '.join(map(str, at))})." for at in _cta_coordinates(one)]
        else:
            found += [f"{gpu}cta{rank}." if number > 1 else gpu for rank in range(number)]
    return tuple(found)


def _cta_coordinates(launch: Launch) -> tuple[Extent, ...]:
    """The coordinates in the grid of the executed CTAs, by number."""
    a, b, c = launch.cluster
    ranks = [(i, j, k) for k in range(c) for j in range(b) for i in range(a)]
    return tuple((a * x + i, b * y + j, c * z + k) for x, y, z in launch.executed_clusters for i, j, k in ranks)


def leader_lanes(present: Mask, *, last: bool) -> NDArray[np.int64]:
    """By warp, the lowest lane that is present, or the highest; 0 or 31 where none is."""
    found: NDArray[np.int64] = WARP - 1 - present[:, ::-1].argmax(axis=1) if last else present.argmax(axis=1)
    return found


@dataclass(slots=True)
class Lanes:
    """The register file. ``values`` and ``quality`` have a row per register; ``special`` the predefined registers that
    are known.
    """

    launch: Launch
    rows: int
    count: int = field(init=False)
    width: int = field(init=False)
    cluster_size: int = field(init=False)
    """The CTAs of a cluster, of all launches alike."""
    launch_number: NDArray[np.int64] = field(init=False)
    """Which of the launches that are executed together a lane belongs to."""
    exists: Mask = field(init=False)
    cta: NDArray[np.int64] = field(init=False)
    cluster: NDArray[np.int64] = field(init=False)
    values: Word = field(init=False)
    quality: Quality = field(init=False)
    special: dict[str, Word] = field(init=False)

    def __post_init__(self) -> None:
        launches = self.launch.concurrent
        self.width = self.launch.width
        self.cluster_size = prod(self.launch.cluster)
        counts = [len(one.executed_clusters) * self.cluster_size * self.width for one in launches]
        self.count = sum(counts)
        self.launch_number = np.repeat(np.arange(len(launches)), counts)
        index = np.arange(self.count)
        inside = index % self.width
        self.cta = index // self.width
        self.cluster = self.cta // self.cluster_size
        self.exists = inside < np.array([prod(one.block) for one in launches])[self.launch_number]
        self.values = np.zeros((self.rows, self.count), np.uint64)
        self.quality = np.full((self.rows, self.count), UNKNOWN_NAMELESS, np.uint8)
        parts = [self._special(one, inside[self.launch_number == k]) for k, one in enumerate(launches)]
        self.special = {k: np.concatenate([part[k] for part in parts]).astype(np.uint64) for k in parts[0]}

    def _special(self, launch: Launch, inside: NDArray[np.int64]) -> dict[str, NDArray[np.int64]]:
        """The predefined registers of the lanes of one launch."""
        out = {}
        block, cluster, grid = launch.block, launch.cluster, launch.grid
        number = np.arange(len(inside)) // self.width
        rank = number % self.cluster_size
        place = (rank % cluster[0], rank // cluster[0] % cluster[1], rank // (cluster[0] * cluster[1]))
        clusters = np.array(launch.executed_clusters)[number // self.cluster_size]
        thread = (inside % block[0], inside // block[0] % block[1], inside // (block[0] * block[1]))
        one = np.ones_like(inside)
        for k, axis in enumerate("xyz"):
            out[f"tid.{axis}"] = thread[k]
            out[f"ntid.{axis}"] = one * block[k]
            out[f"ctaid.{axis}"] = clusters[:, k] * cluster[k] + place[k]
            out[f"nctaid.{axis}"] = one * grid[k]
            out[f"cluster_ctaid.{axis}"] = place[k]
            out[f"cluster_nctaid.{axis}"] = one * cluster[k]
            out[f"clusterid.{axis}"] = clusters[:, k]
            out[f"nclusterid.{axis}"] = one * (grid[k] // cluster[k])
        lane = inside % WARP
        out |= {
            "laneid": lane,
            "warpid": inside // WARP,
            "nwarpid": one * (launch.width // WARP),
            "cluster_ctarank": rank,
            "cluster_nctarank": one * self.cluster_size,
            "is_explicit_cluster": one * int(self.cluster_size > 1),
            "lanemask_eq": 1 << lane,
            "lanemask_lt": (1 << lane) - 1,
            "lanemask_le": (2 << lane) - 1,
            "lanemask_ge": 0xFFFFFFFF & ~((1 << lane) - 1),
            "lanemask_gt": 0xFFFFFFFF & ~((2 << lane) - 1),
            "dynamic_smem_size": one * launch.shared,
        }
        return out

    def in_rank(self, address: int, rank: int) -> int:
        """The address in the CTA of this rank that corresponds to one in shared memory of the same cluster."""
        number, offset = divmod(address - SHARED_BASE, SHARED_WINDOW)
        return SHARED_BASE + (number // self.cluster_size * self.cluster_size + rank) * SHARED_WINDOW + offset
