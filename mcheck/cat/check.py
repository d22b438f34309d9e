"""From a cat file's tree to a ``Model``: names resolved, kinds checked, functions inlined, constants folded.

Differences from herd, all of them errors here where herd goes on:

* a name that nothing defines (in other tools an empty set);
* a set where a relation is meant, or the reverse: write ``[S]``, ``domain(r)``;
* a recursive definition that uses itself under ``~`` or on the right of ``\\``, which has no least fixpoint.

Shadowing follows the order of the text, so ``let co = co+`` means what it says. Functions see the names that were
defined before them, not those before their call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from mcheck.cat.ast import Base, Check, Empty, Kind, Let, LetRec, Model, Node, Op1, Op2, Statement, Var
from mcheck.cat.fold import NO_REL, NO_SET, binary, unary
from mcheck.cat.infer import infer, mentions, resolve
from mcheck.cat.messages import error
from mcheck.cat.passes import monotone, size_of, without_unused
from mcheck.cat.scanner import Source
from mcheck.cat.scope import (
    ALL,
    BUILTIN,
    ZERO,
    Entry,
    Function,
    Param,
    Procedure,
    Scope,
    initial_scope,
    kind_word,
    lookup,
)
from mcheck.cat.syntax import (
    Binary,
    Binding,
    Call,
    CallStatement,
    Expr,
    File,
    IncludeStatement,
    LetIn,
    LetStatement,
    Name,
    ProcedureStatement,
    ShowStatement,
    TestStatement,
    Unary,
    Zero,
)
from mcheck.cat.syntax import Statement as RawStatement
from mcheck.errors import InputError

SET: Final = Kind.SET
REL: Final = Kind.REL
LIMIT: Final = 20_000
"""The most operators that one definition may have once its calls are inlined."""

MODEL_LIMIT: Final = 50_000
"""The most statements, files and operators that a model may have once includes are spliced and calls inlined."""
CHARACTERS: Final = 1000
"""So many characters of an included file count for one of them."""
CLOSURE: Final = 25
"""For how many of them a function or a procedure counts, which keeps the names of its surroundings."""

_KIND_CODES: Final = frozenset({"CAT021", "CAT022", "CAT023"})


Include = Callable[[IncludeStatement, Source, tuple[str, ...]], tuple[File, str]]
"""Finds the file of an ``include``. The tuple is the chain of files being read, the string the file's link in it."""


class Checker:
    """Checks one model: its file, what it includes, and the standard library before it."""

    def __init__(self, include: Include) -> None:
        self.include = include
        self.scope = initial_scope()
        self.statements: list[Statement] = []
        self.shows: dict[str, Var | Base] = {}
        self.options: dict[str, str] = {}
        self.library: set[int] = set()  # uids of definitions that are left out where nothing uses them
        self.uid = 0
        self.budget = LIMIT
        self.room = MODEL_LIMIT
        self.inlined = False

    # --- statements ------------------------------------------------------------------------------

    def file(self, file: File, chain: tuple[str, ...] = (), *, library: bool = False) -> None:
        """Adds the statements of ``file``; definitions of a ``library`` count only where they are used."""
        first = self.uid
        for key, value in file.options:
            self.options[key] = value
        for statement in file.statements:
            if isinstance(statement, IncludeStatement):
                inner, link = self.include(statement, file.source, chain)
                weight = 1 + len(inner.source.text) // CHARACTERS
                self.grow(file.source, statement.start, statement.end, weight)
                self.file(inner, (*chain, link))
            else:
                self.statement(statement, file.source)
        if library:
            self.library.update(range(first, self.uid))

    def model(self, file: File, name: str) -> Model:
        """The finished model of ``file``, whose own options stand above those of its includes."""
        self.options.update(file.options)
        return Model(
            name=name,
            path=file.source.path,
            statements=without_unused(self.statements, tuple(self.shows.values()), self.library),
            shows=tuple(self.shows.values()),
            options=tuple(self.options.items()),
            doc=file.doc,
        )

    def grow(self, source: Source, start: int, end: int, count: int = 1) -> None:
        """One more piece of the model, which stands there; includes and calls can double it again and again."""
        self.room -= count
        if self.room < 0:
            raise error("CAT044", source.span(start, end), limit=MODEL_LIMIT)

    def statement(self, statement: RawStatement, source: Source) -> None:
        self.budget = LIMIT
        if isinstance(statement, LetStatement):
            self.let(statement, source)
        elif isinstance(statement, TestStatement):
            self.test(statement, source)
        elif isinstance(statement, ShowStatement):
            self.show(statement, source)
        elif isinstance(statement, ProcedureStatement):
            self.procedure(statement, source)
        elif isinstance(statement, CallStatement):
            self.call(statement, source)
        else:
            raise error("CAT043", source.span(statement.start, statement.end))

    def let(self, statement: LetStatement, source: Source) -> None:
        bindings = statement.bindings
        _no_duplicates([binding.name for binding in bindings], source)
        for binding in bindings:
            weight = 1 if binding.params is None else CLOSURE
            self.grow(source, binding.name.start, binding.name.end, weight)
            if binding.params is not None:
                _no_duplicates(list(binding.params), source)
        if statement.recursive:
            self.let_rec(bindings, source)
            return
        entries: list[tuple[str, Entry]] = []
        for binding in bindings:
            if binding.params is not None:
                entries.append((binding.name.text, self.function(binding, source)))
                continue
            body = self.whole(binding.body, source)
            entries.append((binding.name.text, self.define(binding.name, body, source)))
        self.scope.update(entries)

    def define(self, name: Name, body: Node, source: Source) -> Entry:
        """Emits ``let name = body``; the entry is the body itself where that is as short as a name."""
        var = Var(self.fresh(), name.text, body.kind, source.span(name.start, name.end))
        self.statements.append(Let(var, _of_kind(body, body.kind)))
        if body is ZERO or body is ALL or isinstance(body, (Base, Var)):
            return body
        return var

    def let_rec(self, bindings: tuple[Binding, ...], source: Source) -> None:
        for binding in bindings:
            if binding.params is not None:
                span = source.span(binding.name.start, binding.name.end)
                raise error("CAT029", span, what=binding.name.text)
        scope = dict(self.scope)
        kinds = self.recursive_kinds(bindings)
        variables: list[Var] = []
        for binding, kind in zip(bindings, kinds, strict=True):
            name = binding.name
            var = Var(self.fresh(), name.text, kind, source.span(name.start, name.end))
            variables.append(var)
            scope[name.text] = var
        outer, self.scope = self.scope, scope
        lets: list[Let] = []
        for binding, var in zip(bindings, variables, strict=True):
            body = self.whole(binding.body, source)
            body = _of_kind(body, var.kind)
            if body.kind is not var.kind:
                raise self.wrong_kind(f"the recursive {var.name}", binding.body, source, var.kind)
            lets.append(Let(var, body))
        uids = frozenset(var.uid for var in variables)
        recursive = False
        for let in lets:
            recursive |= monotone(let.body, uids, None)
        self.scope = outer
        self.scope.update((var.name, var) for var in variables)
        self.statements.extend([LetRec(tuple(lets))] if recursive else lets)

    def recursive_kinds(self, bindings: tuple[Binding, ...]) -> list[Kind]:
        """The kinds of names that occur in their own bodies: what the other operands leave no choice about."""
        scope: Scope = dict(self.scope)
        params = [Param(binding.name.text) for binding in bindings]
        scope.update((param.name, param) for param in params)
        for _ in bindings:
            for param, binding in zip(params, bindings, strict=True):
                kind = infer(binding.body, scope, param.kind)
                param.kind = param.kind or kind
        return [param.kind or REL for param in params]

    def test(self, statement: TestStatement, source: Source) -> None:
        self.grow(source, statement.start, statement.end)
        body = self.whole(statement.body, source)
        body = _of_kind(body, body.kind)
        if statement.test != "empty" and body.kind is not REL:
            raise self.wrong_kind(statement.test, statement.body, source, REL)
        name = statement.name
        if name is None:
            name = " ".join(source.text[statement.start : statement.end].split())
        span = source.span(statement.start, statement.end)
        self.statements.append(Check(statement.test, statement.negated, body, name, statement.flag, span))

    def show(self, statement: ShowStatement, source: Source) -> None:
        for expr, name in statement.items:
            if statement.hide:
                self.expr(expr, self.scope, source)
                self.shows.pop(name, None)
                continue
            node = self.whole(expr, source)
            node = _of_kind(node, node.kind)
            if isinstance(node, (Base, Var)) and node.name == name:
                self.shows[name] = node
                continue
            var = Var(self.fresh(), name, node.kind, source.span(expr.start, expr.end))
            self.statements.append(Let(var, node))
            self.shows[name] = var

    def procedure(self, statement: ProcedureStatement, source: Source) -> None:
        _no_duplicates(list(statement.params), source)
        self.grow(source, statement.name.start, statement.name.end, CLOSURE)
        params = tuple(param.text for param in statement.params)
        procedure = Procedure(statement.name.text, params, statement.body, source, dict(self.scope))
        self.scope[statement.name.text] = procedure

    def call(self, statement: CallStatement, source: Source) -> None:
        name = statement.name
        self.grow(source, name.start, name.end)
        procedure = lookup(name, self.scope, source)
        if not isinstance(procedure, Procedure):
            span = source.span(name.start, name.end)
            raise error("CAT025", span, what=name.text, kind=kind_word(procedure), needed="procedure")
        args = [self.expr(arg, self.scope, source) for arg in statement.args]
        if len(args) != len(procedure.params):
            raise self.wrong_count(name, procedure.params, len(args), source)
        outer, self.scope = self.scope, dict(procedure.scope)
        for param, arg in zip(procedure.params, args, strict=True):
            self.scope[param] = arg
        first = len(self.statements)
        for inner in procedure.body:
            self.statement(inner, procedure.source)
        self.scope = outer
        if statement.label is not None:
            for index in range(first, len(self.statements)):
                check = self.statements[index]
                if isinstance(check, Check):
                    renamed = Check(check.test, check.negated, check.body, statement.label, check.flag, check.span)
                    self.statements[index] = renamed

    # --- functions -------------------------------------------------------------------------------

    def function(self, binding: Binding, source: Source) -> Function:
        """Names of the body are resolved here, kinds as far as the operators around the parameters tell."""
        assert binding.params is not None
        params = [Param(param.text) for param in binding.params]
        closure = dict(self.scope)
        scope: Scope = dict(closure)
        scope.update((param.name, param) for param in params)
        name = binding.name.text
        if name not in scope and mentions(binding.body, name):
            raise error("CAT029", source.span(binding.name.start, binding.name.end), what=name)
        resolve(binding.body, scope, source)
        result = None
        for _ in (*params, None):
            result = infer(binding.body, scope, result)
        names = tuple(param.name for param in params)
        return Function(name, names, [param.kind for param in params], result, binding.body, source, closure)

    def apply(self, call: Call, scope: Scope, source: Source) -> Node:
        function = lookup(call.function, scope, source)
        name = call.function
        if not isinstance(function, Function):
            span = source.span(name.start, name.end)
            hint = None
            if isinstance(function, (Base, Var, Op1, Op2)):
                hint = "is an operator missing after it?"
            raise error("CAT025", span, what=name.text, kind=kind_word(function), needed="function", hint=hint)
        if len(call.args) != len(function.params):
            raise self.wrong_count(name, function.params, len(call.args), source)
        args: list[Node] = []
        for arg, kind in zip(call.args, function.kinds, strict=True):
            node = self.expr(arg, scope, source)
            if kind is not None:
                node = self.of_kind(kind, function.name, node, arg, source)
            args.append(node)
        if function.body is None or function.source is None:
            return unary(BUILTIN[function.name][1], args[0], source.span(call.start, call.end))
        inner: Scope = dict(function.scope)
        inner.update(zip(function.params, args, strict=True))
        self.inlined = True
        try:
            return self.expr(function.body, inner, function.source)
        except InputError as problem:
            if problem.code in _KIND_CODES and problem.hint is not None and "in the call" not in problem.hint:
                line = source.span(call.start, call.end).line
                problem.hint += f"; in the call of {name.text} in line {line}"
            raise

    # --- expressions -----------------------------------------------------------------------------

    def whole(self, raw: Expr, source: Source) -> Node:
        """A complete expression; what inlining made of it stays within bounds."""
        self.inlined = False
        node = self.expr(raw, self.scope, source)
        if self.inlined and size_of(node) > LIMIT:
            raise error("CAT030", source.span(raw.start, raw.end), limit=LIMIT)
        return node

    def expr(self, raw: Expr, scope: Scope, source: Source) -> Node:
        if isinstance(raw, Name):
            entry = lookup(raw, scope, source)
            if isinstance(entry, Base):
                return Base(entry.name, entry.kind, source.span(raw.start, raw.end))
            if isinstance(entry, Var):
                return Var(entry.uid, entry.name, entry.kind, source.span(raw.start, raw.end))
            if isinstance(entry, (Function, Procedure)):
                raise error("CAT026", source.span(raw.start, raw.end), what=raw.text)
            assert not isinstance(entry, Param)
            return entry
        self.grow(source, raw.start, raw.end)
        self.budget -= 1
        if self.budget < 0:
            raise error("CAT030", source.span(raw.start, raw.end), limit=LIMIT)
        if isinstance(raw, Binary):
            return self.binary(raw, scope, source)
        if isinstance(raw, Unary):
            arg = self.expr(raw.arg, scope, source)
            if raw.op == "~":
                if arg is ZERO or arg is ALL:
                    return ALL if arg is ZERO else ZERO
            else:
                arg = self.of_kind(SET if raw.op == "[]" else REL, raw.op, arg, raw.arg, source)
            return unary(raw.op, arg, source.span(raw.start, raw.end))
        if isinstance(raw, Zero):
            return ZERO
        if isinstance(raw, Call):
            return self.apply(raw, scope, source)
        return self.let_in(raw, scope, source)

    def binary(self, raw: Binary, scope: Scope, source: Source) -> Node:
        left = self.expr(raw.left, scope, source)
        right = self.expr(raw.right, scope, source)
        op = raw.op
        if op == ";":
            left = self.of_kind(REL, op, left, raw.left, source)
            right = self.of_kind(REL, op, right, raw.right, source)
        elif op == "*":
            left = self.of_kind(SET, op, left, raw.left, source)
            right = self.of_kind(SET, op, right, raw.right, source)
        elif left is ZERO or left is ALL:
            if right is ZERO or right is ALL:
                folded = binary(op, _of_kind(left, SET), _of_kind(right, SET))
                return ZERO if isinstance(folded, Empty) else ALL
            left = _of_kind(left, right.kind)
        elif right is ZERO or right is ALL:
            right = _of_kind(right, left.kind)
        elif left.kind is not right.kind:
            lone = raw.left if left.kind is SET else raw.right
            words = {
                "left": _quote(raw.left, source),
                "left_kind": left.kind.value,
                "right": _quote(raw.right, source),
                "right_kind": right.kind.value,
            }
            hint = f"write [{_quote(lone, source)}] for the identity on that set"
            raise error("CAT023", source.span(lone.start, lone.end), what=op, hint=hint, **words)
        return binary(op, left, right, source.span(raw.start, raw.end))

    def let_in(self, raw: LetIn, scope: Scope, source: Source) -> Node:
        _no_duplicates([binding.name for binding in raw.bindings], source)
        inner = dict(scope)
        for binding in raw.bindings:
            if binding.params is None:
                inner[binding.name.text] = self.expr(binding.body, scope, source)
            else:
                outer, self.scope = self.scope, scope
                inner[binding.name.text] = self.function(binding, source)
                self.scope = outer
        self.inlined = True
        return self.expr(raw.body, inner, source)

    # --- kinds -----------------------------------------------------------------------------------

    def of_kind(self, kind: Kind, what: str, node: Node, raw: Expr, source: Source) -> Node:
        node = _of_kind(node, kind)
        if node.kind is not kind:
            raise self.wrong_kind(what, raw, source, kind)
        return node

    def wrong_kind(self, what: str, raw: Expr, source: Source, kind: Kind) -> InputError:
        text = _quote(raw, source)
        span = source.span(raw.start, raw.end)
        if kind is REL:
            return error("CAT021", span, what=what, operand=text, hint=f"write [{text}]")
        hint = None if what == "[]" else f"write domain({text}) or range({text})"
        return error("CAT022", span, what=what, operand=text, hint=hint)

    def wrong_count(self, name: Name, params: tuple[str, ...], given: int, source: Source) -> InputError:
        takes = f"{len(params)} argument{'s' if len(params) != 1 else ''}"
        count = f"{given} {'is' if given == 1 else 'are'}"
        return error("CAT027", source.span(name.start, name.end), what=name.text, takes=takes, given=count)

    def fresh(self) -> int:
        self.uid += 1
        return self.uid - 1


# --- small helpers -------------------------------------------------------------------------------


def _of_kind(node: Node, kind: Kind) -> Node:
    """``node``, where it is still of either kind as one of ``kind``."""
    if node is ZERO:
        return NO_SET if kind is SET else NO_REL
    if node is ALL:
        return unary("~", NO_SET if kind is SET else NO_REL)
    return node


def _quote(raw: Expr, source: Source) -> str:
    """The expression as written, on one line and not too long."""
    text = _without_parentheses(" ".join(source.text[raw.start : raw.end].split()))
    return text if len(text) <= 40 else text[:37] + "..."


def _without_parentheses(text: str) -> str:
    """``text`` without a pair of parentheses around all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[1:-1].strip() if index == len(text) - 1 else text
    return text


def _no_duplicates(names: list[Name], source: Source) -> None:
    if len(names) < 2:
        return
    seen: set[str] = set()
    for name in names:
        if name.text in seen:
            raise error("CAT028", source.span(name.start, name.end), what=name.text)
        seen.add(name.text)
