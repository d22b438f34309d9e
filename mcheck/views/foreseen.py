"""What the executions of a program may show, by the kinds of its operations: more than they do is no harm.

The tape of a model is compiled for what has been shown (``mcheck.views.compile``); what is foreseen need not be
compiled again when it shows up.
"""

from __future__ import annotations

from mcheck.graph.tags import Tag
from mcheck.program import ops
from mcheck.program.program import Program
from mcheck.views.kinds import Shown

ALWAYS = frozenset(
    (Tag.M, Tag.R, Tag.W, Tag.WEAK, Tag.GEN, Tag.GLOBAL, Tag.SHARED, Tag.F, Tag.B, Tag.BARRIVE, Tag.BWAIT)
)
ALWAYS_EDGES = frozenset(("po", "barrier", "ctrl"))
STRONG = frozenset((Tag.RLX, Tag.ACQ, Tag.REL, Tag.ACQ_REL))
COPY = frozenset((Tag.ASYNC, Tag.ISSUE, Tag.COMPLETE, Tag.ASYNCSIGNAL, Tag.GROUPWAIT, Tag.PROXYFENCE, Tag.BOTH))
BY_KIND: tuple[tuple[type[ops.Op], frozenset[str], frozenset[str]], ...] = (
    (ops.MbarrierInit,
     frozenset((Tag.MBAR, Tag.INIT, Tag.ARRIVE, Tag.WAIT, Tag.EXPECT, Tag.RLX, Tag.ACQ, Tag.REL)),
     frozenset(("phase", "phase-order", "phase-fr"))),
    (ops.BulkCopy, COPY, frozenset(("issue", "complete"))),
    (ops.TensorCopy, COPY | {Tag.TMAP}, frozenset(("issue", "complete"))),
    (ops.CpAsync, frozenset((Tag.CPASYNC, Tag.ISSUE, Tag.GROUPWAIT)), frozenset(("issue", "complete"))),
    (ops.Wgmma, frozenset((Tag.ASYNC, Tag.ISSUE, Tag.WGMMA, Tag.WGFENCE, Tag.GROUPWAIT, Tag.PROXYFENCE, Tag.BOTH)),
     frozenset(("issue", "complete"))),
    (ops.TensorCore, COPY | {Tag.PIPE}, frozenset(("issue", "complete"))),
    (ops.TensorMove, COPY, frozenset(("issue", "complete"))),
    (ops.TensorCommit, COPY, frozenset(("issue", "complete"))),
    (ops.Atomic, STRONG | {Tag.RMW, Tag.ATOM, Tag.RED, "IW"}, frozenset(("rf", "co", "rmw", "data", "addr"))),
    (ops.ClusterBarrier, frozenset((Tag.CLUSTERBAR, Tag.START, Tag.EXIT, Tag.REL, Tag.ACQ, Tag.RLX)), frozenset()),
    (ops.WarpSync, frozenset((Tag.EXIT,)), frozenset(("exited",))),
    (ops.Barrier, frozenset((Tag.EXIT,)), frozenset(("exited", "rounds"))),
    (ops.MbarrierInval, frozenset((Tag.INVAL,)), frozenset()),
    (ops.MbarrierTx, frozenset((Tag.SIGNAL,)), frozenset()),
    (ops.CpAsyncArrive, frozenset((Tag.INCREMENT, Tag.COMPLETE, Tag.ASYNCSIGNAL)), frozenset(("issue", "complete"))),
    (ops.AsyncStore,
     STRONG | {Tag.ISSUE, Tag.COMPLETE, Tag.ASYNCSIGNAL, Tag.ASYNCREDUCTION, Tag.RED, Tag.RMW},
     frozenset(("issue", "complete", "rmw", "data"))),
    (ops.TensormapReplace, frozenset((Tag.TMAP,)), frozenset(("data",))),
    (ops.TensormapCopyFence, frozenset((Tag.TMAP, Tag.PROXYFENCE, Tag.PRELEASE)), frozenset(("data",))),
    (ops.ProxyFence, frozenset((Tag.PROXYFENCE, Tag.ASYNC, Tag.BOTH)), frozenset()),
    (ops.Fence, STRONG, frozenset()),
)  # fmt: skip
"""Operations that bring tags, and base relations with edges, along."""


def foreseen(program: Program) -> Shown:
    """A superset of what most programs with these kinds of operations show."""
    tags: set[str] = set(ALWAYS)
    edges: set[str] = set(ALWAYS_EDGES)
    kinds = {type(ops.performed(op)) for code in {id(t.code): t.code for t in program.threads}.values() for op in code}
    for kind, brought, relations in BY_KIND:
        if kind in kinds:
            tags |= brought
            edges |= relations
    if program.clustered:
        tags |= {Tag.START, Tag.EXIT}
    code = [ops.performed(op) for c in {id(t.code): t.code for t in program.threads}.values() for op in c]
    for op in code:
        if isinstance(op, ops.ProxyFence):
            tags |= {Tag.ALIAS} if op.kind == "alias" else {Tag.TMAP} if op.kind == "tensormap" else set()
            tags |= {Tag.PRELEASE, Tag.PACQUIRE} if op.half is not None else set()
        elif isinstance(op, ops.Fence):
            tags |= {Tag.SC} if op.sem == "sc" else set()
            edges |= {"sync_fence"} if op.sem == "sc" else set()
            restricted: dict[str | None, set[str]] = {None: set(), "mbarrier_init": {Tag.MBARRIER_INIT_FENCE}}
            tags |= restricted.get(op.restrict, {Tag.RESTRICTED})
        elif getattr(op, "reduce", None) is not None:
            tags |= {Tag.ASYNCREDUCTION, Tag.RED, Tag.RMW, Tag.RLX}
            edges |= {"rmw", "data"}
    strong = (op for t in program.threads for op in map(ops.performed, t.code) if isinstance(op, ops.Load | ops.Store))
    if any(op.sem != "weak" for op in strong):
        tags |= STRONG | {"IW"}
        edges |= {"rf", "co"}
    return Shown(frozenset(tags), frozenset(edges), frozenset())
