"""The execution of clusters that learn nothing from others but what the watch on them hands out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mcheck.base.budget import Limit
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.execution.cluster import Cluster
from mcheck.simt.grid.pairs.reduction import NotReducible
from mcheck.simt.trace_extraction import NOTHING_SHOWN, PathRules, Runner, Watcher, follow_paths

W = TypeVar("W", bound=Watcher)
LEARNED = "control depends on values that other threads write"


def follow_only_path(
    module: Module, launch: Launch, limit: Limit, make_watch: Callable[[], W], rules: PathRules = NOTHING_SHOWN
) -> tuple[Runner, Cluster, W]:
    """The only path of the clusters that a launch executes. Raises ``NotReducible`` if there are several, or control
    depends on what the watch does not hand out; which words they may read is for the caller to see. By the ``rules``
    that count loops as waits the watch has to know of these.
    """
    ways = list(follow_paths(module, launch, limit, make_watch, rules=rules))
    if len(ways) != 1:
        raise NotReducible("control depends on data, or on the order of threads")
    _, executed, _ = ways[0]
    recorded = executed.recorded
    for gap in recorded.gaps.values():
        raise NotReducible(gap.reason, gap.span)
    for span in executed.chosen_spans.values():
        raise NotReducible("control depends on data", span)
    free = recorded.has_unbound_values or recorded.decisive_atomics & recorded.unknown_atomics or recorded.swapped
    if free or recorded.early_accesses or not recorded.order_is_possible:
        raise NotReducible(LEARNED)
    return ways[0]
