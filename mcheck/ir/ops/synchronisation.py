"""Fences, barriers and mbarriers."""

from __future__ import annotations

from typing import ClassVar

from mcheck.base.records import dataclass
from mcheck.ir.expr import Expr, Reg
from mcheck.ir.ops.operation import Facets, Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence(Op):
    """``fence``, ``membar`` and, with ``restrict`` ``tensor``, ``tcgen05.fence``; ``restrict`` may also be ``None``,
    ``mbarrier_init``, ``shared::cta`` or ``shared::cluster``.
    """

    facets: ClassVar[Facets] = Facets()

    sem: str  # sc acq_rel acquire release
    scope: str
    restrict: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyFence(Op):
    """``fence.proxy.*``.

    ``kind``: ``alias async tensormap`` and, in the table dialect, ``generic texture surface constant``.
    ``spaces``: the spaces covered by ``async`` (empty: all); of ``global``, ``shared::cta``, ``shared::cluster``.
    ``half``: ``None`` for a bi-directional fence, else ``release`` or ``acquire`` (generic -> ``kind``), with
    ``scope``;
    the tensormap acquire has ``address`` and ``size``. ``restrict``: the space, or the reads of a space, that a half
    covers.
    """

    facets: ClassVar[Facets] = Facets()
    decisive: ClassVar[tuple[str, ...]] = ("address", "size")

    kind: str
    spaces: frozenset[str] = frozenset()
    half: str | None = None
    scope: str | None = None
    restrict: str | None = None
    address: Expr | None = None
    size: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier(Op):
    """``bar``/``barrier.cta``. ``kind``: ``sync arrive red``; ``count`` in threads.

    ``instance`` is the static instance of the table dialect (``bar.cta.*``), else ``None``. In the dialect
    ``barrier`` is the logical id or ``None``, ``count`` the quorum or ``None``.
    For ``red``: ``red_op`` is ``popc``, ``and`` or ``or``, ``dst`` the result, ``src`` the predicate.
    """

    facets: ClassVar[Facets] = Facets(blocks=True, synchronises=True)
    decisive: ClassVar[tuple[str, ...]] = ("barrier", "count")

    kind: str
    barrier: Expr | None
    count: Expr | None = None
    aligned: bool = True
    instance: int | None = None
    red_op: str | None = None
    dst: Reg | None = None
    src: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterBarrier(Op):
    """``barrier.cluster``. ``kind``: ``arrive`` or ``wait``; ``sem``: release/relaxed (arrive), acquire (wait)."""

    facets: ClassVar[Facets] = Facets(blocks=True, synchronises=True)

    kind: str
    sem: str
    aligned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergentAligned(Op):
    """Marks the next instruction, which is ``.aligned``, as one that only some threads of a warp execute: undefined,
    with the ``code`` of the finding and the ``reason``.
    """

    facets: ClassVar[Facets] = Facets()

    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpSync(Op):
    """``bar.warp.sync mask``."""

    facets: ClassVar[Facets] = Facets(blocks=True, synchronises=True)
    decisive: ClassVar[tuple[str, ...]] = ("mask",)

    mask: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Collective(Op):
    """``elect.sync``, ``shfl.sync``, ``vote.sync``, ``match.sync``, ``redux.sync``: the lanes of ``mask`` wait for each
    other, and each gets a value that is made of what all of them bring.

    ``op`` is the name with its mode: ``elect``, ``shfl.idx``, ``vote.ballot``, ``match.any``, ``redux.add`` … ``srcs``
    are what the lane brings (``elect``: nothing) and, of ``shfl``, the operands b and c. ``dsts`` are the value and the
    predicate.
    """

    facets: ClassVar[Facets] = Facets(blocks=True, converges=True)
    decisive: ClassVar[tuple[str, ...]] = ("mask",)

    op: str
    type: str
    dsts: tuple[Reg | None, Reg | None]
    srcs: tuple[Expr, ...]
    mask: Expr


# --- mbarrier ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierInit(Op):
    """``mbarrier.init [address], count``."""

    facets: ClassVar[Facets] = Facets(mbarrier="address")
    decisive: ClassVar[tuple[str, ...]] = ("address", "count")

    address: Expr
    count: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierInval(Op):
    """``mbarrier.inval [address]``."""

    facets: ClassVar[Facets] = Facets(mbarrier="address")
    decisive: ClassVar[tuple[str, ...]] = ("address",)

    address: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierTx(Op):
    """``mbarrier.expect_tx`` and ``mbarrier.complete_tx``: relaxed; ``kind`` is ``expect`` or ``complete``; ``tx`` in
    bytes.
    """

    facets: ClassVar[Facets] = Facets(mbarrier="address", signals=True)
    decisive: ClassVar[tuple[str, ...]] = ("address", "tx")

    kind: str
    address: Expr
    tx: Expr
    scope: str = "cta"
    space: str = "shared::cta"


@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierArrive(Op):
    """``mbarrier.arrive`` and ``arrive_drop`` (``drop``). ``tx`` is the fused expect-tx in bytes, ``None`` if there
    is none.

    ``state`` receives the state before the arrive (``None``: sink or no result).
    """

    facets: ClassVar[Facets] = Facets(mbarrier="address", signals=True)
    decisive: ClassVar[tuple[str, ...]] = ("address", "count", "tx")

    address: Expr
    count: Expr | None = None
    tx: Expr | None = None
    drop: bool = False
    no_complete: bool = False
    state: Reg | None = None
    sem: str = "release"
    scope: str = "cta"
    space: str = "shared::cta"


@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierWait(Op):
    """``mbarrier.test_wait`` and ``try_wait`` (``blocking``). Exactly one of ``state`` and ``parity`` is given."""

    facets: ClassVar[Facets] = Facets(mbarrier="address", observes=True)
    decisive: ClassVar[tuple[str, ...]] = ("address", "parity")

    address: Expr
    dst: Reg | None
    state: Expr | None = None
    parity: Expr | None = None
    blocking: bool = False
    sem: str = "acquire"
    scope: str = "cta"
    space: str = "shared::cta"


@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierPending(Op):
    """``mbarrier.pending_count dst, state``."""

    facets: ClassVar[Facets] = Facets()

    dst: Reg
    state: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class GridWait(Op):
    """``griddepcontrol.wait``: the grids in front are over, and what they did to memory is visible."""

    facets: ClassVar[Facets] = Facets()
