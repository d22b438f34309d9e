"""What the answer about one cluster leaves open of the grid, and whether following several clusters may tell more."""

from __future__ import annotations

from math import prod

from mcheck.answers.result import Answer
from mcheck.base.reasons import Cause, Reason
from mcheck.base.records import replace
from mcheck.base.verdicts import Verdict
from mcheck.frontend.ptx.launch import Launch
from mcheck.frontend.ptx.module import Module
from mcheck.simt.grid.pairs.reduction import cancels_clusters

OPEN = "clusters outside of this group may take part in what it does"
_LEFT_TO_OTHERS = frozenset((Cause.CLUSTERS, Cause.OTHER_CLUSTERS, Cause.GAP, Cause.BRANCHES, Cause.NOT_FOLLOWED))
"""Why an answer may be open that other clusters can settle."""


def needs_group(module: Module, launch: Launch, given: Answer) -> bool:
    """Whether more is known of the launch if several clusters are followed together."""
    if prod(launch.cluster_counts) == 1 or is_decided(given) or given.cut:
        return False
    return {reason.cause for reason in given.reasons} <= _LEFT_TO_OTHERS and not cancels_clusters(module)


def is_decided(given: Answer) -> bool:
    """Whether an answer is one about all of its launch."""
    return given.verdict in (Verdict.PROVED, Verdict.FINDING)


def with_reason(given: Answer, why: Reason) -> Answer:
    """The answer with one more reason why it is not about all clusters."""
    about = [r for r in given.reasons if r.cause is Cause.CLUSTERS and r.because] or given.reasons[-1:]
    reasons = (replace(r, because=(*r.because, why)) if r in about else r for r in given.reasons)
    return replace(given, reasons=tuple(reasons), cut=given.cut or why.cut)
