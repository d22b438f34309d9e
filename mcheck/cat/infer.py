"""What can be told about an expression before its parameters or its own name have a kind."""

from __future__ import annotations

from mcheck.cat.ast import Kind
from mcheck.cat.scanner import Source
from mcheck.cat.scope import ALL, ZERO, Function, Param, Procedure, Scope, lookup
from mcheck.cat.syntax import Binary, Call, Expr, LetIn, Name, Unary, Zero

SET = Kind.SET
REL = Kind.REL


def infer(raw: Expr, scope: Scope, wanted: Kind | None) -> Kind | None:
    """The kind of ``raw`` as far as it is certain, narrowing the parameters it meets to what is wanted of them."""
    if isinstance(raw, Name):
        entry = scope.get(raw.text)
        if isinstance(entry, Param):
            entry.kind = entry.kind or wanted
            return entry.kind
        if entry is None or entry is ZERO or entry is ALL or isinstance(entry, (Function, Procedure)):
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
        if raw.op == ";" or raw.op == "*":
            kind = REL if raw.op == ";" else SET
            infer(raw.left, scope, kind)
            infer(raw.right, scope, kind)
            return REL
        known = infer(raw.left, scope, wanted)
        other = infer(raw.right, scope, known)
        if known is None and other is not None:
            known = infer(raw.left, scope, other)
        return known
    if isinstance(raw, LetIn):
        inner = dict(scope)
        for binding in raw.bindings:
            local = Param(binding.name.text)
            if binding.params is None:
                local.kind = infer(binding.body, scope, None)
            inner[local.name] = local
        return infer(raw.body, inner, wanted)
    function = scope.get(raw.function.text)
    if not isinstance(function, Function):
        return wanted
    known = function.result
    for arg, needed in zip(raw.args, function.kinds, strict=False):
        given = infer(arg, scope, needed)
        if known is None and needed is None:  # a function of either kind gives what it is given
            known = given
    return wanted if known is None else known


def resolve(raw: Expr, scope: Scope, source: Source) -> None:
    """Every name of a function's body exists, whether or not the function is called."""
    if isinstance(raw, Name):
        lookup(raw, scope, source)
    elif isinstance(raw, Unary):
        resolve(raw.arg, scope, source)
    elif isinstance(raw, Binary):
        resolve(raw.left, scope, source)
        resolve(raw.right, scope, source)
    elif isinstance(raw, Call):
        lookup(raw.function, scope, source)
        for arg in raw.args:
            resolve(arg, scope, source)
    elif isinstance(raw, LetIn):
        inner = dict(scope)
        for binding in raw.bindings:
            local: Scope = dict(scope)
            local.update((param.text, Param(param.text)) for param in binding.params or ())
            resolve(binding.body, local, source)
            inner[binding.name.text] = Param(binding.name.text)
        resolve(raw.body, inner, source)


def mentions(raw: Expr, name: str) -> bool:
    if isinstance(raw, Name):
        return raw.text == name
    if isinstance(raw, Unary):
        return mentions(raw.arg, name)
    if isinstance(raw, Binary):
        return mentions(raw.left, name) or mentions(raw.right, name)
    if isinstance(raw, Call):
        return raw.function.text == name or any(mentions(arg, name) for arg in raw.args)
    if isinstance(raw, LetIn):
        return mentions(raw.body, name) or any(mentions(binding.body, name) for binding in raw.bindings)
    return False
