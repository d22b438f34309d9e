"""Tags and base relations that the executions of a program may show, by the kinds of its operations.

The tape of a model is compiled for what has been shown (``mcheck.engines.protocol.incremental.compilation``); what is
foreseen here need not be compiled again when it occurs. A superset is harmless.
"""

from __future__ import annotations

from mcheck.cat.tags import Tag
from mcheck.engines.protocol.incremental.kinds import Shown
from mcheck.events.relations import WIDTHS
from mcheck.ir import ops
from mcheck.ir.program import Program

STRONG = frozenset((Tag.RLX, Tag.ACQ, Tag.REL, Tag.ACQ_REL))
COPY = frozenset((Tag.ASYNC, Tag.ISSUE, Tag.COMPLETE, Tag.ASYNCSIGNAL, Tag.GROUPWAIT, Tag.PROXYFENCE, Tag.BOTH))
COMMON_TAGS = (
    frozenset((Tag.M, Tag.R, Tag.W, Tag.WEAK, Tag.GEN, Tag.GLOBAL, Tag.SHARED, Tag.F, Tag.B, Tag.BARRIVE, Tag.BWAIT))
    | frozenset((Tag.MBAR, Tag.INIT, Tag.ARRIVE, Tag.WAIT, Tag.TRYWAIT, Tag.EXPECT, Tag.MBARRIER_INIT_FENCE))
    | frozenset((Tag.CLUSTERBAR, Tag.START, Tag.EXIT, "STRONG", *WIDTHS))
    | STRONG
    | COPY
)
"""What most kernels have: that it is foreseen of all means that few functions are compiled for many programs."""
COMMON_EDGES = frozenset(
    ("po", "barrier", "ctrl", "phase", "phase-order", "phase-fr", "issue", "complete", "exited", "rounds")
)
WORDS = frozenset((Tag.RMW, Tag.ATOM, Tag.RED, "IW"))
WORD_EDGES = frozenset(("rf", "co", "rmw", "data", "addr"))
"""What strong accesses have, and their words."""
BY_KIND: tuple[tuple[type[ops.Op], frozenset[str], frozenset[str]], ...] = (
    (ops.TensorCopy, frozenset((Tag.TMAP,)), frozenset()),
    (ops.CpAsync, frozenset((Tag.CPASYNC,)), frozenset()),
    (ops.Wgmma, frozenset((Tag.WGMMA, Tag.WGFENCE)), frozenset()),
    (ops.TensorCore, frozenset((Tag.PIPE,)), frozenset()),
    (ops.TensorCommit, frozenset((Tag.COMMIT,)), frozenset()),
    (ops.Atomic, WORDS, WORD_EDGES),
    (ops.MbarrierInval, frozenset((Tag.INVAL,)), frozenset()),
    (ops.MbarrierTx, frozenset((Tag.SIGNAL,)), frozenset()),
    (ops.CpAsyncArrive, frozenset((Tag.INCREMENT,)), frozenset()),
    (ops.AsyncStore, frozenset((Tag.ASYNCREDUCTION, Tag.RED, Tag.RMW)), frozenset(("rmw", "data"))),
    (ops.TensormapReplace, frozenset((Tag.TMAP,)), frozenset(("data",))),
    (ops.TensormapCopyFence, frozenset((Tag.TMAP, Tag.PRELEASE)), frozenset(("data",))),
)  # fmt: skip
"""Operations that bring tags, and base relations with edges, along."""


def foresee_kinds(program: Program) -> Shown:
    """Return a superset of what most programs with these kinds of operations show."""
    tags: set[str] = set(COMMON_TAGS)
    edges: set[str] = set(COMMON_EDGES)
    code = [ops.performed_operation(op) for op in program.operations]
    kinds = set(map(type, code))
    for kind, brought, relations in BY_KIND:
        if kind in kinds:
            tags |= brought
            edges |= relations
    for op in code:
        if isinstance(op, ops.ProxyFence):
            tags |= {Tag.ALIAS} if op.kind == "alias" else {Tag.TMAP} if op.kind == "tensormap" else set()
            tags |= {Tag.PRELEASE, Tag.PACQUIRE, Tag.READHALF} if op.half is not None else set()
        elif isinstance(op, ops.Fence):
            tags |= {Tag.SC} if op.sem == "sc" else set()
            edges |= {"sync_fence"} if op.sem == "sc" else set()
            tags |= {Tag.RESTRICTED} if op.restrict not in (None, "mbarrier_init") else set()
        elif isinstance(op, ops.WaitGroup):
            tags |= {Tag.PROXYWAIT} if op.restrict else set()
        elif isinstance(op, ops.ScalarAccess):
            tags |= WORDS if op.sem != "weak" else set()
            edges |= WORD_EDGES if op.sem != "weak" else set()
        elif getattr(op, "reduce", None) is not None:
            tags |= {Tag.ASYNCREDUCTION, Tag.RED, Tag.RMW, Tag.RLX}
            edges |= {"rmw", "data"}
    return Shown(frozenset(tags), frozenset(edges), frozenset())
