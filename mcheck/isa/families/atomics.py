"""``atom`` and ``red`` (PTX ISA 9.7.13.5, 9.7.13.6): relaxed at gpu scope unless said otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from mcheck.base.records import replace
from mcheck.ir.ops import Atomic, Op
from mcheck.isa.families.common import (
    CACHE_HINT,
    CACHE_POLICY,
    SM_90,
    address,
    pairs,
    register,
    scope_slot,
    shared_space,
    unsupported,
    value,
    vector_length,
)
from mcheck.isa.kinds import Kind
from mcheck.isa.schema import Arg, Family, Match, Rule, Slot, Variant

_SPACE = Slot(
    "space",
    ("global", "shared", "shared::cta", "shared::cluster"),
    optional=True,
    kind="space",
    needs={"shared::cluster": SM_90},
)

OPERATIONS: dict[str, tuple[str, ...]] = {
    "and": ("b32", "b64"),
    "or": ("b32", "b64"),
    "xor": ("b32", "b64"),
    "add": ("u32", "s32", "u64"),
    "inc": ("u32",),
    "dec": ("u32",),
    "min": ("u32", "s32", "u64", "s64"),
    "max": ("u32", "s32", "u64", "s64"),
}
"""The integer operations and their types."""


def _types(half: str, brain: str) -> Slot:
    return Slot("type", (half, brain), kind="type", needs={brain: SM_90})


def _lower(is_red: bool) -> Callable[[Match], Op]:
    def lower(match: Match) -> Op:
        q, args = match.q, match.args
        srcs = (value(args["b"]), value(args["c"])) if "c" in args else (value(args["b"]),)
        return Atomic(
            dst=None if is_red else register(args["d"]),
            op=q["op"],
            address=address(args["a"]),
            srcs=srcs,
            type=q["type"],
            sem=q.get("sem", "relaxed"),
            scope=q.get("scope", "gpu"),
            space=shared_space(q),
            is_red=is_red,
            **match.common,
        )

    return lower


_LENGTHS = {"f32": ("v2", "v4"), "f16": ("v2", "v4", "v8"), "f16x2": ("v2", "v4")}
"""The lengths of vectors, by the first of the types that have them."""


def _vectors(sem: Slot, scope: Slot, args: tuple[Arg, ...]) -> Iterator[Variant]:
    """Vectors in global memory: each element is atomic on its own, and none comes before another one."""
    space = Slot("space", ("global",), optional=True, kind="space")
    *d, a, b = args
    sinks = (tuple(Arg(x.name, "sink") for x in d),) if d else ()
    for first, lengths in _LENGTHS.items():
        op: tuple[Slot, ...] = (Slot("op", ("add",)),)
        types = Slot("type", (first,), kind="type")
        if first != "f32":
            op = Slot("op", ("add", "min", "max")), Slot("noftz", ("noftz",))
            types = _types(first, "b" + first)
        for results in (tuple(replace(x, count=vector_length) for x in d), *sinks):
            yield Variant(
                name=f"vector of {first}",
                slots=(sem, scope, space, *op, CACHE_HINT, Slot("vec", lengths), types),
                args=(*results, a, replace(b, count=vector_length), CACHE_POLICY),
                lower=unsupported,
                needs=SM_90,
                ptx="8.1",
            )


def _family(name: str, section: str, sems: tuple[str, ...]) -> Family:
    is_red = name == "red"
    lower = _lower(is_red)
    sem = Slot("sem", sems, optional=True)
    scope = scope_slot(optional=True)
    d = () if is_red else (Arg("d", "dst", "$type", sinkable=True),)
    a, b, c = (
        Arg("a", "mem", space="$space", generic=("global", "shared")),
        Arg("b", "src", "$type"),
        Arg("c", "src", "$type"),
    )
    rules = (
        Rule(
            lambda q: "cache_hint" not in q or q.get("space", "global") == "global",
            "space",
            "a cache hint does not go with '.{space}'",
            ".global or generic addressing where a hint is given",
        ),
    )
    types = tuple(dict.fromkeys(t for row in OPERATIONS.values() for t in row))

    def slots(op: Slot, *rest: Slot) -> tuple[Slot, ...]:
        return (sem, scope, _SPACE, op, *rest)

    atomic = partial(Variant, args=(*d, a, b, CACHE_POLICY), rules=rules, lower=lower)
    noftz = Slot("noftz", ("noftz",))
    variants = [
        atomic(
            name="integer operation",
            slots=slots(Slot("op", tuple(OPERATIONS)), CACHE_HINT, Slot("type", types, kind="type")),
            rules=(pairs("op", "type", OPERATIONS), *rules),
        )
    ]
    if not is_red:
        exch_types = Slot("type", ("b32", "b64", "b128"), kind="type", needs={"b128": SM_90}, ptx={"b128": "8.3"})
        cas_types = replace(exch_types, values=("b16", *exch_types.values))
        variants += [
            atomic(name="exchange", slots=slots(Slot("op", ("exch",)), CACHE_HINT, exch_types)),
            Variant(
                name="compare and swap", slots=slots(Slot("op", ("cas",)), cas_types), args=(*d, a, b, c), lower=lower
            ),
        ]
    add = Slot("op", ("add",))
    variants += [
        atomic(name="floating point", slots=slots(add, CACHE_HINT, Slot("type", ("f32", "f64"), kind="type"))),
        atomic(name="half precision", slots=slots(add, noftz, CACHE_HINT, _types("f16", "bf16"))),
        atomic(
            name="pair of halves",  # each half is atomic on its own
            slots=slots(add, noftz, CACHE_HINT, _types("f16x2", "bf16x2")),
            lower=unsupported,
        ),
    ]
    variants += _vectors(sem, scope, (*d, a, b))
    return Family(
        name=name,
        kind=Kind.REDUCTION if is_red else Kind.ATOMIC,
        section=section,
        title="atomic read-modify-write" + (" without a result" if is_red else ""),
        variants=tuple(variants),
        undefined=("address not aligned to the access", "address outside global and shared memory"),
    )


FAMILIES = (
    _family("atom", "9.7.13.5", ("relaxed", "acquire", "release", "acq_rel")),
    _family("red", "9.7.13.6", ("relaxed", "release")),
)
