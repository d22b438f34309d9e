"""Operations: what instructions do, independent of their spelling; the engines interpret them.

``mcheck.isa`` lowers a legal instruction to exactly one ``Op``. Operand fields are ``Expr``; in the
code of a thread (``Thread.code``) they hold only ``Const``, ``Reg``, ``Unary`` and ``Binary``.
Addresses are integers of the flat map of ``mcheck.ir.memory``, whatever the state space.
Sizes are bytes. ``None`` means that the operand was not given.

``scope`` is ``cta``, ``cluster``, ``gpu`` or ``sys``; ``proxy`` is ``generic``, ``async``, ``tensormap``,
``texture``, ``surface`` or ``constant``; ``space`` is ``generic``, ``global``, ``shared::cta``,
``shared::cluster``, ``const``, ``param`` or ``local``. ``type`` is a PTX type without its dot (``u32``, ``b64``,
``pred``).

Each class declares its ``facets``: what its operations may do.
"""

from mcheck.ir.ops.asynchronous import (
    AsyncStore,
    BulkCopy,
    Commit,
    CpAsync,
    CpAsyncArrive,
    Prefetch,
    TensorCommit,
    TensorCopy,
    TensorCore,
    TensormapCopyFence,
    TensormapReplace,
    TensorMove,
    WaitGroup,
    Wgmma,
    WgmmaFence,
)
from mcheck.ir.ops.local import (
    Alu,
    AssumedValue,
    Await,
    Branch,
    Exit,
    Label,
    Trap,
    UnknownContinuation,
    performed_operation,
)
from mcheck.ir.ops.memory import (
    Atomic,
    Fill,
    Load,
    ScalarAccess,
    ScalarRead,
    ScalarWrite,
    Store,
)
from mcheck.ir.ops.operation import (
    Facets,
    Guard,
    Op,
    mbarrier_of,
)
from mcheck.ir.ops.synchronisation import (
    Barrier,
    ClusterBarrier,
    Collective,
    DivergentAligned,
    Fence,
    GridWait,
    MbarrierArrive,
    MbarrierInit,
    MbarrierInval,
    MbarrierPending,
    MbarrierTx,
    MbarrierWait,
    ProxyFence,
    WarpSync,
)

__all__ = [
    "Alu",
    "AssumedValue",
    "AsyncStore",
    "Atomic",
    "Await",
    "Barrier",
    "Branch",
    "BulkCopy",
    "ClusterBarrier",
    "Collective",
    "Commit",
    "CpAsync",
    "CpAsyncArrive",
    "DivergentAligned",
    "Exit",
    "Facets",
    "Fence",
    "Fill",
    "GridWait",
    "Guard",
    "Label",
    "Load",
    "MbarrierArrive",
    "MbarrierInit",
    "MbarrierInval",
    "MbarrierPending",
    "MbarrierTx",
    "MbarrierWait",
    "Op",
    "Prefetch",
    "ProxyFence",
    "ScalarAccess",
    "ScalarRead",
    "ScalarWrite",
    "Store",
    "TensorCommit",
    "TensorCopy",
    "TensorCore",
    "TensorMove",
    "TensormapCopyFence",
    "TensormapReplace",
    "Trap",
    "UnknownContinuation",
    "WaitGroup",
    "WarpSync",
    "Wgmma",
    "WgmmaFence",
    "mbarrier_of",
    "performed_operation",
]
