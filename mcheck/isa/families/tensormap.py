"""Changing and publishing tensor maps (PTX ISA 9.7.9.28, 9.7.13.16)."""

from __future__ import annotations

from mcheck.base.records import replace
from mcheck.ir.ops import Op, TensormapCopyFence, TensormapReplace
from mcheck.isa.families.common import SM_90, address, optional_value, scope_slot, unsupported, value
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Slot, Variant

_TARGETS = ("sm_90a", "sm_100f", "sm_110f", "sm_120f")
_MODE = Slot("mode", ("tile",))
_SPACE = Slot("space", ("global", "shared::cta"), optional=True, kind="space")
_OBJECT = Slot("object", ("b1024",))
_ADDR = Arg("addr", "mem", space="$space", generic=("global", "shared"))

_NEW = ("sm_100f", "sm_110f", "sm_120f")
_CODES: tuple[tuple[str, int, dict[int, tuple[str, ...]], tuple[str, ...]], ...] = (
    ("elemtype", 15, dict.fromkeys((13, 14, 15), _NEW), ()),
    ("interleave_layout", 2, {}, ()),
    ("swizzle_mode", 4, {4: ("sm_103a", "sm_107a")}, ()),
    ("swizzle_atomicity", 3, {}, _NEW),
    ("fill_mode", 1, {}, ()),
)
"""The fields that hold a code: the greatest code, the codes of newer parts, the targets that know the field."""


_CLASSES = ("alloc_large", "alloc_small", "alloc_same")
_CLASS = Slot("class", _CLASSES, optional=True, ptx=dict.fromkeys(_CLASSES, "9.5"), unmodelled=_CLASSES)
"""The class of the allocation that a map points into (PTX 9.5)."""


def _replace(match: Match) -> Op:
    q = match.q
    space = q.get("space", "generic")
    return TensormapReplace(
        field_name=q["field"],
        address=address(match.args["addr"]),
        value=value(match.args["new_val"]),
        ordinal=optional_value(match, "ord"),
        type=q["type"],
        space=space,
        **match.common,
    )


def _variant(
    name: str,
    fields: tuple[str, ...],
    type_name: str,
    ordinal: bool,
    new_value: Arg,
    needs: tuple[str, ...] = (),
    besides: tuple[Slot, ...] = (),
) -> Variant:
    order = (Arg("ord", "imm", low=0, high=4),) if ordinal else ()
    return Variant(
        name=name,
        slots=(_MODE, Slot("field", fields), *besides, _SPACE, _OBJECT, Slot("type", (type_name,))),
        args=(_ADDR, *order, new_value),
        lower=_replace,
        needs=needs,
    )


REPLACE = Family(
    name="tensormap.replace",
    kind=Kind.MAP_UPDATE,
    section="9.7.9.28",
    title="change a field of a tensor map",
    ptx="8.3",
    needs=_TARGETS,
    undefined=("the address is not that of a tensor map", "the value is illegal for the field"),
    variants=(
        _variant("address", ("global_address",), "b64", False, Arg("new_val", "src", "b64"), besides=(_CLASS,)),
        Variant(
            name="class of the allocation",
            slots=(_MODE, replace(_CLASS, values=_CLASSES[:2], optional=False), _SPACE, _OBJECT),
            args=(_ADDR,),
            lower=unsupported,
            ptx="9.5",
        ),
        _variant("rank", ("rank",), "b32", False, Arg("new_val", "src", "b32")),
        _variant("extent", ("box_dim", "global_dim", "element_stride"), "b32", True, Arg("new_val", "src", "u32")),
        _variant("stride", ("global_stride",), "b64", True, Arg("new_val", "src", "b64")),
        *(
            _variant(name, (name,), "b32", False, Arg("new_val", "imm", low=0, high=greatest, value_needs=newer), needs)
            for name, greatest, newer, needs in _CODES
        ),
    ),
)


QUERY = Family(
    name="tensormap.query",
    kind=Kind.UNKNOWN,
    section="9.7.9.28",
    title="ask a tensor map for the class of the allocation",
    ptx="9.5",
    needs=_TARGETS,
    variants=(
        Variant(
            slots=(Slot("what", ("alloc_class_large",), kind="name"), _SPACE, _OBJECT),
            args=(Arg("p", "dst", "pred"), _ADDR),
            lower=unsupported,
        ),
    ),
)


def _copy_fence(match: Match) -> Op:
    args = match.args
    return TensormapCopyFence(
        dst=address(args["dst"]),
        src=address(args["src"]),
        size=value(args["size"]),
        scope=match.q["scope"],
        **match.common,
    )


COPY_FENCE = Family(
    name="tensormap.cp_fenceproxy",
    kind=Kind.MAP_PUBLICATION,
    section="9.7.13.16",
    title="copy a tensor map to global memory and release it to the tensormap proxy",
    ptx="8.3",
    needs=SM_90,
    undefined=("an address is not aligned to 128 bytes",),
    variants=(
        Variant(
            slots=(
                Slot("dst", ("global",), kind="space"),
                Slot("src", ("shared::cta",), kind="space"),
                Slot("proxies", ("tensormap::generic",)),
                Slot("sem", ("release",)),
                scope_slot(),
                Slot("sync", ("sync",)),
                Slot("aligned", ("aligned",)),
            ),
            args=(Arg("dst", "mem", space="$dst"), Arg("src", "mem", space="$src"), Arg("size", "imm", values=(128,))),
            lower=_copy_fence,
        ),
    ),
)

FAMILIES = (REPLACE, QUERY, COPY_FENCE)
