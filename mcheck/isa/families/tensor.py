"""Tensor copies, reductions and prefetches (PTX ISA 9.7.9.27.1)."""

from __future__ import annotations

from mcheck.ir.ops import Op, Prefetch, TensorCopy
from mcheck.isa.families.bulk import (
    CTA_MASK,
    GROUP,
    KEPT_OR_HINT,
    KEPT_POLICY,
    MBARRIER,
    MULTICAST,
    REPORT,
    WIDE_CTA_MASK,
    space,
)
from mcheck.isa.families.common import (
    CACHE_HINT,
    CACHE_POLICY,
    SM_90,
    address,
    coordinates,
    is_given,
    optional_value,
    values,
)
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Qualifiers, Rule, Slot, Variant

_DIM = Slot("dim", ("1d", "2d", "3d", "4d", "5d"))
_SPECIFIC = ("sm_100f", "sm_110f")
"""Architecture-specific features of the data-centre parts after Hopper, with the rest of their families."""

_GATHER_CTA = ("sm_100",)

IM2COL = ("im2col", "im2col::w", "im2col::w::128")
FOUR_ROWS = ("tile::gather4", "tile::scatter4")


def dimensions(q: Qualifiers) -> int:
    """The number in ``.1d`` to ``.5d``."""
    return int(q["dim"][0])


def coordinate_count(q: Qualifiers) -> int:
    """One per dimension; a column and four rows for gather4 and scatter4."""
    return 5 if q.get("load_mode") in FOUR_ROWS else dimensions(q)


def info_count(q: Qualifiers) -> int:
    """The length of im2colInfo: an offset per spatial dimension, or halo and offset."""
    return 2 if q.get("load_mode") in IM2COL[1:] else max(1, dimensions(q) - 2)


def _load_mode(gather: tuple[str, ...]) -> Slot:
    return Slot(
        "load_mode",
        ("tile", "tile::gather4", *IM2COL),
        optional=True,
        needs={"tile::gather4": gather, "im2col::w": gather, "im2col::w::128": _SPECIFIC},
        ptx={"tile::gather4": "8.6", "im2col::w": "8.6", "im2col::w::128": "8.6"},
    )


_CTA_GROUP = Slot(
    "cta_group",
    ("cta_group::1", "cta_group::2"),
    optional=True,
    needs={"cta_group::1": _SPECIFIC, "cta_group::2": _SPECIFIC},
    ptx={"cta_group::1": "8.6", "cta_group::2": "8.6"},
)
_MODES = (
    Rule(
        lambda q: q.get("load_mode") not in (*IM2COL, "im2col_no_offs") or dimensions(q) >= 3,
        "dim",
        "'.{load_mode}' needs a tensor of at least three dimensions",
        ".3d, .4d, .5d",
    ),
    Rule(
        lambda q: q.get("load_mode") not in FOUR_ROWS or q["dim"] == "2d",
        "dim",
        "'.{load_mode}' needs a tensor of two dimensions",
        ".2d",
    ),
)

_NEWEST = ("sm_107f",)
_OVERRIDES = (
    Slot(
        "override",
        ("override::global_address",),
        optional=True,
        needs={"override::global_address": _NEWEST},
        ptx={"override::global_address": "9.4"},
        unmodelled=("override::global_address",),
    ),
    Slot("resize", ("override::global_dim", "override::global_dim_stride"), optional=True),
)
"""What an instruction has instead of fields of its map. The assembler and cuda::ptx have it; no text is known."""
_RULES = (
    *_MODES,
    Rule(
        lambda q: (
            "resize" not in q
            or (
                q.get("load_mode", "tile") == "tile"
                and "override" in q
                and (dimensions(q) == 1) != ("stride" in q["resize"])
            )
        ),
        "resize",
        "'.{resize}' does not go with these qualifiers",
        ".override::global_dim with .1d, else .override::global_dim_stride, of tiles and of an address",
    ),
)


def _is_resized(q: Qualifiers) -> bool:
    return "resize" in q


def _has_strides(q: Qualifiers) -> bool:
    return "stride" in q.get("resize", "")


_MAP = Arg(
    "tensorMap",
    "tensor",
    count=coordinate_count,
    generic=("global", "const", "param"),
    inner=(
        Arg("newAddress", "src", "u64", when=is_given("override")),
        Arg("newDims", "src", "u16", count=dimensions, when=_is_resized),
        Arg("newStrides", "src", "u32", count=lambda q: dimensions(q) - 1, when=_has_strides),
        Arg("newStrideBits", "src", "u16", when=_has_strides),
    ),
)
_INFO = Arg("im2colInfo", "src", "u16", count=info_count, when=lambda q: q.get("load_mode") in IM2COL)
_UNDEFINED = (
    "a shared address is not aligned to 16 bytes",
    "the tensor map is not in param, const or global memory",
    "the source or the tensor map modified, or the destination read, before completion",
)


def _load(match: Match) -> Op:
    q, args = match.q, match.args
    info = args.get("im2colInfo")
    return TensorCopy(
        kind="load",
        dim=dimensions(q),
        mode=q.get("load_mode", "tile"),
        shared=address(args["dstMem"]),
        tensor_map=address(args["tensorMap"]),
        coords=coordinates(args["tensorMap"]),
        dst_space=q["dst"],
        mbar=address(args["mbar"]),
        im2col_info=values(info) if info is not None else (),
        cta_mask=optional_value(match, "ctaMask"),
        cta_group=int(q.get("cta_group", "cta_group::1")[-1]),
        **match.common,
    )


def _store(match: Match) -> Op:
    q, args = match.q, match.args
    return TensorCopy(
        kind="store",
        dim=dimensions(q),
        mode=q.get("load_mode", "tile"),
        shared=address(args["srcMem"]),
        tensor_map=address(args["tensorMap"]),
        coords=coordinates(args["tensorMap"]),
        dst_space="global",
        reduce=q.get("redOp"),
        **match.common,
    )


TENSOR = Family(
    name="cp.async.bulk.tensor",
    kind=Kind.TENSOR_COPY,
    section="9.7.9.27.1.2",
    title="tensor copy",
    ptx="8.0",
    needs=SM_90,
    proxy="async",
    undefined=_UNDEFINED,
    variants=(
        Variant(
            name="global to shared::cta",
            slots=(
                _DIM,
                space("dst", "shared::cta", "8.6"),
                space("src", "global"),
                _load_mode(_GATHER_CTA),
                MBARRIER,
                REPORT,
                _CTA_GROUP,
                CACHE_HINT,
                *_OVERRIDES,
            ),
            args=(Arg("dstMem", "mem", space="$dst"), _MAP, Arg("mbar", "mem", space="shared"), _INFO, CACHE_POLICY),
            rules=_RULES,
            lower=_load,
            ptx="8.6",
            completion="mbarrier",
            undefined=("the destination is not in the executing CTA",),
        ),
        Variant(
            name="global to shared::cluster",
            slots=(
                _DIM,
                space("dst", "shared::cluster"),
                space("src", "global"),
                _load_mode(_SPECIFIC),
                MBARRIER,
                MULTICAST,
                REPORT,
                _CTA_GROUP,
                CACHE_HINT,
                *_OVERRIDES,
            ),
            args=(
                Arg("dstMem", "mem", space="$dst"),
                _MAP,
                Arg("mbar", "mem", space="shared"),
                _INFO,
                CTA_MASK,
                WIDE_CTA_MASK,
                CACHE_POLICY,
            ),
            rules=_RULES,
            lower=_load,
            completion="mbarrier",
        ),
        Variant(
            name="shared::cta to global",
            slots=(
                _DIM,
                space("dst", "global"),
                space("src", "shared::cta"),
                Slot(
                    "load_mode",
                    ("tile", "tile::scatter4", "im2col_no_offs"),
                    optional=True,
                    needs={"tile::scatter4": _SPECIFIC},
                    ptx={"tile::scatter4": "8.6"},
                ),
                GROUP,
                CACHE_HINT,
                *_OVERRIDES,
            ),
            args=(_MAP, Arg("srcMem", "mem", space="$src"), CACHE_POLICY),
            rules=_RULES,
            lower=_store,
            completion="bulk async-group",
            undefined=("a start coordinate is negative",),
        ),
    ),
)

REDUCE = Family(
    name="cp.reduce.async.bulk.tensor",
    kind=Kind.TENSOR_REDUCTION,
    section="9.7.9.27.1.3",
    title="tensor reduction",
    ptx="8.0",
    needs=SM_90,
    proxy="async",
    undefined=(*_UNDEFINED, "the operation does not exist for the element type of the map"),
    variants=(
        Variant(
            slots=(
                _DIM,
                space("dst", "global"),
                space("src", "shared::cta"),
                Slot("redOp", ("add", "min", "max", "inc", "dec", "and", "or", "xor")),
                Slot("load_mode", ("tile", "im2col_no_offs"), optional=True),
                GROUP,
                CACHE_HINT,
                *_OVERRIDES,
            ),
            args=(_MAP, Arg("srcMem", "mem", space="$src"), CACHE_POLICY),
            rules=_RULES,
            lower=_store,
            completion="bulk async-group",
        ),
    ),
)


def _prefetch(match: Match) -> Op:
    argument = match.args["tensorMap"]
    mode = match.q.get("load_mode", "tile")
    return Prefetch(tensor_map=address(argument), coords=coordinates(argument), mode=mode, **match.common)


PREFETCH = Family(
    name="cp.async.bulk.prefetch.tensor",
    kind=Kind.TENSOR_PREFETCH,
    section="9.7.9.27.1.4",
    title="tensor prefetch into the L2 cache",
    ptx="8.0",
    needs=SM_90,
    proxy="async",
    variants=(
        Variant(
            slots=(
                _DIM,
                Slot("level", ("L2",)),
                space("src", "global"),
                _load_mode(_SPECIFIC),
                KEPT_OR_HINT,
                *_OVERRIDES,
            ),
            args=(_MAP, _INFO, KEPT_POLICY),
            rules=_RULES,
            lower=_prefetch,
        ),
    ),
)


def _prefetch_map(match: Match) -> Op:
    return Prefetch(tensor_map=address(match.args["a"]), **match.common)


def _prefetch_line(match: Match) -> Op:
    """A hint: the line that it names is no access."""
    return Prefetch(**match.common)


PREFETCH_MAP = Family(
    name="prefetch",
    kind=Kind.PREFETCH,
    section="9.7.9.15",
    title="prefetch of a cache line or of a tensor map",
    variants=(
        Variant(
            slots=(
                Slot("space", ("const", "param"), optional=True, kind="space"),
                Slot("tensormap", ("tensormap",)),
            ),
            args=(Arg("a", "mem", space="$space", generic=("global", "const", "param")),),
            lower=_prefetch_map,
            needs=SM_90,
            ptx="8.0",
            proxy="tensormap",
        ),
        Variant(
            name="cache line of a valid address",
            slots=(
                Slot("space", ("global",), optional=True, kind="space"),
                Slot("level", ("L1::32B",)),
                Slot("valid", ("valid_addr",)),
            ),
            args=(Arg("a", "mem", space="$space", generic=("global", "shared")),),
            lower=_prefetch_line,
            needs=SM_90,
        ),
        Variant(
            name="cache line",
            slots=(
                Slot("space", ("global", "local"), optional=True, kind="space"),
                Slot("level", ("L1", "L2")),
            ),
            args=(Arg("a", "mem", space="$space", generic=("global", "shared")),),
            lower=_prefetch_line,
        ),
    ),
)

FAMILIES = (TENSOR, REDUCE, PREFETCH, PREFETCH_MAP)
