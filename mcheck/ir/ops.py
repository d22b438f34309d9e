"""Operations: what instructions do, independent of their spelling; the engines interpret them.

``mcheck.isa`` lowers a legal instruction to exactly one ``Op``. Operand fields are ``Expr``; in the
code of a thread (``Thread.code``) they hold only ``Const``, ``Reg``, ``Unary`` and ``Binary``.
Addresses are integers of the flat map of ``mcheck.ir.memory``, whatever the state space.
Sizes are bytes. ``None`` means that the operand was not given.

``scope`` is ``cta``, ``cluster``, ``gpu`` or ``sys``; ``proxy`` is ``generic``, ``async``, ``tensormap``,
``texture``, ``surface`` or ``constant``; ``space`` is ``generic``, ``global``, ``shared::cta``,
``shared::cluster``, ``const``, ``param`` or ``local``. ``type`` is a PTX type without its dot (``u32``, ``b64``,
``pred``).
"""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from mcheck.base.errors import Span
from mcheck.base.records import dataclass
from mcheck.ir.expr import Expr, Reg


@dataclass(frozen=True, slots=True)
class Guard:
    """The predicate of an instruction, ``@p`` or ``@!p``."""

    reg: Reg
    negated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Op:
    """Base class of operations: source location, text, guard, section of the PTX ISA."""

    decisive: ClassVar[tuple[str, ...]] = ()
    """The fields whose values must be known before the operation can be executed; others are only passed on."""

    span: Span | None = field(default=None, compare=False)
    text: str = field(default="", compare=False)
    guard: Guard | None = None
    section: str = field(default="", compare=False)


# --- local computation and control flow -------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Alu(Op):
    """``dsts := op.type(srcs)``; see ``mcheck.ir.alu`` for the operations.

    ``op`` is the PTX name with the modifiers that change the result: ``mov``, ``add``, ``sub``, ``mul.lo``,
    ``mul.hi``, ``mul.wide``, ``mad.lo``, ``div``, ``rem``, ``min``, ``max``, ``and``, ``or``, ``xor``, ``not``,
    ``neg``,
    ``shl``, ``shr``, ``setp.eq`` …, ``selp``, ``cvt`` (``src_type`` holds the source's type), ``cvta``, ``mapa``,
    ``activemask``, ``nop``; ``pack`` and ``unpack`` are ``mov`` from and to a vector.
    """

    op: str
    type: str
    dsts: tuple[Reg | None, ...]
    srcs: tuple[Expr, ...]
    src_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Label(Op):
    """A branch target; no effect."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch(Op):
    """A branch to ``target`` (a label's name) if ``condition`` is not zero, unconditional if it is ``None``."""

    target: str
    condition: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Exit(Op):
    """The end of the thread."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownContinuation(Op):
    """From here on the behaviour of the thread is not known, for a ``reason``; if this is reached, the answer is
    ``unknown``.
    """

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AssumedValue(Op):
    """The code after it assumes that the load or atomic before it has left ``value``, of ``size`` bytes, in ``reg``.

    With another value the thread takes a path that is not in the program. If that is possible, the answer is
    ``bounded``, unless ``branch`` names this point among those of the thread: then the answer tells the other values.
    """

    reg: Reg
    value: int
    size: int
    branch: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Await(Op):
    """Blocks until ``inner`` returns a true predicate, or until the comparison of the loaded value holds.

    For a wait on an mbarrier ``inner`` is a ``MbarrierWait`` whose ``dst`` is ``None`` and ``compare`` is ``None``;
    for a load or an atomic ``compare`` is (operator, right-hand side) on the first destination register.

    ``followed``: the thread does not wait, but the code after it assumes that this holds. If it does not, the thread
    takes a path that is not in the program: if that is possible, the answer is ``bounded``.
    """

    inner: Op
    compare: tuple[str, Expr] | None = None
    followed: bool = False


# --- generic (and texture, surface, constant) memory operations -----------------------------------


def performed_operation(op: Op) -> Op:
    """The operation that is executed: the inner one of an ``await``, else the operation itself."""
    return op.inner if isinstance(op, Await) else op


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(Op):
    """``ld``: ``len(dsts)`` scalars of ``type`` from consecutive addresses (a vector is a set of scalar reads)."""

    decisive: ClassVar[tuple[str, ...]] = ("address",)

    dsts: tuple[Reg | None, ...]
    address: Expr
    type: str
    sem: str = "weak"  # weak relaxed acquire (volatile and mmio: relaxed, scope sys)
    scope: str | None = None
    space: str = "generic"
    proxy: str = "generic"
    volatile: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Store(Op):
    """``st``: ``len(srcs)`` scalars of ``type`` to consecutive addresses."""

    decisive: ClassVar[tuple[str, ...]] = ("address",)

    address: Expr
    srcs: tuple[Expr, ...]
    type: str
    sem: str = "weak"  # weak relaxed release
    scope: str | None = None
    space: str = "generic"
    proxy: str = "generic"
    volatile: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill(Op):
    """``st.bulk``: ``size`` bytes of shared memory become zero, by a weak write."""

    decisive: ClassVar[tuple[str, ...]] = ("address", "size")

    address: Expr
    size: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Atomic(Op):
    """``atom`` and ``red``: one read-modify-write. ``srcs`` is (operand,) or, for ``cas``, (expected, new).

    ``op`` is ``add sub mul div and or xor min max inc dec exch cas`` (sub, mul, div: the table dialect only).
    ``red`` has ``is_red`` set: its read supplies no acquire pattern.
    """

    decisive: ClassVar[tuple[str, ...]] = ("address",)

    dst: Reg | None
    op: str
    address: Expr
    srcs: tuple[Expr, ...]
    type: str
    sem: str = "relaxed"  # relaxed acquire release acq_rel
    scope: str = "gpu"
    space: str = "generic"
    proxy: str = "generic"
    is_red: bool = False


# --- fences and barriers --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fence(Op):
    """``fence``, ``membar`` and, with ``restrict`` ``tensor``, ``tcgen05.fence``; ``restrict`` may also be ``None``,
    ``mbarrier_init``, ``shared::cta`` or ``shared::cluster``.
    """

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
    the tensormap acquire has ``address`` and ``size``.
    """

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

    kind: str
    sem: str
    aligned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergentAligned(Op):
    """Marks the next instruction, which is ``.aligned``, as one that only some threads of a warp execute: undefined,
    with the ``code`` of the finding and the ``reason``.
    """

    code: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpSync(Op):
    """``bar.warp.sync mask``."""

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

    decisive: ClassVar[tuple[str, ...]] = ("address", "count")

    address: Expr
    count: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierInval(Op):
    """``mbarrier.inval [address]``."""

    decisive: ClassVar[tuple[str, ...]] = ("address",)

    address: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierTx(Op):
    """``mbarrier.expect_tx`` and ``mbarrier.complete_tx``: relaxed; ``kind`` is ``expect`` or ``complete``; ``tx`` in
    bytes.
    """

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

    dst: Reg
    state: Expr


# --- asynchronous operations --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CpAsync(Op):
    """``cp.async``: global to shared::cta, ``size`` 4, 8 or 16; ``src_size`` bytes are read, the rest is zero."""

    decisive: ClassVar[tuple[str, ...]] = ("dst", "src", "size", "src_size", "ignore_src")

    dst: Expr
    src: Expr
    size: Expr
    src_size: Expr | None = None
    ignore_src: Expr | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Op):
    """``cp.async.commit_group`` (``bulk`` false), ``cp.async.bulk.commit_group``, ``wgmma.commit_group`` by
    ``family``.
    """

    family: str  # cp.async, bulk, wgmma


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitGroup(Op):
    """``…wait_group{.read} pending``; ``cp.async.wait_all`` and ``tcgen05.wait`` have ``commits`` set and ``pending``
    0.
    """

    decisive: ClassVar[tuple[str, ...]] = ("pending",)

    family: str  # cp.async, bulk, wgmma, tcgen05.ld, tcgen05.st
    pending: Expr
    read: bool = False
    commits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CpAsyncArrive(Op):
    """``cp.async.mbarrier.arrive{.noinc}``."""

    decisive: ClassVar[tuple[str, ...]] = ("address",)

    address: Expr
    noinc: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkCopy(Op):
    """``cp.async.bulk`` and, with ``reduce``, ``cp.reduce.async.bulk``.

    ``mbar`` is given for the mbarrier mechanism, ``None`` for the bulk group. ``cta_mask`` (multicast) has a bit per
    ``%cluster_ctarank``; ``byte_mask`` a bit per byte of every 16-byte chunk. ``reduce`` is an ``Atomic``-like
    operation
    name (``add min max inc dec and or xor``) on elements of ``type``.
    """

    decisive: ClassVar[tuple[str, ...]] = ("dst", "src", "size", "mbar", "cta_mask", "byte_mask")

    dst: Expr
    src: Expr
    size: Expr
    dst_space: str
    src_space: str
    mbar: Expr | None = None
    cta_mask: Expr | None = None
    byte_mask: Expr | None = None
    reduce: str | None = None
    type: str | None = None
    noftz: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefetch(Op):
    """``cp.async.bulk.prefetch`` (``size``) and ``cp.async.bulk.prefetch.tensor`` (``tensor_map``): no memory
    effect.
    """

    decisive: ClassVar[tuple[str, ...]] = ("src", "size", "tensor_map")

    src: Expr | None = None
    size: Expr | None = None
    tensor_map: Expr | None = None
    coords: tuple[Expr, ...] = ()
    mode: str = "tile"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorCopy(Op):
    """``cp.async.bulk.tensor`` and, with ``reduce``, ``cp.reduce.async.bulk.tensor``.

    ``kind`` is ``load`` (global to shared, ``dst_space`` shared::cta or shared::cluster, ``mbar``) or ``store``
    (shared::cta to global, bulk group). ``shared`` is the address in shared memory, ``tensor_map`` that of the map.
    ``mode``: tile, tile::gather4, tile::scatter4, im2col, im2col::w, im2col::w::128, im2col_no_offs.
    ``unplaced``: nobody knows where in the tensor; of its accesses there are those of shared memory only.
    """

    decisive: ClassVar[tuple[str, ...]] = ("shared", "tensor_map", "coords", "mbar", "im2col_info", "cta_mask")

    kind: str
    dim: int
    mode: str
    shared: Expr
    tensor_map: Expr
    coords: tuple[Expr, ...]
    dst_space: str = "shared::cluster"
    mbar: Expr | None = None
    im2col_info: tuple[Expr, ...] = ()
    cta_mask: Expr | None = None
    cta_group: int = 1
    reduce: str | None = None
    unplaced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncStore(Op):
    """``st.async`` and, with ``reduce``, ``red.async``: to shared::cluster with ``mbar`` (weak, or relaxed.cluster
    reductions);

    the ``.release.{gpu,sys}.global`` forms have no ``mbar`` and a ``sem`` and ``scope``.
    """

    decisive: ClassVar[tuple[str, ...]] = ("address", "mbar")

    address: Expr
    srcs: tuple[Expr, ...]
    type: str
    mbar: Expr | None = None
    reduce: str | None = None
    sem: str = "weak"
    scope: str | None = None
    space: str = "shared::cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensormapReplace(Op):
    """``tensormap.replace.tile.field.space.b1024.type [address]{, ord}, value``: a weak write of the 128-byte
    object.
    """

    decisive: ClassVar[tuple[str, ...]] = ("address", "value", "ordinal")

    field_name: str
    address: Expr
    value: Expr
    ordinal: Expr | None = None
    type: str = "b32"
    space: str = "generic"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensormapCopyFence(Op):
    """``tensormap.cp_fenceproxy``: copies 128 bytes shared::cta to global, then the tensormap release at ``scope``."""

    decisive: ClassVar[tuple[str, ...]] = ("dst", "src", "size")

    dst: Expr
    src: Expr
    size: Expr
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wgmma(Op):
    """``wgmma.mma_async``: an asynchronous read of the byte ranges ``reads`` (address, size) through the async
    proxy.
    """

    decisive: ClassVar[tuple[str, ...]] = ("reads",)

    reads: tuple[tuple[Expr, Expr], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WgmmaFence(Op):
    """``wgmma.fence``: what precedes it in its thread is ordered before the reads of the wgmma that follow."""


# --- tensor memory ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorCore(Op):
    """``tcgen05.mma``, ``cp`` and ``shift``: asynchronous, in the order in which their thread issues them, complete
    when a ``TensorCommit`` of the thread says so; ``alloc`` and ``dealloc``, which are over at once.

    ``reads`` and ``writes`` are ranges (address, size) of shared and tensor memory, all through the async proxy.
    ``wrong`` says what forbids an ``alloc`` or ``dealloc``, or what is wrong at the ``end``: a code of
    ``mcheck.findings.catalogue`` and a sentence. Who follows the kernel knows.
    """

    decisive: ClassVar[tuple[str, ...]] = ("reads", "writes")

    kind: str  # mma cp shift alloc dealloc end
    reads: tuple[tuple[Expr, Expr], ...]
    writes: tuple[tuple[Expr, Expr], ...]
    wrong: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorMove(Op):
    """What one lane does of ``tcgen05.ld`` or ``st``: ``size`` bytes of tensor memory are read or written, until
    ``tcgen05.wait`` (a ``WaitGroup`` of the family).
    """

    decisive: ClassVar[tuple[str, ...]] = ("address",)

    family: str  # tcgen05.ld, tcgen05.st
    address: Expr
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorCommit(Op):
    """``tcgen05.commit``: an arrive-on, on the mbarrier or on those of ``cta_mask``, once all earlier ``TensorCore``
    operations of the thread are complete.
    """

    decisive: ClassVar[tuple[str, ...]] = ("address", "cta_mask")

    address: Expr
    cta_mask: Expr | None = None
