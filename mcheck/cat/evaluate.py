"""Expressions of a cat file to checked nodes: names resolved, kinds checked, functions inlined, constants folded.

Differences from herd, all of them errors here where herd goes on:

* a name that nothing defines (in other tools an empty set), save under ``try``;
* a set where a relation is meant, or the reverse: write ``[S]``, ``domain(r)``;
* a recursive definition that uses itself under ``~`` or on the right of ``\\``, which has no least fixpoint.

Values of other types (functions, tuples, sets of sets) exist while a model is checked and have to be gone when a test
is reached: what depends on the elements of a set of the execution is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from mcheck.base.errors import InputError
from mcheck.cat.ast import Base, Empty, Kind, Let, LetRec, Node, Op1, Op2, Statement, Var
from mcheck.cat.fold import REL, SET, binary, unary
from mcheck.cat.infer import evaluate_condition, infer, mentions_itself, resolve
from mcheck.cat.messages import error
from mcheck.cat.orders import apply_primitive, known_function
from mcheck.cat.passes import check_monotone, size_of, uses
from mcheck.cat.quoting import no_duplicates, quote, unevaluated, wrong_count, wrong_kind
from mcheck.cat.scanner import Source
from mcheck.cat.scope import (
    ALL,
    BUILTIN,
    ZERO,
    Entry,
    Function,
    Items,
    Param,
    Primitive,
    Scope,
    initial_scope,
    kind_word,
    lookup,
    words_of_kind,
)
from mcheck.cat.syntax import Binary, Binding, Call, Condition, Expr, Fun, If, LetIn, Match, Name, Try, Unary, Zero
from mcheck.cat.syntax import Items as RawItems

LIMIT: Final = 20_000
"""The most operators that one definition may have once its calls are inlined."""

MODEL_LIMIT: Final = 50_000
"""The most statements, files and operators that a model may have once includes are spliced and calls inlined."""
CLOSURE: Final = 25
"""For how many of them a function or a procedure counts, which keeps the names of its surroundings."""
CALLS: Final = 50
"""How deep calls may nest, which bounds functions that call themselves."""

_KIND_CODES: Final = frozenset({"CAT021", "CAT022", "CAT023"})


class Evaluator:
    """The values of expressions in a scope, and the definitions that they add to the model."""

    def __init__(self) -> None:
        self.scope = initial_scope()
        self.statements: list[Statement] = []
        self.bodies: dict[int, Node] = {}
        """What each variable of a definition that is not recursive stands for, by its uid."""
        self.open: frozenset[int] = frozenset()
        """The variables of recursive definitions that are being read."""
        self.uid = 0
        self.budget = LIMIT
        self.room = MODEL_LIMIT
        self.calls = 0
        self.inlined = False

    def grow(self, source: Source, start: int, end: int, count: int = 1) -> None:
        """One more piece of the model, which stands there; includes and calls can double it again and again."""
        self.room -= count
        if self.room < 0:
            raise error("CAT044", source.span(start, end), limit=MODEL_LIMIT)

    def fresh(self) -> int:
        self.uid += 1
        return self.uid - 1

    # --- values ----------------------------------------------------------------------------------

    def whole(self, raw: Expr, source: Source) -> Node:
        """A complete set or relation; what inlining made of it stays within bounds."""
        return self.node(self.whole_value(raw, source), raw, source)

    def whole_value(self, raw: Expr, source: Source) -> Entry:
        """A complete expression of any type."""
        self.inlined = False
        value = self.value(raw, self.scope, source)
        if isinstance(value, Node):
            self.bounded(value, raw, source)
        return value

    def bounded(self, node: Node, raw: Expr, source: Source) -> None:
        """An error at ``raw`` if inlining made too much of it."""
        if self.inlined and size_of(node) > LIMIT:
            raise error("CAT030", source.span(raw.start, raw.end), limit=LIMIT)

    def expr(self, raw: Expr, scope: Scope, source: Source) -> Node:
        """A set or a relation."""
        return self.node(self.value(raw, scope, source), raw, source)

    def node(self, value: Entry, raw: Expr, source: Source) -> Node:
        """``value``, which has to be a set or a relation."""
        if isinstance(value, Node):
            return value
        span = source.span(raw.start, raw.end)
        if isinstance(value, (Function, Primitive)):
            raise error("CAT026", span, what=quote(raw, source))
        raise error("CAT045", span, what=quote(raw, source), kind=kind_word(value), needed="set or a relation")

    def value(self, raw: Expr, scope: Scope, source: Source) -> Entry:
        """What ``raw`` stands for."""
        if isinstance(raw, Name):
            entry = lookup(raw, scope, source)
            if isinstance(entry, Base):
                return Base(entry.name, entry.kind, source.span(raw.start, raw.end))
            if isinstance(entry, Var):
                return Var(entry.uid, entry.name, entry.kind, source.span(raw.start, raw.end))
            assert not isinstance(entry, Param)
            return entry
        self.grow(source, raw.start, raw.end)
        self.budget -= 1
        if self.budget < 0:
            raise error("CAT030", source.span(raw.start, raw.end), limit=LIMIT)
        if isinstance(raw, Binary):
            return self.binary(raw, scope, source)
        if isinstance(raw, Unary):
            return self.unary(raw, scope, source)
        if isinstance(raw, Zero):
            return ZERO
        if isinstance(raw, Call):
            return self.apply(raw, scope, source)
        if isinstance(raw, LetIn):
            return self.let_in(raw, scope, source)
        return self.functional(raw, scope, source)

    def functional(self, raw: RawItems | Fun | Try | If | Match, scope: Scope, source: Source) -> Entry:
        """What is no operator on sets and relations."""
        if isinstance(raw, RawItems):
            if raw.braces and not raw.items:
                return ZERO
            return Items(raw.braces, tuple(self.value(item, scope, source) for item in raw.items))
        if isinstance(raw, Fun):
            self.grow(source, raw.start, raw.end, CLOSURE)
            no_duplicates(raw.params, source)
            names = tuple(param.text for param in raw.params)
            return Function("fun", names, [None] * len(names), None, raw.body, source, dict(scope))
        if isinstance(raw, Try):
            calls = self.calls
            try:
                return self.value(raw.body, scope, source)
            except InputError as problem:
                if problem.code != "CAT020":
                    raise
                self.calls = calls
            return self.value(raw.other, scope, source)
        if isinstance(raw, If):
            return self.value(raw.yes if self.holds(raw.condition, scope, source) else raw.no, scope, source)
        return self.match(raw, scope, source)

    def unary(self, raw: Unary, scope: Scope, source: Source) -> Node:
        arg = self.expr(raw.arg, scope, source)
        if raw.op == "~":
            if arg is ZERO or arg is ALL:
                return ALL if arg is ZERO else ZERO
        else:
            arg = self.of_kind(SET if raw.op == "[]" else REL, raw.op, arg, raw.arg, source)
        return unary(raw.op, arg, source.span(raw.start, raw.end))

    def binary(self, raw: Binary, scope: Scope, source: Source) -> Entry:
        one, other = self.value(raw.left, scope, source), self.value(raw.right, scope, source)
        op = raw.op
        if op == "++":
            return self.added(raw, one, other, source)
        if op == "|" and _listed(one) and _listed(other) and (one is not ZERO or other is not ZERO):
            return _set_of((*_members(one), *_members(other)))
        left, right = self.node(one, raw.left, source), self.node(other, raw.right, source)
        if op == ";":
            left = self.of_kind(REL, op, left, raw.left, source)
            right = self.of_kind(REL, op, right, raw.right, source)
        elif op == "*":
            left = self.of_kind(SET, op, left, raw.left, source)
            right = self.of_kind(SET, op, right, raw.right, source)
        elif left is ZERO or left is ALL:
            if right is ZERO or right is ALL:
                folded = binary(op, words_of_kind(left, SET), words_of_kind(right, SET))
                return ZERO if isinstance(folded, Empty) else ALL
            left = words_of_kind(left, right.kind)
        elif right is ZERO or right is ALL:
            right = words_of_kind(right, left.kind)
        elif left.kind is not right.kind:
            lone = raw.left if left.kind is SET else raw.right
            words = {
                "left": quote(raw.left, source),
                "left_kind": left.kind.value,
                "right": quote(raw.right, source),
                "right_kind": right.kind.value,
            }
            hint = f"write [{quote(lone, source)}] for the identity on that set"
            raise error("CAT023", source.span(lone.start, lone.end), what=op, hint=hint, **words)
        return binary(op, left, right, source.span(raw.start, raw.end))

    def added(self, raw: Binary, element: Entry, rest: Entry, source: Source) -> Entry:
        """``element ++ rest``, a set with one member more."""
        if _listed(rest):
            return _set_of((element, *_members(rest)))
        raise unevaluated(raw, quote(raw, source), "it adds to a set that depends on the execution", source)

    def match(self, raw: Match, scope: Scope, source: Source) -> Entry:
        subject = self.value(raw.subject, scope, source)
        if not _listed(subject):
            why = "its cases depend on the execution"
            raise unevaluated(raw, f"match {quote(raw.subject, source)}", why, source)
        members = _members(subject)
        if not members:
            return self.value(raw.empty, scope, source)
        inner = dict(scope)
        _bind(inner, raw.element, members[0])
        _bind(inner, raw.rest, _set_of(members[1:]))
        return self.value(raw.body, inner, source)

    def holds(self, condition: Condition, scope: Scope, source: Source) -> bool:
        """The truth of a condition. No variant is on; of sets only what is so in every execution is known."""
        truth = evaluate_condition(condition)
        if truth is not None:
            return truth
        if condition.op == "not":
            return not self.holds(condition.parts[0], scope, source)
        if condition.op in ("&&", "||"):
            parts = (self.holds(part, scope, source) for part in condition.parts)
            return all(parts) if condition.op == "&&" else any(parts)
        left, right = (self.expr(operand, scope, source) for operand in condition.operands)
        if condition.op != "in" and (left == right or (isinstance(left, Empty) and isinstance(right, Empty))):
            return True
        if condition.op == "subset" and isinstance(left, Empty):
            return True
        text = " ".join(source.text[condition.start : condition.end].split())
        span = source.span(condition.start, condition.end)
        raise error("CAT046", span, what=text, why="whether it holds depends on the execution")

    # --- functions -------------------------------------------------------------------------------

    def function(self, binding: Binding, scope: Scope, source: Source) -> Function:
        """Names of the body are resolved here, kinds as far as the operators around the parameters tell."""
        assert binding.params is not None
        params = [Param(param.text) for param in binding.params]
        closure = dict(scope)
        inner: Scope = dict(closure)
        inner.update((param.name, param) for param in params if param.name != "_")
        name = binding.name.text
        if name not in inner and mentions_itself(binding):
            raise error("CAT029", source.span(binding.name.start, binding.name.end), what=name)
        resolve(binding.body, inner, source)
        result = None
        for _ in (*params, None):
            result = infer(binding.body, inner, result)
        names = tuple(param.name for param in params)
        return Function(name, names, [param.kind for param in params], result, binding.body, source, closure)

    def recursive_functions(self, bindings: tuple[Binding, ...], scope: Scope, source: Source) -> Scope:
        """Functions that know each other, by name."""
        names = {binding.name.text: Param(binding.name.text) for binding in bindings}
        functions = {
            name: self.function(b, {**scope, **names}, source) for name, b in zip(names, bindings, strict=True)
        }
        for function in functions.values():
            function.scope.update(functions)
        return dict(functions)

    def apply(self, call: Call, scope: Scope, source: Source) -> Entry:
        function = self.value(call.function, scope, source)
        if isinstance(function, Primitive):
            args = tuple(self.value(arg, scope, source) for arg in call.args)
            if len(args) == 1 and isinstance(args[0], Items) and not args[0].braces:
                args = args[0].items
            value = apply_primitive(function.name, args)
            if value is None:
                why = f"{function.name} of this depends on the execution"
                raise unevaluated(call, quote(call, source), why, source)
            return value
        if not isinstance(function, Function):
            name = call.function
            hint = None
            if isinstance(function, (Base, Var, Op1, Op2)):
                hint = "is an operator missing after it?"
            words = {"what": quote(name, source), "kind": kind_word(function), "needed": "function"}
            raise error("CAT025", source.span(name.start, name.end), hint=hint, **words)
        return self.inline(call, function, self.arguments(call, function, scope, source), source)

    def arguments(self, call: Call, function: Function, scope: Scope, source: Source) -> list[Entry]:
        """The values of a call's arguments, of the kinds that the function needs."""
        values: list[Entry] = []
        for arg in call.args:
            values.append(self.value(arg, scope, source))
        raws: Sequence[Expr] = call.args
        (lone,) = values if len(values) == 1 else (None,)
        if isinstance(lone, Items) and not lone.braces and len(function.params) > 1:
            values, raws = list(lone.items), call.args * len(lone.items)
        elif len(values) > 1 and len(function.params) == 1 and function.kinds[0] is None and function.body is not None:
            values, raws = [Items(braces=False, items=tuple(values))], call.args[:1]
        if len(values) != len(function.params):
            raise wrong_count(call.function, function.params, len(values), source)
        for index, (raw, kind) in enumerate(zip(raws, function.kinds, strict=True)):
            if kind is not None:
                node = self.node(values[index], raw, source)
                values[index] = self.of_kind(kind, function.name, node, raw, source)
        return values

    def inline(self, call: Call, function: Function, args: list[Entry], source: Source) -> Entry:
        """The body of ``function`` with ``args`` for its parameters."""
        if function.body is None or function.source is None:
            (arg,) = args
            node = self.node(arg, call.args[0], source)
            return unary(BUILTIN[function.name][1], node, source.span(call.start, call.end))
        inner: Scope = dict(function.scope)
        inner.update((name, arg) for name, arg in zip(function.params, args, strict=True) if name != "_")
        self.inlined = True
        self.calls += 1
        if self.calls > CALLS:
            raise unevaluated(call, quote(call, source), f"its calls nest more than {CALLS} deep", source)
        try:
            value = self.value(function.body, inner, function.source)
        except InputError as problem:
            if problem.code in _KIND_CODES and problem.hint is not None and "in the call" not in problem.hint:
                line = source.span(call.start, call.end).line
                problem.hint += f"; in the call of {quote(call.function, source)} in line {line}"
            raise
        self.calls -= 1
        return value

    # --- definitions -----------------------------------------------------------------------------

    def let_in(self, raw: LetIn, scope: Scope, source: Source) -> Entry:
        no_duplicates(tuple(name for binding in raw.bindings for name in binding.names), source)
        inner = dict(scope)
        inner.update(self.bound(raw.recursive, raw.bindings, scope, source, lambda _, value: value))
        self.inlined = True
        return self.value(raw.body, inner, source)

    def bound(
        self,
        recursive: bool,
        bindings: tuple[Binding, ...],
        scope: Scope,
        source: Source,
        keep: Callable[[Name, Entry], Entry],
    ) -> Scope:
        """What definitions bind, by name. ``keep`` says what the name of a value stands for."""
        if recursive:
            if all(binding.params is not None for binding in bindings):
                return self.recursive_functions(bindings, scope, source)
            return self.let_rec(bindings, scope, source)
        entries: Scope = {}
        for binding in bindings:
            known = known_function(binding)
            if known is not None:
                entries[binding.name.text] = known
            elif binding.params is not None:
                entries[binding.name.text] = self.function(binding, scope, source)
            else:
                value = self.value(binding.body, scope, source)
                for name, part in zip(binding.names, self.parts(binding, value, source), strict=True):
                    if name.text != "_":
                        entries[name.text] = keep(name, part)
        return entries

    def parts(self, binding: Binding, value: Entry, source: Source) -> tuple[Entry, ...]:
        """``value`` for the names of a definition: its parts where there are several."""
        count = len(binding.names)
        if count == 1:
            return (value,)
        if isinstance(value, Items) and not value.braces and len(value.items) == count:
            return value.items
        span = source.span(binding.body.start, binding.body.end)
        what = quote(binding.body, source)
        raise error("CAT045", span, what=what, kind=kind_word(value), needed=f"tuple of {count}")

    def let_rec(self, bindings: tuple[Binding, ...], scope: Scope, source: Source) -> Scope:
        """Sets and relations that are the least solution of their definitions."""
        for binding in bindings:
            if binding.params is not None or len(binding.names) > 1:
                span = source.span(binding.name.start, binding.name.end)
                raise error("CAT029", span, what=binding.name.text)
        inner = dict(scope)
        variables: list[Var] = []
        for binding, kind in zip(bindings, _recursive_kinds(bindings, scope), strict=True):
            name = binding.name
            var = Var(self.fresh(), name.text, kind, source.span(name.start, name.end))
            variables.append(var)
            inner[name.text] = var
        uids = frozenset(var.uid for var in variables)
        around, self.open = self.open, self.open | uids
        lets: list[Let] = []
        for binding, var in zip(bindings, variables, strict=True):
            body = words_of_kind(self.expr(binding.body, inner, source), var.kind)
            self.bounded(body, binding.body, source)
            if body.kind is not var.kind:
                raise wrong_kind(f"the recursive {var.name}", binding.body, source, var.kind)
            if uses(body, around):
                why = "it is recursive inside a recursive definition that it uses"
                raise unevaluated(binding.name, var.name, why, source)
            lets.append(Let(var, body))
        self.open = around
        recursive = False
        for let in lets:
            recursive |= check_monotone(let.body, uids, None)
        self.statements.extend([LetRec(tuple(lets))] if recursive else lets)
        return {var.name: var for var in variables}

    def of_kind(self, kind: Kind, what: str, node: Node, raw: Expr, source: Source) -> Node:
        """``node``, which has to be of ``kind``."""
        node = words_of_kind(node, kind)
        if node.kind is not kind:
            raise wrong_kind(what, raw, source, kind)
        return node


def _recursive_kinds(bindings: tuple[Binding, ...], around: Scope) -> list[Kind]:
    """The kinds of names that occur in their own bodies: what the other operands leave no choice about."""
    scope: Scope = dict(around)
    params = [Param(binding.name.text) for binding in bindings]
    scope.update((param.name, param) for param in params)
    for _ in bindings:
        for param, binding in zip(params, bindings, strict=True):
            kind = infer(binding.body, scope, param.kind)
            param.kind = param.kind or kind
    return [param.kind or REL for param in params]


def _listed(value: Entry) -> bool:
    """A set whose members are known one by one."""
    return isinstance(value, Empty) or (isinstance(value, Items) and value.braces)


def _members(value: Entry) -> tuple[Entry, ...]:
    return value.items if isinstance(value, Items) else ()


def _set_of(members: tuple[Entry, ...]) -> Entry:
    """The set of these members, each once."""
    kept: list[Entry] = []
    for member in members:
        if member not in kept:
            kept.append(member)
    return Items(braces=True, items=tuple(kept)) if kept else ZERO


def _bind(scope: Scope, name: Name, value: Entry) -> None:
    if name.text != "_":
        scope[name.text] = value
