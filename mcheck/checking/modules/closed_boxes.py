"""Boxes of clusters that signal each other alone, or count themselves in a word of their own: the slices of a tile in
split-K.

Conditions about clusters that synchronise are checked for one box. All boxes do the same and keep apart from each
other, which is shown as it is for clusters that do not synchronise (``mcheck.checking.modules.grid_coverage``), with
what waits and draws bring (``mcheck.simt.grid.signals.signalled_boxes``). Which cluster of a box is the last one to
count itself is for each box to choose, so what a box accesses has to be the same whichever it is.
"""

from __future__ import annotations

from math import prod

from mcheck.base.budget import Limit
from mcheck.base.records import replace
from mcheck.checking.modules.grid_coverage import compute_coverage
from mcheck.checking.modules.pairs.executed_alone import within_one_cluster
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.grid.pairs.reduction import MAX_EXECUTED, NotReducible
from mcheck.simt.grid.signals.signalled_boxes import counted_footprints, find_box, signalled_footprints


def find_closed_box(module: Module, launch: Launch, limit: Limit, *, counts: bool) -> Launch | None:
    """The launch with a box of clusters executed together, if those of a box signal each other alone, and all boxes do
    the same and keep apart; with ``counts``, if they count themselves in a word of their box.
    """
    try:
        with within_one_cluster(limit) as within:
            box = find_box(module, launch, within, counts=counts)
        if box is None or prod(box) > MAX_EXECUTED:
            return None
        first = [at // (c * b) * c * b for at, c, b in zip(launch.first, launch.cluster, box, strict=True)]
        boxed = replace(launch, together=box, first=(first[0], first[1], first[2]))
        if counts:
            footprints = [counted_footprints(module, boxed, limit)]
        else:
            with within_one_cluster(limit) as within:
                footprints = [(one,) for one in signalled_footprints(module, boxed, within)]
    except NotReducible:
        return None
    return None if any(compute_coverage(paths, boxed, limit).reasons for paths in footprints) else boxed
