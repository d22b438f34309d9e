"""``tcgen05``: tensor memory and the tensor core of the fifth generation (PTX ISA 9.7.16).

A matrix is written as the byte range that it takes, ``[a, 8192]``, whatever descriptor or address names it in a kernel.
What is computed is not modelled: registers are opaque. Whose rows of tensor memory a warp accesses, and what an
allocation is of, says ``mcheck.frontend.litmus.tensor_memory``.
"""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.base.records import replace
from mcheck.ir.expr import Binary, Const, Expr, Name, Special, Unary
from mcheck.ir.memory import CELL
from mcheck.ir.ops import Alu, Fence, Op, TensorCommit, TensorCore, TensorMove, WaitGroup
from mcheck.isa.families.bulk import CTA_MASK, MULTICAST, WIDE_CTA_MASK
from mcheck.isa.families.common import ZERO, address, optional_value, value
from mcheck.isa.instruction import Address, Scalar
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Rule, Slot, Variant

TARGETS = ("sm_100f", "sm_101f", "sm_110f")
_REDUCING = ("sm_101f", "sm_103f", "sm_110f")
_SHIFTING = ("sm_100a", "sm_101a", "sm_103a", "sm_107a", "sm_110a")
_SYNC = (Slot("sync", ("sync",)), Slot("aligned", ("aligned",)))
_GROUP = Slot("cta_group", ("cta_group::1", "cta_group::2"))
_B32 = Slot("type", ("b32",), kind="type")
_COLUMNS = Arg("nCols", "src", "u32")
_EXCLUSIVE = Slot("exclusive", ("exclusive",), optional=True, unmodelled=("exclusive",))

CELLS = {"32x32b": 1, "16x32bx2": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8}
"""By the shape of a ``ld`` or ``st``, columns for each repetition."""
_NUMBERS = tuple(f"x{1 << k}" for k in range(8))
_SHAPE = Slot("shape", tuple(CELLS))
_REDUCED_SHAPE = Slot("shape", ("32x32b", "16x32bx2"))
_NUM = Slot("num", _NUMBERS)
_PACK = Slot("pack", ("pack::16b",), optional=True)
_UNPACK = Slot("pack", ("unpack::16b",), optional=True)
_RESTRICTIONS = tuple(f"sync_restrict::shared::{what}" for what in ("cta", "cluster", "read::mma::a"))
_HELD = Arg("r", "list")
_LOADED = Arg("r", "list", written=True)
_PLACE = Arg("taddr", "mem", space="tensor")
_SPLIT = Arg("immHalfSplitoff", "imm", when=lambda q: q["shape"] == "16x32bx2")
_SEVERAL = Slot("num", _NUMBERS[1:])
_FLOATING = (Slot("abs", ("abs",), optional=True), Slot("NaN", ("NaN",), optional=True))
_AT_MOST = {"16x128b": 64, "16x256b": 32}
_FITS = Rule(
    lambda q: int(q["num"][1:]) <= _AT_MOST.get(q["shape"], 128),
    "num",
    "'.{num}' does not go with '.{shape}'",
    lambda q: f".x1 to .x{_AT_MOST.get(q['shape'], 128)}",
)


# --- allocation ---------------------------------------------------------------------------------------


def _alloc(match: Match) -> Op:
    place = address(match.args["dst"])
    return TensorCore(kind="alloc", reads=(), writes=((place, Const(4)),), columns=_columns(match), **match.common)


def _dealloc(match: Match) -> Op:
    return TensorCore(kind="dealloc", reads=(), writes=(), columns=_columns(match), **match.common)


def _columns(match: Match) -> Expr:
    return value(match.args["nCols"])


def _nothing(match: Match) -> Op:
    return Alu(op="nop", type="b32", dsts=(), srcs=(), **match.common)


# --- ld, st and what waits for them -------------------------------------------------------------------


def _move(match: Match) -> Op:
    """The shape of two halves accesses its 16 rows a second time, so many columns further on (9.7.16.8.3)."""
    q, split = match.q, match.args.get("immHalfSplitoff")
    columns = int(q["num"][1:]) * CELLS[q["shape"]] * (2 if "pack" in q else 1)
    return TensorMove(
        family="tcgen05.ld" if match.family.kind is Kind.TMEM_LOAD else "tcgen05.st",
        address=address(match.args["taddr"]), size=CELL * columns,
        apart=None if split is None else Binary("*", value(split), Const(CELL)), **match.common,
    )  # fmt: skip


def _wait(match: Match) -> Op:
    family = "tcgen05." + match.family.name.partition("::")[2]
    return WaitGroup(family=family, pending=ZERO, commits=True, **match.common)


def _fence(match: Match) -> Op:
    sem = "release" if "before" in match.family.name else "acquire"
    return Fence(sem=sem, scope="cluster", restrict="tensor", **match.common)


# --- the pipe -----------------------------------------------------------------------------------------


def _range(match: Match, name: str) -> tuple[tuple[Expr, Expr], ...]:
    """The bytes of an operand, of both CTAs of the pair with ``.cta_group::2`` (9.7.16.5)."""
    operand = match.args.get(name)
    if not isinstance(operand, Address):
        return ()
    size = operand.items[1]
    assert isinstance(size, Scalar)
    own = address(operand)
    if match.q["cta_group"] == "cta_group::1":
        return ((own, size.expr),)
    return (own, size.expr), (_of_peer(own), size.expr)


def _of_peer(expr: Expr) -> Expr:
    """The same place in the other CTA of the pair, whose rank differs in the last bit."""
    match expr:
        case Name(name=name, indices=indices, rank=rank):
            mine: Expr = Special("cluster_ctarank") if rank is None else rank
            return Name(name, indices, Binary("^", mine, Const(1)), expr.span)
        case Unary(op=op, operand=operand):
            return Unary(op, _of_peer(operand))
        case Binary(op=op, left=left, right=right):
            return Binary(op, _of_peer(left), _of_peer(right))
    return expr


def _mma(match: Match) -> Op:
    reads = tuple(r for name in ("a", "b", "sp-meta", "scale-A", "scale-B") for r in _range(match, name))
    return TensorCore(kind="mma", reads=reads, writes=_range(match, "d"), **match.common)


def _copy(match: Match) -> Op:
    return TensorCore(kind="cp", reads=_range(match, "s"), writes=_range(match, "taddr"), **match.common)


def _shift(match: Match) -> Op:
    return TensorCore(kind="shift", reads=(), writes=_range(match, "taddr"), **match.common)


def _commit(match: Match) -> Op:
    return TensorCommit(address=address(match.args["mbar"]), cta_mask=optional_value(match, "ctaMask"), **match.common)


_KIND = Slot(
    "kind", ("kind::f16", "kind::tf32", "kind::f8f6f4", "kind::i8"), needs={"kind::i8": ("sm_100a", "sm_110a")}
)
_SCALED = Slot("kind", ("kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"))
_BLOCK_SCALE = Slot("block_scale", ("block_scale",))
_SCALE_VEC = Slot(
    "scale_vec", ("scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32"), optional=True
)  # fmt: skip
_MATRICES = (Arg("d", "range"), Arg("a", "range"), Arg("b", "range"))
_META = Arg("sp-meta", "range")
_SCALES = (Arg("scale-A", "range"), Arg("scale-B", "range"))
_TRAILING = (Arg("idesc", "src", "b32", optional=True), Arg("enable-input-d", "pred", optional=True))
_USES = ("fill", "use", "lastuse", "discard")
_COLLECTOR = Slot("collector", tuple(f"collector::a::{use}" for use in _USES), optional=True)
_COLLECTOR_OF_B = Slot(
    "collector_b",
    tuple(f"collector::b::{use}" for use in _USES),
    optional=True,
    needs=dict.fromkeys((f"collector::b::{use}" for use in _USES), ("sm_107f",)),
    unmodelled=tuple(f"collector::b::{use}" for use in _USES),
)
_COLLECTORS_OF_B = Slot(
    "collector", tuple(f"collector::b{number}::{use}" for number in range(4) for use in _USES), optional=True
)
_ASHIFT = Slot("ashift", ("ashift",), optional=True)
_ONE_CTA = Slot("cta_group", ("cta_group::1",))
_SHIFTED = Rule(
    lambda q: not ("ashift" in q and q.get("collector") in ("collector::a::fill", "collector::a::use")),
    "collector",
    "'.{collector}' does not go with '.ashift'",
    ".collector::a::lastuse, .collector::a::discard or none",
)
_OF_KIND = {
    "kind::mxf8f6f4": ("scale_vec::1X", "block32"),
    "kind::mxf4": ("scale_vec::2X", "block32"),
    "kind::mxf4nvf4": ("scale_vec::2X", "scale_vec::4X", "block16", "block32"),
}
_SCALE_SIZE = Rule(
    lambda q: q["scale_vec"] in _OF_KIND[q["kind"]] if "scale_vec" in q else q["kind"] != "kind::mxf4nvf4",
    "scale_vec",
    "the size of a scale factor's block does not go with '.{kind}'",
    lambda q: " or ".join(f".{size}" for size in _OF_KIND[q["kind"]]),
)
_SCALED_SLOTS = (_GROUP, _SCALED, _BLOCK_SCALE, _SCALE_VEC, _COLLECTOR, _COLLECTOR_OF_B)
_DENSE = (_GROUP, _KIND, _ASHIFT, _COLLECTOR, _COLLECTOR_OF_B)
_STATIONARY = (_ONE_CTA, _KIND, _COLLECTORS_OF_B)


_BOTH_FORMATS = Rule(
    lambda q: ("dst_fmt" in q) == ("src_fmt" in q), "dst_fmt", "a format needs the other one", "both formats"
)
_OF_WARPS = {"64x128b": ("warpx2::02_13", "warpx2::01_23"), "32x128b": ("warpx4",)}
_WARPS = Rule(
    lambda q: (q["multicast"] in _OF_WARPS.get(q["shape"], ())) if "multicast" in q else q["shape"] not in _OF_WARPS,
    "shape",
    "'.{shape}' and the warps that get the data do not match",
    ".warpx2::02_13 or .warpx2::01_23 with .64x128b, .warpx4 with .32x128b, none with the others",
)


def _scaled_operands(*meta: Arg) -> tuple[tuple[Arg, ...], ...]:
    """The operands of a product with scales: those of the scales last, or as the ISA has them, behind ``idesc``."""
    idesc, enabled = _TRAILING
    named = (*_MATRICES, *meta, replace(idesc, optional=False), *_SCALES, enabled)
    return (*_MATRICES, *meta, *_SCALES, *_TRAILING), named


def _family(
    name: str,
    kind: Kind,
    section: str,
    title: str,
    *variants: Variant,
    proxy: str = "generic",
    needs: tuple[str, ...] = TARGETS,
    ptx: str = "8.6",
) -> Family:
    return Family(
        name=f"tcgen05.{name}",
        kind=kind,
        section=section,
        title=title,
        ptx=ptx,
        needs=needs,
        proxy=proxy,
        variants=variants,
    )


def _products(*meta: Arg) -> Iterator[Variant]:
    """The forms of a product, of a sparse one with where its zeros are."""
    dense = (*_MATRICES, *meta, *_TRAILING)
    yield Variant(name="dense", slots=_DENSE, args=dense, rules=(_SHIFTED,), lower=_mma)
    for args in _scaled_operands(*meta):
        yield Variant(name="block scaled", slots=_SCALED_SLOTS, args=args, rules=(_SCALE_SIZE,), lower=_mma)


def _stationary(*meta: Arg) -> Variant:
    """The form of a product that keeps its second matrix."""
    return Variant(slots=_STATIONARY, args=(*_MATRICES, *meta, *_TRAILING), lower=_mma)


FAMILIES = (
    _family(
        "alloc",
        Kind.TMEM_ALLOCATION,
        "9.7.16.7.1",
        "allocate columns of tensor memory",
        Variant(
            slots=(_EXCLUSIVE, _GROUP, *_SYNC, Slot("space", ("shared::cta",), optional=True, kind="space"), _B32),
            args=(Arg("dst", "mem", space="$space", generic=("shared",)), _COLUMNS),
            lower=_alloc,
        ),
    ),
    _family(
        "dealloc",
        Kind.TMEM_RELEASE,
        "9.7.16.7.1",
        "free columns of tensor memory",
        Variant(slots=(_EXCLUSIVE, _GROUP, *_SYNC, _B32), args=(Arg("taddr", "src", "u32"), _COLUMNS), lower=_dealloc),
    ),
    _family(
        "relinquish_alloc_permit",
        Kind.TMEM_PERMIT,
        "9.7.16.7.1",
        "give up the right to allocate tensor memory; no effect on memory",
        Variant(slots=(_GROUP, *_SYNC), lower=_nothing),
    ),
    _family(
        "ld",
        Kind.TMEM_LOAD,
        "9.7.16.8.1",
        "load registers from tensor memory",
        Variant(slots=(*_SYNC, _SHAPE, _NUM, _PACK, _B32), args=(_LOADED, _PLACE, _SPLIT), rules=(_FITS,), lower=_move),
        proxy="async",
    ),
    _family(
        "ld.red",
        Kind.TMEM_LOAD,
        "9.7.16.8.1",
        "load registers from tensor memory, with the least or greatest of each lane",
        *(
            Variant(
                name=name,
                slots=(*_SYNC, _REDUCED_SHAPE, _SEVERAL, Slot("op", ("min", "max")), *slots),
                args=(_LOADED, Arg("redval", "dst", "b32"), _PLACE, _SPLIT),
                lower=_move,
            )
            for name, slots in (
                ("floating point", (*_FLOATING, Slot("type", ("f32",), kind="type"))),
                ("integer", (Slot("type", ("u32", "s32"), kind="type"),)),
            )
        ),
        needs=_REDUCING,
        ptx="8.8",
        proxy="async",
    ),
    _family(
        "ld.red.spcompress",
        Kind.TMEM_LOAD,
        "9.7.16.8.1",
        "load registers from tensor memory without zeros, with the least or greatest of each lane",
        Variant(
            slots=(
                *_SYNC,
                Slot("shape", ("32x32b",)),
                Slot("num", _NUMBERS[2:]),
                Slot("op", ("min", "max")),
                Slot("sparsity", ("sp::2:4",), unmodelled=("sp::2:4",)),
                *_FLOATING,
                Slot("type", ("f32",), kind="type"),
                Slot("metatype", ("b2",), kind="type"),
            ),
            args=(Arg("spmeta", "list", written=True), _LOADED, Arg("redval", "dst", "b32"), _PLACE),
            lower=_move,
        ),
        needs=("sm_107a",),
        ptx="9.4",
        proxy="async",
    ),
    _family(
        "st",
        Kind.TMEM_STORE,
        "9.7.16.8.3",
        "store registers to tensor memory",
        Variant(slots=(*_SYNC, _SHAPE, _NUM, _UNPACK, _B32), args=(_PLACE, _SPLIT, _HELD), rules=(_FITS,), lower=_move),
        proxy="async",
    ),
    *(
        _family(
            f"wait::{what}",
            kind,
            "9.7.16.8.5",
            f"wait for the tcgen05.{what} of the thread",
            Variant(slots=_SYNC, lower=_wait),
        )
        for what, kind in (("ld", Kind.TMEM_LOAD_WAIT), ("st", Kind.TMEM_STORE_WAIT))
    ),
    *(
        _family(
            f"fence::{when}_thread_sync",
            Kind.TMEM_FENCE,
            "9.7.16.11.1",
            f"order tcgen05 operations {when} a synchronisation of threads",
            Variant(lower=_fence),
        )
        for when in ("before", "after")
    ),
    _family(
        "mma",
        Kind.TMEM_PRODUCT,
        "9.7.16.10.9.1",
        "multiply and accumulate in tensor memory",
        *_products(),
        proxy="async",
    ),
    _family(
        "mma.sp",
        Kind.TMEM_PRODUCT,
        "9.7.16.10.9.2",
        "multiply and accumulate, the first matrix without its zeros",
        *_products(_META),
        proxy="async",
    ),
    _family(
        "mma.ws",
        Kind.TMEM_PRODUCT,
        "9.7.16.10.9.3",
        "multiply and accumulate, the second matrix kept",
        _stationary(),
        proxy="async",
    ),
    _family(
        "mma.ws.sp",
        Kind.TMEM_PRODUCT,
        "9.7.16.10.9.4",
        "multiply and accumulate, the second matrix kept, the first without its zeros",
        _stationary(_META),
        proxy="async",
    ),
    _family(
        "cp",
        Kind.TMEM_COPY,
        "9.7.16.9.2",
        "copy from shared to tensor memory",
        Variant(
            slots=(
                _GROUP,
                Slot("shape", ("128x256b", "4x256b", "128x128b", "64x128b", "32x128b")),
                Slot("multicast", ("warpx2::02_13", "warpx2::01_23", "warpx4"), optional=True),
                Slot("dst_fmt", ("b8x16",), optional=True, kind="type"),
                Slot("src_fmt", ("b6x16_p32", "b4x16_p64"), optional=True, kind="type"),
            ),
            args=(Arg("taddr", "range"), Arg("s", "range")),
            rules=(_BOTH_FORMATS, _WARPS),
            lower=_copy,
        ),
        proxy="async",
    ),
    _family(
        "shift",
        Kind.TMEM_SHIFT,
        "9.7.16.9.3",
        "shift rows of tensor memory down",
        Variant(slots=(_GROUP, Slot("down", ("down",))), args=(Arg("taddr", "range"),), lower=_shift),
        needs=_SHIFTING,
        proxy="async",
    ),
    _family(
        "commit",
        Kind.TMEM_COMMIT,
        "9.7.16.12",
        "arrive on an mbarrier when the thread's operations of the tensor core are complete",
        Variant(
            slots=(
                _GROUP,
                Slot("completion", ("mbarrier::arrive::one",)),
                Slot("space", ("shared::cluster",), optional=True, kind="space"),
                Slot(
                    "restrict",
                    _RESTRICTIONS,
                    optional=True,
                    needs={_RESTRICTIONS[-1]: ("sm_107f",)},
                    unmodelled=_RESTRICTIONS,
                ),
                MULTICAST,
                Slot("type", ("b64",), kind="type"),
            ),
            args=(Arg("mbar", "mem", space="$space", generic=("shared",)), CTA_MASK, WIDE_CTA_MASK),
            lower=_commit,
        ),
    ),
)
