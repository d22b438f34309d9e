"""The checker of cat statements: from syntax tree to ``Model``. ``mcheck.cat.evaluate`` checks the expressions.

Shadowing follows the order of the text, so ``let co = co+`` means what it says. Functions see the names that were
defined before them, not those before their call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from mcheck.cat.ast import Base, Check, Empty, Let, Model, Node, Op1, Op2, Var
from mcheck.cat.evaluate import CLOSURE, LIMIT, Evaluator
from mcheck.cat.fold import NO_REL, REL, binary
from mcheck.cat.messages import error
from mcheck.cat.orders import CO, LOC, WRITES, beyond_co
from mcheck.cat.passes import without_unused
from mcheck.cat.quoting import no_duplicates, wrong_count, wrong_kind
from mcheck.cat.scanner import Source
from mcheck.cat.scope import ALL, Entry, Items, Orders, Procedure, kind_word, lookup, words_of_kind
from mcheck.cat.syntax import (
    CallStatement,
    File,
    IfStatement,
    IncludeStatement,
    LetStatement,
    Name,
    ProcedureStatement,
    ShowStatement,
    TestStatement,
    WithStatement,
)
from mcheck.cat.syntax import Statement as RawStatement

CHARACTERS: Final = 1000
"""So many characters of an included file count for one of them."""

Include = Callable[[IncludeStatement, Source, tuple[str, ...]], tuple[File, str]]
"""Finds the file of an ``include``. The tuple is the chain of files being read, the string the file's link in it."""


class Vocabulary(Protocol):
    """The definitions that the words of a file ask for: what another architecture's names stand for."""

    def __call__(self, file: File, *, own: bool) -> list[File]: ...


class Checker(Evaluator):
    """Checks one model: its file, what it includes, and the standard library before it."""

    def __init__(self, include: Include, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.include = include
        self.vocabulary = vocabulary
        self.shows: dict[str, Var | Base] = {}
        self.options: dict[str, str] = {}
        self.library: set[int] = set()  # uids of definitions that are left out where nothing uses them
        self.spoken: set[str] = set()
        """The vocabularies that have been read."""
        self.chain: tuple[str, ...] = ()
        """The files being read, the model's own first."""
        self.final: Entry | None = None
        """The set of final writes as the standard library defines it."""

    # --- statements ------------------------------------------------------------------------------

    def file(self, file: File, chain: tuple[str, ...] = (), *, library: bool = False) -> None:
        """Adds the statements of ``file``; definitions of a ``library`` count only where they are used."""
        first = self.uid
        for key, value in file.options:
            self.options[key] = value
        for words in [] if library else self.vocabulary(file, own=len(chain) == 1):
            if words.source.path not in self.spoken:
                self.spoken.add(words.source.path)
                self.file(words, library=True)
        around, self.chain = self.chain, chain
        for statement in file.statements:
            self.top(statement, file.source)
        self.chain = around
        if library:
            self.library.update(range(first, self.uid))

    def top(self, statement: RawStatement, source: Source) -> None:
        """A statement where files may be included."""
        self.budget = LIMIT
        if isinstance(statement, IncludeStatement):
            inner, link = self.include(statement, source, self.chain)
            self.grow(source, statement.start, statement.end, 1 + len(inner.source.text) // CHARACTERS)
            self.file(inner, (*self.chain, link))
        elif isinstance(statement, IfStatement):
            taken = statement.yes if self.holds(statement.condition, self.scope, source) else statement.no
            for inside in taken:
                self.top(inside, source)
        else:
            self.statement(statement, source)

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
        elif isinstance(statement, WithStatement):
            self.with_from(statement, source)
        elif isinstance(statement, IfStatement):
            taken = statement.yes if self.holds(statement.condition, self.scope, source) else statement.no
            for inside in taken:
                self.statement(inside, source)
        else:
            raise error("CAT043", source.span(statement.start, statement.end))

    def let(self, statement: LetStatement, source: Source) -> None:
        bindings = statement.bindings
        no_duplicates(tuple(name for binding in bindings for name in binding.names), source)
        for binding in bindings:
            weight = 1 if binding.params is None else CLOSURE
            self.grow(source, binding.name.start, binding.name.end, weight)
            if binding.params is not None:
                no_duplicates(binding.params, source)
        self.inlined = False

        def keep(name: Name, value: Entry) -> Entry:
            return self.define(name, value, source)

        self.scope.update(self.bound(statement.recursive, bindings, self.scope, source, keep))

    def define(self, name: Name, value: Entry, source: Source) -> Entry:
        """Emits ``let name = value`` for a set or a relation; the entry is ``value`` itself where that is a name."""
        if not isinstance(value, Node):
            return value
        self.bounded(value, name, source)
        var = Var(self.fresh(), name.text, value.kind, source.span(name.start, name.end))
        body = words_of_kind(value, value.kind)
        self.statements.append(Let(var, body))
        self.bodies[var.uid] = body
        if value is ALL or isinstance(value, (Base, Var, Empty)):
            return value
        return var

    def with_from(self, statement: WithStatement, source: Source) -> None:
        """An execution supplies the total orders of the writes of each location; ``co`` may be one of them."""
        name = statement.name
        self.grow(source, statement.start, statement.end)
        value = self.whole_value(statement.body, source)
        if isinstance(value, Items) and value.braces and len(value.items) == 1:
            self.scope[name.text] = self.define(name, value.items[0], source)
            return
        span = source.span(statement.start, statement.end)
        if name.text != "co" or not isinstance(value, Orders) or value.of != WRITES:
            raise error("CAT047", span, what=name.text)
        writes = binary("&", Op2("*", WRITES, WRITES, REL), LOC)
        both = Op2("|", CO, Op1("^-1", CO, REL), REL)
        distinct = binary("\\", writes, Base("id", REL))
        self.statements.append(Check("empty", False, binary("\\", distinct, both), "CoTotal", span=span))
        beyond = beyond_co(value.order, self.bodies, self.final)
        demanded = binary("\\", binary("&", beyond, writes), CO)
        if beyond != NO_REL:
            self.statements.append(Check("empty", False, demanded, "CoExtends", span=span))
        self.scope["co"] = CO

    def test(self, statement: TestStatement, source: Source) -> None:
        self.grow(source, statement.start, statement.end)
        body = self.whole(statement.body, source)
        body = words_of_kind(body, body.kind)
        if statement.test != "empty" and body.kind is not REL:
            raise wrong_kind(statement.test, statement.body, source, REL)
        name = statement.name
        if name is None:
            name = " ".join(source.text[statement.start : statement.end].split())
        span = source.span(statement.start, statement.end)
        self.statements.append(Check(statement.test, statement.negated, body, name, statement.flag, span))

    def show(self, statement: ShowStatement, source: Source) -> None:
        for expr, name in statement.items:
            if isinstance(expr, Name) and expr.text not in self.scope and len(self.chain) > 1:
                continue  # a file that serves several models shows what one of them has
            if statement.hide:
                self.value(expr, self.scope, source)
                self.shows.pop(name, None)
                continue
            node = self.whole(expr, source)
            node = words_of_kind(node, node.kind)
            if isinstance(node, (Base, Var)) and node.name == name:
                self.shows[name] = node
                continue
            var = Var(self.fresh(), name, node.kind, source.span(expr.start, expr.end))
            self.statements.append(Let(var, node))
            self.shows[name] = var

    def procedure(self, statement: ProcedureStatement, source: Source) -> None:
        no_duplicates(statement.params, source)
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
        args = [self.value(arg, self.scope, source) for arg in statement.args]
        if len(args) != len(procedure.params):
            raise wrong_count(name, procedure.params, len(args), source)
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
