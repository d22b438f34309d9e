"""Checks of operands against the table: their shape, constants, register types (PTX ISA 6.1 to 6.4)."""

from __future__ import annotations

import re
from collections.abc import Callable

from mcheck.base.errors import InternalError
from mcheck.ir.expr import Binary, Const, Expr, Lanes, Name, Reg, Special, Unary
from mcheck.ir.type_sizes import TYPE_BITS
from mcheck.isa.instruction import Address, Arguments, Operand, Pair, Scalar, Vector
from mcheck.isa.schema import Arg, Qualifiers
from mcheck.isa.targets import describe as describe_targets
from mcheck.isa.targets import meets_target

RegisterType = Callable[[str], str | None]
ObjectSpace = Callable[[str], str | None]

Shape = str | tuple["Shape", ...]
"""What the matcher sees of an operand: for a value one of ``r`` (register), ``p`` (a register known to be a predicate),
``q`` (an untyped register named like one), ``!`` (negated register), ``c`` (literal), ``n`` (name), ``e`` (other
constant expression), ``a`` (register plus constant), ``x`` (anything else); ``_`` for a sink; a tuple with the kind
(``m`` memory, ``v`` vector, ``p`` pair) and the shapes of the parts."""

_PREDICATE = re.compile(r"p\d*")


def shape(operand: Operand, register_type: RegisterType | None = None) -> Shape:
    """The shape of an operand. Matching looks at nothing else, so its result holds for every operand of that shape."""
    if isinstance(operand, Scalar):
        return _scalar_shape(operand, register_type)
    if isinstance(operand, Address):
        return ("m", *[shape(item, register_type) for item in operand.items])
    if isinstance(operand, Vector):
        return ("v", *[shape(item, register_type) for item in operand.items])
    if isinstance(operand, Pair):
        return ("p", shape(operand.first, register_type), shape(operand.second, register_type))
    if isinstance(operand, Arguments):
        raise InternalError("a call is not in the instruction table")
    return "_"


def _scalar_shape(value: Scalar, register_type: RegisterType | None) -> str:
    expr = value.expr
    kind = type(expr)
    if kind is Reg:
        if value.negated:
            return "!"
        name = expr.name  # type: ignore[union-attr]
        known = register_type(name) if register_type is not None else None
        if known is None:
            return "q" if _PREDICATE.fullmatch(name) else "r"
        return "p" if known == "pred" else "r"
    if value.negated:
        return "x"
    if kind is Const:
        return "c"
    if not _registers(expr):
        return "n" if kind is Name else "e"
    return "a" if is_address(expr) else "x"


def _registers(expr: Expr) -> bool:
    """Does a register occur in ``expr``?"""
    match expr:
        case Reg():
            return True
        case Unary():
            return _registers(expr.operand)
        case Binary():
            return _registers(expr.left) or _registers(expr.right)
        case Name():
            return any(map(_registers, expr.indices)) or (expr.rank is not None and _registers(expr.rank))
        case Const() | Special() | Lanes():
            return False


def is_address(expr: Expr) -> bool:
    """A register, a constant expression, or a register plus or minus a constant expression."""
    if isinstance(expr, Reg) or not _registers(expr):
        return True
    if isinstance(expr, Binary) and expr.op in ("+", "-"):
        if not _registers(expr.right):
            return is_address(expr.left)
        return expr.op == "+" and not _registers(expr.left) and is_address(expr.right)
    return False


def type_of(arg: Arg, q: Qualifiers) -> str:
    """The PTX type of an argument under the chosen qualifiers."""
    return q.get(arg.type[1:], "") if arg.type.startswith("$") else arg.type


_WORDS = {
    "dst": "a {type} register",
    "sink": "'_'",
    "src": "a {type} register or constant",
    "reg": "a {type} register",
    "imm": "a constant",
    "literal": "a number",
    "list": "a list of registers",
    "pred": "a predicate",
    "mem": "[address]",
    "tensor": "[tensor map, {{coordinates}}]",
    "range": "[address, bytes]",
    "name": "the name of a location",
    "label": "a label",
    "pair": "p or p|q",
    "any": "an operand",
    "wait": "a predicate register",
    "predname": "a predicate register",
    "elect": "register|predicate",
    "result": "a {type} register, or register|predicate",
}


def describe(arg: Arg, q: Qualifiers) -> str:
    """The operand in words, for messages: ``[mbar]``, ``size (u32)``."""
    name = arg.name
    if arg.kind == "mem":
        return f"[{name}]"
    if arg.kind == "range":
        return f"[{name}, bytes]"
    if arg.kind == "tensor":
        inner = "".join(f"{describe(one, q)}, " for one in arg.given(q))
        return f"[{name}, {inner}{{coordinates}}]"
    if arg.kind == "sink":
        return "_"
    count = arg.count(q) if arg.count is not None else None
    if count is not None:
        return "{" + ", ".join(f"{name}{i}" for i in range(count)) + "}"
    return name


def _expected(arg: Arg, q: Qualifiers) -> str:
    count = arg.count(q) if arg.count is not None else None
    type_name = type_of(arg, q)
    if arg.kind == "tensor":
        inner = "".join(f"{describe(one, q)}, " for one in arg.given(q))
        return f"[tensor map, {inner}{{{count} coordinates}}]"
    words = _WORDS[arg.kind].format(type=type_name)
    if count is not None:
        plural = {
            "dst": f"{type_name} registers",
            "src": f"{type_name} registers or constants",
            "reg": f"{type_name} registers",
        }
        words = f"a vector of {count} {plural.get(arg.kind, 'operands')}"
    if arg.sinkable:
        words += " or '_'"
    return words


def shape_problem(arg: Arg, seen: Shape, q: Qualifiers) -> tuple[str, str] | None:
    """``None`` if an operand of shape ``seen`` is legal for ``arg``, else what is wrong and what is legal."""
    count = arg.count(q) if arg.count is not None else None
    if arg.kind == "tensor":
        return _tensor_problem(arg, seen, q, count)
    if count is not None:
        if not (isinstance(seen, tuple) and seen[0] == "v"):
            return f"{_what(seen)} cannot be the operand '{arg.name}'", _expected(arg, q)
        if len(seen) - 1 != count:
            return f"the vector has {len(seen) - 1} elements instead of {count}", _expected(arg, q)
        for item in seen[1:]:
            if not _scalar_ok(arg, item, q):
                return f"{_what(item)} cannot be an element of '{arg.name}'", _expected(arg, q)
        return None
    if _scalar_ok(arg, seen, q):
        return None
    if arg.kind in ("mem", "range") and isinstance(seen, tuple) and seen[:2] == ("m", "x"):
        return "an address is a register, a constant, or a register plus a constant", _expected(arg, q)
    if arg.kind == "mem" and seen in (*_REGISTER, "n"):
        return f"{_what(seen)} cannot be the operand '{arg.name}': write an address in brackets", _expected(arg, q)
    return f"{_what(seen)} cannot be the operand '{arg.name}'", _expected(arg, q)


_REGISTER = ("r", "p", "q")
_CONSTANT = ("c", "n", "e")
_VALUE = (*_REGISTER, *_CONSTANT)
_ADDRESS = (*_VALUE, "a")


def _tensor_problem(arg: Arg, seen: Shape, q: Qualifiers, count: int | None) -> tuple[str, str] | None:
    legal, inner = _expected(arg, q), arg.given(q)
    if not (isinstance(seen, tuple) and seen[0] == "m" and len(seen) == 3 + len(inner)):
        return f"{_what(seen)} cannot be the operand '{arg.name}'", legal
    address, *within, coordinates = seen[1:]
    if address not in _ADDRESS:
        return "the tensor map must be an address", legal
    for one, item in zip(inner, within, strict=True):
        if (problem := shape_problem(one, item, q)) is not None:
            return problem
    if not (isinstance(coordinates, tuple) and coordinates[0] == "v"):
        return "the coordinates must be a vector", legal
    if len(coordinates) - 1 != count:
        given = len(coordinates) - 1
        return f"{given} coordinate{'s' * (given != 1)} given instead of {count}", legal
    if any(item not in _VALUE for item in coordinates[1:]):
        return "a coordinate is a register or a constant", legal
    return None


def _scalar_ok(arg: Arg, seen: Shape, q: Qualifiers) -> bool:
    match arg.kind:
        case "any":
            return True
        case "sink":
            return seen == "_"
        case "mem":
            return isinstance(seen, tuple) and len(seen) == 2 and seen[0] == "m" and seen[1] in _ADDRESS
        case "range":
            memory = isinstance(seen, tuple) and len(seen) == 3 and seen[0] == "m"
            return memory and seen[1] in _ADDRESS and seen[2] in _CONSTANT
        case "pair" | "elect" | "result":
            if isinstance(seen, tuple):
                return seen[0] == "p" and all(part in _REGISTER or part == "_" for part in seen[1:])
            return arg.kind != "elect" and (seen in _REGISTER or (seen == "_" and (arg.kind == "pair" or arg.sinkable)))
        case "dst" | "wait":
            return seen in _REGISTER or (seen == "_" and (arg.sinkable or arg.kind == "wait"))
        case "reg":
            return seen in _REGISTER
        case "src":
            return seen in _VALUE or (seen == "!" and type_of(arg, q) == "pred")
        case "imm":
            return seen in _CONSTANT
        case "literal":
            return seen == "c"
        case "list":
            return isinstance(seen, tuple) and seen[0] == "v" and all(item in _REGISTER for item in seen[1:])
        case "pred":
            return seen in _VALUE or seen == "!"
        case "predname":
            return seen in ("p", "q", "!")
        case "name" | "label":
            return seen == "n"
    return False


def _what(seen: Shape) -> str:
    if isinstance(seen, tuple):
        return {"m": "an address in brackets", "v": "a vector", "p": "a pair of destinations"}[str(seen[0])]
    words = {
        "_": "'_'",
        "r": "a register",
        "q": "a register",
        "p": "a predicate",
        "!": "a negated predicate",
        "c": "a constant",
        "n": "a name",
        "e": "a constant",
    }
    return words.get(seen, "an expression over registers")


# --- what depends on the instance: constants and register types ---------------------------------------


def value_problem(
    arg: Arg, operand: Operand, q: Qualifiers, register_type: RegisterType | None, target: str | None = None
) -> tuple[str, str] | None:
    """``None`` if constants and register types are legal, else what is wrong and what is legal."""
    if (arg.values or arg.low is not None) and isinstance(operand, Scalar) and isinstance(operand.expr, Const):
        value = operand.expr.value
        if arg.values and value not in arg.values:
            return f"'{arg.name}' cannot be {value}", " or ".join(map(str, arg.values)) + arg.besides
        if arg.low is not None and arg.high is not None and not arg.low <= value <= arg.high:
            return f"'{arg.name}' cannot be {value}", f"{arg.low} to {arg.high}"
        if target is not None and not meets_target(target, arg.value_needs.get(value, ())):
            return (
                f"'{arg.name}' cannot be {value} on {target}",
                f"{describe_targets(arg.value_needs[value])} for {value}",
            )
    if register_type is not None:
        return _type_problem(arg, operand, q, register_type)
    return None


def _type_problem(arg: Arg, operand: Operand, q: Qualifiers, register_type: RegisterType) -> tuple[str, str] | None:
    match operand:
        case Scalar(expr=Reg(name=name)):
            have = register_type(name)
            if have is None:
                return None
            want = "pred" if arg.kind in ("pred", "pair", "predname") else type_of(arg, q)
            if arg.kind in ("any", "name", "label") or not want:
                return None
            if not fits(have, want, arg.wide):
                return f"register '{name}' of type {have} cannot be the {want} operand '{arg.name}'", _expected(arg, q)
        case Vector():
            for item in operand.items:
                problem = _type_problem(arg, item, q, register_type)
                if problem is not None:
                    return problem
        case Pair():
            second = Arg(arg.name, "pred")
            return _type_problem(arg, operand.first, q, register_type) or _type_problem(
                second, operand.second, q, register_type
            )
        case Address():
            return _memory_problem(arg, operand, q, register_type)
        case _:
            pass
    return None


def _memory_problem(arg: Arg, operand: Address, q: Qualifiers, register_type: RegisterType) -> tuple[str, str] | None:
    address = operand.items[0]
    if isinstance(address, Scalar):
        base: Expr = address.expr
        while isinstance(base, Binary):
            base = base.left if _registers(base.left) else base.right
        if isinstance(base, Reg):
            have = register_type(base.name)
            if have is not None and (have[0] not in "bus" or have[1:] not in ("32", "64")):
                return (
                    f"register '{base.name}' of type {have} cannot hold an address",
                    "a 32- or 64-bit integer register",
                )
    if arg.kind == "tensor":
        for one, item in zip((*arg.given(q), Arg("coordinate", "src", "s32")), operand.items[1:], strict=True):
            problem = _type_problem(one, item, q, register_type)
            if problem is not None:
                return problem
    return None


def space_problem(arg: Arg, operand: Operand, q: Qualifiers, object_space: ObjectSpace) -> tuple[str, str] | None:
    """``None`` if a named object lies in the state space that the operand wants, else what is wrong, what is legal."""
    first = operand.items[0] if isinstance(operand, Address) else None
    if not isinstance(first, Scalar):
        return None
    base = first.expr
    while isinstance(base, Binary):
        base = base.left
    have = object_space(base.name) if isinstance(base, Name) else None
    if have is None:
        return None
    written = q.get(arg.space[1:], "") if arg.space.startswith("$") else arg.space
    legal = (written.split("::")[0],) if written else arg.generic
    if not legal or have.split("::")[0] in legal:
        return None
    assert isinstance(base, Name)
    wanted = " or ".join("." + space for space in legal)
    return f"'{base.name}' is in .{have}, but the operand '{arg.name}' must be in {wanted}", f"an object in {wanted}"


_HALF = ("f16", "bf16", "f16x2", "bf16x2")


def _class(type_name: str) -> str:
    if type_name == "pred" or (type_name[0] == "b" and type_name[1] != "f"):
        return "b"
    return "i" if type_name[0] in "us" else "f"


def fits(have: str, want: str, wide: bool = False) -> bool:
    """May a register declared ``have`` stand where the instruction says ``want`` (PTX ISA 9.5)?"""
    if have == want:
        return True
    if "pred" in (have, want):
        return False
    have_class, want_class = _class(have), _class(want)
    if want in _HALF:  # these live in .b16 registers, the packed pairs in .b32 ones
        return have_class == "b" and TYPE_BITS.get(have) == TYPE_BITS[want]
    if "b" not in (have_class, want_class) and have_class != want_class:
        return False
    have_bits, want_bits = TYPE_BITS.get(have, 0), TYPE_BITS.get(want, 0)
    if have_bits == want_bits:
        return True
    # A wider register will do unless both are floating-point (PTX ISA 9.5, tables on relaxed checking).
    return wide and have_bits > want_bits and (have_class, want_class) != ("f", "f")
