"""``multimem.ld_reduce``, ``multimem.st`` and ``multimem.red``, and their asynchronous forms (PTX ISA 9.7.9.14).

Loads and stores are weak unless said otherwise, reductions relaxed at scope sys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mcheck.ir.ops import Atomic, Load, Multimem, Op, Store
from mcheck.ir.type_sizes import TYPE_BITS
from mcheck.isa.families.atomics import OPERATIONS
from mcheck.isa.families.common import (
    SM_90,
    SM_100,
    address,
    pairs,
    registers,
    require_scope_with_order,
    scope_slot,
    unsupported,
    values,
    vector_length,
)
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Qualifiers, Rule, Slot, Variant

SECTION = "9.7.9.14"

_SPACE = Slot("space", ("global",), optional=True, kind="space")
_A = Arg("a", "mem", space="$space", generic=("global", "shared"))
_UNDEFINED = (
    "the address is not a multimem address",
    "address not aligned to the access",
    "address outside the object or the state space",
)

_INTEGERS = {op: types for op, types in OPERATIONS.items() if op not in ("inc", "dec")}
_EIGHT_BITS = ("e5m2", "e4m3")
_VECTORS: dict[str, tuple[str, ...]] = {
    "v2": ("f32", "f16", "bf16", "f16x2", "bf16x2", *(f"{t}x{n}" for t in _EIGHT_BITS for n in (2, 4))),
    "v4": ("f32", "f16", "bf16", "f16x2", "bf16x2", *(f"{t}x{n}" for t in _EIGHT_BITS for n in (2, 4))),
    "v8": ("f16", "bf16", *(f"{t}x2" for t in _EIGHT_BITS)),
}
"""The types that vectors have, 32, 64 or 128 bits in all."""
_SCALARS = ("f32", "f64", "f16x2", "bf16x2", *(f"{t}x4" for t in _EIGHT_BITS))
_HALVES = ("f16", "f16x2", "bf16", "bf16x2")
_FLOATS = tuple(dict.fromkeys((*_SCALARS, *(t for row in _VECTORS.values() for t in row))))
_NEW_TYPES = tuple(t for t in _FLOATS if t.startswith(_EIGHT_BITS))
_NEWER = ("sm_100a", "sm_100f", "sm_120a", "sm_120f")


def _float_types(types: tuple[str, ...]) -> Slot:
    new = [kind for kind in types if kind in _NEW_TYPES]
    return Slot("type", types, kind="type", needs=dict.fromkeys(new, _NEWER), ptx=dict.fromkeys(new, "8.6"))


def _packed(kind: str) -> int:
    """The values in a register of a type."""
    return int(kind.partition("x")[2] or 1)


def _register_type(kind: str) -> str:
    """The type of a register with values of a type; of those that PTX computes with, the type itself."""
    return kind if kind in ("f32", "f64") or kind not in _FLOATS else f"b{TYPE_BITS[kind]}"


def _load(match: Match) -> Op:
    q = match.q
    return Load(
        dsts=registers(match.args["d"]),
        address=address(match.args["a"]),
        type=_register_type(q["type"]),
        sem=q.get("sem", "weak"),
        scope=q.get("scope"),
        space=q.get("space", "generic"),
        multimem=Multimem(combine=q["op"] if q["type"] not in _FLOATS else "opaque", packed=_packed(q["type"])),
        **match.common,
    )


def _store(match: Match) -> Op:
    q = match.q
    return Store(
        srcs=values(match.args["b"]),
        address=address(match.args["a"]),
        type=_register_type(q["type"]),
        sem=q.get("sem", "weak"),
        scope=q.get("scope"),
        space=q.get("space", "generic"),
        multimem=Multimem(packed=_packed(q["type"])),
        **match.common,
    )


def _reduce(match: Match) -> Op:
    q = match.q
    return Atomic(
        dst=None,
        op=q["op"],
        address=address(match.args["a"]),
        srcs=values(match.args["b"]),
        type=q["type"].partition("x")[0],
        sem=q.get("sem", "relaxed"),
        scope=q.get("scope", "sys"),
        space=q.get("space", "generic"),
        is_red=True,
        multimem=Multimem(packed=_packed(q["type"])),
        **match.common,
    )


def _orders(*strong: str, weak: bool) -> Iterator[tuple[str, tuple[Slot, ...], tuple[Rule, ...]]]:
    """What may be said of order and scope: a name for it, the slots, the rules."""
    sem, scope = Slot("sem", strong, optional=not weak), scope_slot(optional=not weak)
    if weak:
        yield "weak", (Slot("sem", ("weak",), optional=True),), ()
        yield " or ".join(strong), (sem, scope), ()
    else:
        yield " or ".join(strong), (sem, scope), require_scope_with_order(sem, scope)


def _has_length(q: Qualifiers) -> bool:
    kinds = _VECTORS[q["vec"]] if "vec" in q else _SCALARS
    return q["type"] in kinds


_LENGTHS = Rule(
    _has_length,
    "type",
    "'.{type}' does not make up 32, 64 or 128 bits",
    lambda q: ", ".join("." + kind for kind in (_VECTORS[q["vec"]] if "vec" in q else _SCALARS)),
)
_VEC = Slot("vec", tuple(_VECTORS), optional=True)
_ACCUMULATORS: Mapping[str, tuple[str, ...]] = {"acc::f32": _HALVES, "acc::f16": _NEW_TYPES}
_ACC = Slot("acc_prec", tuple(_ACCUMULATORS), optional=True, ptx={"acc::f32": "8.2", "acc::f16": "8.6"})


def _load_variants() -> Iterator[Variant]:
    for name, order, rules in _orders("relaxed", "acquire", weak=True):
        op, kinds = Slot("op", tuple(_INTEGERS)), tuple(dict.fromkeys(t for row in _INTEGERS.values() for t in row))
        yield Variant(
            name=f"{name}, integers",
            slots=(*order, _SPACE, op, Slot("type", kinds, kind="type")),
            args=(Arg("d", "dst", "$type"), _A),
            rules=(*rules, pairs("op", "type", _INTEGERS)),
            lower=_load,
        )
        yield Variant(
            name=f"{name}, floating point",
            slots=(*order, _SPACE, Slot("op", ("add", "min", "max")), _ACC, _VEC, _float_types(_FLOATS)),
            args=(Arg("d", "dst", "$type", count=vector_length), _A),
            rules=(
                *rules,
                _LENGTHS,
                Rule(
                    lambda q: q["op"] == "add" or q["type"] not in ("f32", "f64"),
                    "op",
                    "'.{op}' does not go with '.{type}'",
                    ".add",
                ),
                Rule(
                    lambda q: "acc_prec" not in q or (q["op"] == "add" and q["type"] in _ACCUMULATORS[q["acc_prec"]]),
                    "acc_prec",
                    "'.{acc_prec}' does not go with '.{op}' of '.{type}'",
                    ".acc::f32 with .add of halves, .acc::f16 with .add of 8-bit types",
                ),
            ),
            lower=_load,
        )


def _store_variants() -> Iterator[Variant]:
    for name, order, rules in _orders("relaxed", "release", weak=True):
        kinds = ("b32", "b64", "u32", "u64", "s32", "s64")
        yield Variant(
            name=f"{name}, integers",
            slots=(*order, _SPACE, Slot("type", kinds, kind="type")),
            args=(_A, Arg("b", "src", "$type")),
            rules=rules,
            lower=_store,
        )
        yield Variant(
            name=f"{name}, floating point",
            slots=(*order, _SPACE, _VEC, _float_types(_FLOATS)),
            args=(_A, Arg("b", "src", "$type", count=vector_length)),
            rules=(*rules, _LENGTHS),
            lower=_store,
        )


def _red_variants() -> Iterator[Variant]:
    old = tuple(kind for kind in _FLOATS if kind not in _NEW_TYPES)
    for name, order, rules in _orders("relaxed", "release", weak=False):
        op, kinds = Slot("op", tuple(_INTEGERS)), tuple(dict.fromkeys(t for row in _INTEGERS.values() for t in row))
        yield Variant(
            name=f"{name}, integers",
            slots=(*order, _SPACE, op, Slot("type", kinds, kind="type")),
            args=(_A, Arg("b", "src", "$type")),
            rules=(*rules, pairs("op", "type", _INTEGERS)),
            lower=_reduce,
        )
        yield Variant(
            name=f"{name}, floating point",
            slots=(*order, _SPACE, Slot("op", ("add",)), _VEC, _float_types(old)),
            args=(_A, Arg("b", "src", "$type", count=vector_length)),
            rules=(*rules, _LENGTHS),
            lower=_reduce,
        )


def _family(name: str, title: str, kind: Kind, variants: Iterator[Variant]) -> Family:
    return Family(
        name=f"multimem.{name}",
        kind=kind,
        section=SECTION,
        title=title,
        ptx="8.1",
        needs=SM_90,
        undefined=_UNDEFINED,
        variants=tuple(variants),
    )


def _asynchronous(name: str, title: str, *form: Slot, wide: bool = False) -> Family:
    return Family(
        name=f"multimem.{name}.async",
        kind=Kind.MULTIMEM,
        section="9.3",
        title=title,
        ptx="9.3",
        needs=SM_100,
        undefined=_UNDEFINED,
        variants=(
            Variant(
                slots=(Slot("sem", ("release",)), scope_slot("gpu", "sys"), _SPACE, *form),
                args=(_A, Arg("b", "src", "$type", wide=wide)),
                lower=unsupported,
            ),
        ),
    )


_ASYNC_TYPES = (*(f"{kind}{bits}" for bits in (8, 16, 32, 64) for kind in "bus"), "f32", "f64")

FAMILIES = (
    _family("ld_reduce", "load and reduction of the copies on several GPUs", Kind.MULTIMEM, _load_variants()),
    _family("st", "store to the copies on several GPUs", Kind.MULTIMEM, _store_variants()),
    _family("red", "reduction at the copies on several GPUs", Kind.MULTIMEM, _red_variants()),
    _asynchronous(
        "st",
        "asynchronous store to the copies on several GPUs",
        Slot("type", _ASYNC_TYPES, kind="type"),
        wide=True,
    ),
    _asynchronous(
        "red",
        "asynchronous reduction at the copies on several GPUs",
        Slot("op", ("add",)),
        Slot("type", ("u32", "s32", "u64"), kind="type"),
    ),
)
