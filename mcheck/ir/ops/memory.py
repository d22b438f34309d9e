"""Memory operations of a thread: generic, and through the texture, surface and constant proxies."""

from __future__ import annotations

from typing import ClassVar

from mcheck.base.records import dataclass
from mcheck.ir.expr import Expr, Reg
from mcheck.ir.ops.operation import Facets, Op


@dataclass(frozen=True, slots=True, kw_only=True)
class Multimem:
    """How an operation accesses memory by a multimem address, which stands for bytes on several GPUs (PTX ISA 8.2.3).

    An instruction is split into one operation for each copy (``mcheck.ir.multimem``): operation ``number`` of them
    accesses the copy that lies ``distance`` bytes behind the multimem address, and ``more`` follow. They are one
    instruction, so nothing orders them: they have one place in program order. ``combine`` is the operation of
    ``multimem.ld_reduce``. ``distance`` is ``None`` where the instruction has not been split: its address is none of
    several GPUs. Until then a vector of ``multimem.red`` has all elements in ``srcs``, and a register holds as many
    values as are ``packed`` in it, each of which is accessed by itself (8.2.4, 8.2.5).
    """

    combine: str | None = None
    packed: int = 1
    distance: int | None = None
    number: int = 0
    more: bool = False


class ScalarAccess(Op):
    """A thread's access to scalars of ``type``, which may be strong: synchronous, in program order."""

    __slots__ = ()

    address: Expr
    type: str
    sem: str
    scope: str | None
    multimem: Multimem | None

    @property
    def scalar_count(self) -> int:
        """The number of scalars, at consecutive addresses (of a matrix, those of a row)."""
        return 1


class ScalarRead(ScalarAccess):
    """A load or an atomic."""

    __slots__ = ()


class ScalarWrite(ScalarAccess):
    """A store or an atomic."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Load(ScalarRead):
    """``ld``: ``len(dsts)`` scalars of ``type`` from consecutive addresses (a vector is a set of scalar reads).

    ``non_coherent``: ``ld.global.nc``. With ``matrix_rows`` it is ``ldmatrix``: a row that lanes below that number
    read, each at its own address, and registers that get elements of other lanes' rows, which are not modelled.
    """

    facets: ClassVar[Facets] = Facets(reads=("address",), observes=True)
    decisive: ClassVar[tuple[str, ...]] = ("address",)

    dsts: tuple[Reg | None, ...]
    address: Expr
    type: str
    sem: str = "weak"  # weak relaxed acquire (volatile and mmio: relaxed, scope sys)
    scope: str | None = None
    space: str = "generic"
    proxy: str = "generic"
    volatile: bool = False
    non_coherent: bool = False
    matrix_rows: int = 0
    multimem: Multimem | None = None

    @property
    def scalar_count(self) -> int:
        return len(self.dsts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Store(ScalarWrite):
    """``st``: ``len(srcs)`` scalars of ``type`` to consecutive addresses.

    With ``matrix_rows`` it is ``stmatrix``: a row that lanes below that number write, each at its own address, with
    elements of all lanes' registers, which are not modelled.
    """

    facets: ClassVar[Facets] = Facets(writes=("address",))
    decisive: ClassVar[tuple[str, ...]] = ("address",)

    address: Expr
    srcs: tuple[Expr, ...]
    type: str
    sem: str = "weak"  # weak relaxed release
    scope: str | None = None
    space: str = "generic"
    proxy: str = "generic"
    volatile: bool = False
    matrix_rows: int = 0
    multimem: Multimem | None = None

    @property
    def scalar_count(self) -> int:
        return len(self.srcs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill(Op):
    """``st.bulk``: ``size`` bytes of shared memory become zero, by a weak write."""

    facets: ClassVar[Facets] = Facets(writes=("address",))
    decisive: ClassVar[tuple[str, ...]] = ("address", "size")

    address: Expr
    size: Expr


@dataclass(frozen=True, slots=True, kw_only=True)
class Atomic(ScalarRead, ScalarWrite):
    """``atom`` and ``red``: one read-modify-write. ``srcs`` is (operand,) or, for ``cas``, (expected, new).

    ``op`` is ``add sub mul div and or xor min max inc dec exch cas`` (sub, mul, div: the table dialect only).
    ``red`` has ``is_red`` set: its read supplies no acquire pattern.
    """

    facets: ClassVar[Facets] = Facets(reads=("address",), writes=("address",), observes=True)
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
    multimem: Multimem | None = None


def is_weakened(op: Op) -> bool:
    """Return whether a strong access is followed as a weak one: no other weak access has a scope."""
    return isinstance(op, Load | Store | Atomic) and op.sem == "weak" and op.scope is not None


def multimem_of(op: Op) -> Multimem | None:
    """How an operation accesses memory by a multimem address; ``None`` if it does not."""
    found: Multimem | None = getattr(op, "multimem", None)
    return found
