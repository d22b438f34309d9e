"""Kind inference of expressions before their parameters or their own name have a kind."""

from __future__ import annotations

from collections.abc import Iterator

from mcheck.cat.ast import Kind
from mcheck.cat.fold import REL, SET
from mcheck.cat.scanner import Source
from mcheck.cat.scope import (
    ALL,
    ZERO,
    Classes,
    Families,
    Function,
    Items,
    Orders,
    Param,
    Primitive,
    Procedure,
    Scope,
    lookup,
)
from mcheck.cat.syntax import Binary, Binding, Call, Condition, Expr, Fun, If, LetIn, Match, Name, Try, Unary, Zero
from mcheck.cat.syntax import Items as RawItems


def infer(raw: Expr, scope: Scope, wanted: Kind | None) -> Kind | None:
    """The kind of ``raw`` as far as it is certain, narrowing the parameters it meets to what is wanted of them."""
    if isinstance(raw, Name):
        entry = scope.get(raw.text)
        if isinstance(entry, Param):
            entry.kind = entry.kind or wanted
            return entry.kind
        if entry is None or entry is ZERO or entry is ALL or isinstance(entry, _NO_KIND):
            return wanted
        return entry.kind
    if isinstance(raw, Zero):
        return wanted
    if isinstance(raw, Unary):
        if raw.op == "~":
            return infer(raw.arg, scope, wanted)
        infer(raw.arg, scope, SET if raw.op == "[]" else REL)
        return REL
    if isinstance(raw, Binary):
        return _of_binary(raw, scope, wanted)
    if isinstance(raw, LetIn):
        inner = dict(scope)
        for binding in raw.bindings:
            for name in binding.names:
                local = Param(name.text)
                if binding.params is None and len(binding.names) == 1 and not raw.recursive:
                    local.kind = infer(binding.body, scope, None)
                inner[local.name] = local
        return infer(raw.body, inner, wanted)
    if isinstance(raw, Try):
        return _either(raw.body, raw.other, scope, wanted)
    if isinstance(raw, If):
        taken = evaluate_condition(raw.condition)
        if taken is not None:
            return infer(raw.yes if taken else raw.no, scope, wanted)
        return _either(raw.yes, raw.no, scope, wanted)
    if isinstance(raw, (RawItems, Fun, Match)):
        return wanted
    function = scope.get(raw.function.text) if isinstance(raw.function, Name) else None
    if not isinstance(function, Function):
        return wanted
    known = function.result
    for arg, needed in zip(raw.args, function.kinds, strict=False):
        given = infer(arg, scope, needed)
        if known is None and needed is None:  # a function of either kind gives what it is given
            known = given
    return wanted if known is None else known


_NO_KIND = (Function, Procedure, Primitive, Items, Classes, Families, Orders)


def _of_binary(raw: Binary, scope: Scope, wanted: Kind | None) -> Kind | None:
    if raw.op == ";" or raw.op == "*":
        kind = REL if raw.op == ";" else SET
        infer(raw.left, scope, kind)
        infer(raw.right, scope, kind)
        return REL
    if raw.op == "++":
        return wanted
    return _either(raw.left, raw.right, scope, wanted)


def _either(one: Expr, other: Expr, scope: Scope, wanted: Kind | None) -> Kind | None:
    """Of two expressions of one kind."""
    known = infer(one, scope, wanted)
    second = infer(other, scope, known)
    if known is None and second is not None:
        known = infer(one, scope, second)
    return known


def evaluate_condition(condition: Condition) -> bool | None:
    """The truth of a condition on variants, none of which is on; ``None`` where sets have to be looked at."""
    match condition.op:
        case "variant":
            return False
        case "not":
            inner = evaluate_condition(condition.parts[0])
            return None if inner is None else not inner
        case "&&" | "||":
            settles = condition.op == "||"
            parts = [evaluate_condition(part) for part in condition.parts]
            if settles in parts:
                return settles
            return None if None in parts else not settles
    return None


def resolve(raw: Expr, scope: Scope, source: Source) -> None:
    """Every name of a function's body exists, whether or not the function is called. What stands under ``try`` or in
    a branch that is not taken need not.
    """
    if isinstance(raw, Name):
        lookup(raw, scope, source)
    elif isinstance(raw, LetIn):
        inner = _with(scope, [name for binding in raw.bindings for name in binding.names])
        for binding in raw.bindings:
            outer = inner if raw.recursive else scope
            resolve(binding.body, _with(outer, binding.params or ()), source)
        resolve(raw.body, inner, source)
    elif isinstance(raw, Fun):
        resolve(raw.body, _with(scope, raw.params), source)
    elif isinstance(raw, Match):
        resolve(raw.subject, scope, source)
        resolve(raw.empty, scope, source)
        resolve(raw.body, _with(scope, (raw.element, raw.rest)), source)
    elif isinstance(raw, Try):
        resolve(raw.other, scope, source)
    else:
        for part in parts_of(raw):
            resolve(part, scope, source)


def _with(scope: Scope, names: list[Name] | tuple[Name, ...]) -> Scope:
    inner: Scope = dict(scope)
    inner.update((name.text, Param(name.text)) for name in names if name.text != "_")
    return inner


def parts_of(raw: Expr) -> Iterator[Expr]:
    """The expressions right under ``raw``; of an ``if`` that is decided only the branch that is taken."""
    match raw:
        case Unary():
            yield raw.arg
        case Binary():
            yield from (raw.left, raw.right)
        case Call():
            yield from (raw.function, *raw.args)
        case RawItems():
            yield from raw.items
        case Fun():
            yield raw.body
        case Try():
            yield from (raw.body, raw.other)
        case Match():
            yield from (raw.subject, raw.empty, raw.body)
        case LetIn():
            yield from (*(binding.body for binding in raw.bindings), raw.body)
        case If():
            taken = evaluate_condition(raw.condition)
            yield from _operands(raw.condition)
            if taken is not False:
                yield raw.yes
            if taken is not True:
                yield raw.no


def _operands(condition: Condition) -> Iterator[Expr]:
    yield from condition.operands
    for part in condition.parts:
        yield from _operands(part)


def mentions(raw: Expr, name: str) -> bool:
    """Does ``raw`` have this name anywhere?"""
    if isinstance(raw, Name):
        return raw.text == name
    return any(mentions(part, name) for part in parts_of(raw))


def mentions_itself(binding: Binding) -> bool:
    """Does a function's body have its name?"""
    return mentions(binding.body, binding.name.text)
