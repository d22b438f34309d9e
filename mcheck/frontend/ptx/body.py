"""Parser of function bodies: statements, labels, nested blocks and the directives between them (PTX ISA 4.2, 4.3, 11).

One regular expression matches any statement, and operands with equal text are parsed once per block. Both are for
speed: a module has tens of thousands of lines.
"""

from __future__ import annotations

import re

from mcheck.base.errors import InputError, Span
from mcheck.base.records import dataclass, replace
from mcheck.frontend.litmus.codes import suggest
from mcheck.frontend.litmus.error_recovery import Mistakes
from mcheck.frontend.litmus.source import Source
from mcheck.frontend.ptx import declarations
from mcheck.frontend.ptx.cursor import DIRECTIVE, END, NAME, NUMBER, STRING, Cursor, line_span
from mcheck.frontend.ptx.module import (
    Arguments,
    Guard,
    Label,
    Operand,
    Prototype,
    Register,
    SourceLine,
    Statement,
    Symbol,
    Variable,
)
from mcheck.frontend.ptx.names import FunctionNames, Scope
from mcheck.frontend.ptx.operands import parse_operand, parse_operands, undeclared_error
from mcheck.frontend.ptx.problems import problem
from mcheck.frontend.ptx.source_lines import LOC, InlineAssembly, Lines
from mcheck.isa.kinds import BRANCHES, Kind
from mcheck.isa.opcode import Opcode, read_opcode

_STATEMENT = re.compile(
    r"\s*+(?:"
    r"(?:@\s*+(?P<negated>!?)\s*+(?P<guard>[A-Za-z_$%][\w$]*+)\s*+)?+"
    r"(?P<opcode>[a-z][a-z0-9_]*+(?=[\s.;{(\[@!_])(?!\s*+:(?!:))(?:\s*+\.[A-Za-z0-9_:]++)*+)"
    r"(?P<operands>[^;{}\"]*+(?:\{[^{};\"]*+\}[^;{}\"]*+)*+);"
    r"|(?P<label>[A-Za-z_$%][\w$]*+)\s*+:(?!:)"
    r"|(?P<open>\{)"
    r"|(?P<close>\})"
    r"|(?P<directive>\.[A-Za-z_][\w$]*+)"
    r")",
    re.ASCII,
)
_MAX_DEPTH = 256
_MODULE_DIRECTIVES = (".entry", ".func", ".version", ".target")
_FATAL = ("PTX008", "PTX009", "PTX028")
"""Errors after which the structure of the text is unknown."""
_LABEL_LISTS = (".branchtargets", ".calltargets", ".callprototype")


@dataclass(slots=True)
class Body:
    """The contents of a function body."""

    statements: list[Statement]
    labels: dict[str, int]
    branch_targets: dict[str, tuple[str, ...]]
    call_targets: dict[str, tuple[str, ...]]
    prototypes: dict[str, Prototype]
    pragmas: list[str]
    end: int
    """The offset after the closing brace."""


@dataclass(slots=True)
class _Pending:
    """A use of a label, which may come before its definition."""

    statement: int
    operand: int
    name: str
    scope: Scope
    span: Span


class BodyParser:
    """Parser of the body that begins at an offset, after its opening brace."""

    def __init__(
        self,
        source: Source,
        start: int,
        names: FunctionNames,
        scope: Scope,
        lines: Lines,
        title: str,
        mistakes: Mistakes,
    ) -> None:
        self._source = source
        self._clean = source.clean
        self._at = start
        self._start = start
        self._title = title
        self._names = names
        self._scope = Scope(names, scope, start)
        self._lines = lines
        self._assembly = InlineAssembly(source.text, start)
        self._line: SourceLine | None = None
        self._pending: list[_Pending] = []
        self._lists: list[tuple[str, list[tuple[str, Scope, Span]]]] = []
        self._opcodes: dict[str, Opcode] = {}
        self._guards: dict[tuple[str, str, Scope], Guard] = {}
        self._depth = 1
        self._mistakes = mistakes
        self._told: set[str] = set()
        self._doubtful: set[str] = set()
        self._body = Body([], {}, {}, {}, {}, [], start)

    def parse(self) -> Body:
        """Parse the body; incomplete if there were errors. Raises ``InputError`` where parsing cannot continue."""
        match_at, clean = _STATEMENT.match, self._clean
        while self._depth:
            match = match_at(clean, self._at)
            if match is None:
                raise self._syntax_error()
            self._at = match.end()
            try:
                match match.lastgroup:
                    case "operands":
                        self._parse_statement(match)
                    case "directive":
                        self._parse_directive(match["directive"], match.start("directive"))
                    case "label":
                        self._define_label(match["label"], match.start("label"))
                    case "open":
                        self._open_block(match.start("open"))
                    case _:
                        self._depth -= 1
                        if self._depth:
                            assert self._scope.outer is not None
                            self._scope = self._scope.outer
            except InputError as error:
                self._recover(error, match)
        self._resolve_labels()
        self._body.end = self._at
        return self._body

    def _recover(self, error: InputError, match: re.Match[str]) -> None:
        """Record an error and continue after its statement. Errors that may follow from another one are dropped: a name
        that is undeclared once more, or after a broken declaration.
        """
        if error.code in _FATAL or (match.lastgroup == "directive" and match["directive"] in _MODULE_DIRECTIVES):
            raise error
        if match.lastgroup not in ("operands", "open"):
            end = self._clean.find("\n" if match["directive"] == ".loc" else ";", self._at)
            if end < 0:
                raise error
            if match["directive"] != ".loc":
                self._doubtful |= {"PTX030", "PTX031"} if match.lastgroup == "label" else {"PTX030"}
            self._at = end + 1
        self._report(error)

    def _report(self, error: InputError) -> None:
        """Record an error, unless it is a name that is undeclared because of another error."""
        key = f"{error.code} {error.message}"
        if error.code not in ("PTX030", "PTX031") or (key not in self._told and error.code not in self._doubtful):
            self._mistakes.add(error)
        self._told.add(key)

    # --- statements -------------------------------------------------------------------------------------------

    def _parse_statement(self, match: re.Match[str]) -> None:
        written = match["opcode"]
        opcode = self._opcodes.get(written)
        if opcode is None:
            opcode = self._opcodes[written] = read_opcode(tuple("".join(written.split()).split(".")))
        guard = self._parse_guard(match) if match["guard"] is not None else None
        start = match.start() + len(match[0]) - len(match[0].lstrip())
        first, last = match.span("operands")
        if opcode.kind in BRANCHES:
            given = self._parse_branch(opcode.kind, first, last)
        elif opcode.kind is Kind.CALL:
            given = self._parse_call(first, last)
        else:
            given = parse_operands(self._source, first, last, self._scope)
        self._body.statements.append(
            Statement(
                opcode,
                given,
                guard,
                " ".join(self._clean[start:last].split()),
                line_span(self._source, start, last),
                self._line,
                None if "\n" in self._clean[start : match.start("opcode")] else match.start("opcode") - start,
            )
        )

    def _parse_guard(self, match: re.Match[str]) -> Guard:
        name = match["guard"]
        key = (match["negated"], name, self._scope)
        found = self._guards.get(key)
        if found is None:
            register = self._scope.find(name)
            start = match.start("guard")
            if register is None:
                raise undeclared_error(self._cursor_at(start, match.end()), self._scope, name, start)
            if not isinstance(register, Register) or register.type != "pred":
                kind = register.type if isinstance(register, Register) else "none"
                raise problem("PTX034", line_span(self._source, start, start + len(name)), name=name, type=kind)
            found = self._guards[key] = Guard(register, key[0] == "!")
        return found

    def _cursor_at(self, start: int, end: int) -> Cursor:
        return Cursor(self._source, start, end)

    def _parse_label_use(self, cursor: Cursor, position: int) -> Label:
        """Parse the name of a label, which is resolved at the end of the function."""
        name, span = cursor.text, cursor.span()
        cursor.take(NAME, "a label")
        self._pending.append(_Pending(len(self._body.statements), position, name, self._scope, span))
        return Label(name)

    def _parse_branch(self, kind: Kind, first: int, last: int) -> tuple[Operand, ...]:
        cursor = self._cursor_at(first, last)
        found: list[Operand] = []
        if kind is Kind.INDEXED_BRANCH:
            found.append(parse_operand(cursor, self._scope))
            cursor.expect(",")
        found.append(self._parse_label_use(cursor, len(found)))
        if cursor.kind != END:
            raise cursor.unexpected("';'")
        return tuple(found)

    def _parse_call(self, first: int, last: int) -> tuple[Operand, ...]:
        """Parse ``call (ret), f, (a, b), prototype``, in which all but the callee are optional."""
        cursor = self._cursor_at(first, last)
        found: list[Operand] = []
        if cursor.text == "(":
            found.append(self._parse_arguments(cursor))
            cursor.expect(",")
        name, start = cursor.text, cursor.start
        cursor.take(NAME, "a function, or a register with its address")
        callee = self._scope.find(name)
        if callee is None:
            if name != "vprintf":  # declared by the assembler itself
                raise undeclared_error(cursor, self._scope, name, start)
            callee = Symbol(name)
        if not isinstance(callee, Symbol | Register):
            raise problem("PTX033", line_span(self._source, start, cursor.last), found=name, expected="a function")
        found.append(callee)
        if cursor.accept(","):
            if cursor.text == "(":
                found.append(self._parse_arguments(cursor))
                if cursor.accept(","):
                    found.append(self._parse_label_use(cursor, len(found)))
            else:
                found.append(self._parse_label_use(cursor, len(found)))
        if cursor.kind != END:
            raise cursor.unexpected("',' or ';'")
        return tuple(found)

    def _parse_arguments(self, cursor: Cursor) -> Arguments:
        cursor.expect("(")
        items: list[Operand] = []
        while not cursor.accept(")"):
            items.append(parse_operand(cursor, self._scope))
            if not cursor.accept(","):
                cursor.expect(")", "',' or ')'")
                break
        return Arguments(tuple(items))

    # --- labels and blocks ----------------------------------------------------------------------------------------

    def _define_label(self, name: str, start: int) -> None:
        cursor = self._cursor_at(self._at, len(self._clean))
        if cursor.text in _LABEL_LISTS:
            self._parse_label_list(cursor, name, start)
            return
        self._body.labels[self._declare_label(name, start)] = len(self._body.statements)

    def _declare_label(self, name: str, start: int) -> str:
        if name in self._scope.labels:
            raise problem("PTX032", line_span(self._source, start, start + len(name)), name=name)
        found = self._names.unique(name)
        self._scope.labels[name] = found
        return found

    def _parse_label_list(self, cursor: Cursor, name: str, start: int) -> None:
        """Parse ``.branchtargets L0, L1;`` and similar lists after their label."""
        known = self._declare_label(name, start)
        word = cursor.text
        cursor.advance()
        if word == ".callprototype":
            self._body.prototypes[known] = self._parse_prototype(cursor)
        else:
            found: list[tuple[str, Scope, Span]] = []
            while True:
                span = cursor.span()
                found.append((cursor.take(NAME, "a name"), self._scope, span))
                if not cursor.accept(","):
                    break
            if word == ".calltargets":
                self._body.call_targets[known] = tuple(target for target, _, _ in found)
            else:
                self._lists.append((known, found))
        cursor.expect(";", "',' or ';'")
        self._at = cursor.last

    def _parse_prototype(self, cursor: Cursor) -> Prototype:
        returns = declarations.parse_parameters(cursor) if cursor.text == "(" else ()
        cursor.expect("_")
        parameters = declarations.parse_parameters(cursor) if cursor.text == "(" else ()
        noreturn = False
        while cursor.kind == DIRECTIVE:
            noreturn |= cursor.text == ".noreturn"
            cursor.advance()
            while cursor.text != ";" and cursor.kind not in (DIRECTIVE, END):
                cursor.advance()
        return Prototype(returns=returns, parameters=parameters, noreturn=noreturn)

    def _open_block(self, start: int) -> None:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise problem("PTX028", self._source.span(start), expected=f"at most {_MAX_DEPTH} levels")
        self._scope = Scope(self._names, self._scope, start)

    def _resolve_labels(self) -> None:
        """Resolve the labels, now that all are known."""
        body = self._body
        for use in self._pending:
            found = self._resolve_name(use.name, use.scope, use.span)
            if self._mistakes:
                continue  # the indices of the statements are wrong
            statement = body.statements[use.statement]
            given = list(statement.operands)
            given[use.operand] = Label(found)
            body.statements[use.statement] = replace(statement, operands=tuple(given))
        for name, targets in self._lists:
            body.branch_targets[name] = tuple(self._resolve_name(*target) for target in targets)

    def _resolve_name(self, name: str, scope: Scope, span: Span) -> str:
        try:
            return self._find_label(name, scope, span)
        except InputError as error:
            self._report(error)
            return name

    def _find_label(self, name: str, scope: Scope, span: Span) -> str:
        for here in scope.enclosing():
            if name in here.labels:
                return here.labels[name]
        hint = suggest(name, [label for here in scope.enclosing() for label in here.labels])
        raise problem("PTX031", span, name=name, hint=hint)

    # --- directives -------------------------------------------------------------------------------------------------

    def _parse_directive(self, word: str, start: int) -> None:
        if word == ".loc":
            match = LOC.match(self._clean, start)
            if match is None:
                expected = ".loc file line column"
                raise problem("PTX010", line_span(self._source, start, start + 4), found="'.loc'", expected=expected)
            if not self._assembly.counts_lines(start):
                self._line = self._lines.take(match)
            self._at = match.end()
            return
        cursor = self._cursor_at(self._at, len(self._clean))
        name = word[1:]
        linkage = ""
        if name in declarations.LINKAGES:
            linkage, name = name, cursor.text[1:]
            cursor.advance()
        if name == "reg":
            declarations.parse_registers(cursor, self._scope)
        elif name in declarations.SPACES:
            for variable in declarations.parse_variables(cursor, name, linkage, self._scope):
                self._declare_variable(variable)
        elif name == "pragma":
            self._body.pragmas += parse_pragmas(cursor)
        elif name in ("file", "section"):
            skip_debug_directive(cursor, name)
        else:
            self._reject_directive(word, start)
        self._at = cursor.last

    def _declare_variable(self, variable: Variable) -> None:
        known = self._scope.declare_variable(variable.name, variable.span)
        self._names.variables[known] = replace(variable, name=known)

    def _reject_directive(self, word: str, start: int) -> None:
        span = line_span(self._source, start, start + len(word))
        if word in _MODULE_DIRECTIVES:
            raise self._unclosed_error(span)
        known = [f".{name}" for name in (*declarations.SPACES, "loc", "pragma", "branchtargets")]
        hint = suggest(word, known)
        raise problem("PTX025", span, found=word, expected="a directive or an instruction", hint=hint)

    # --- what is wrong ------------------------------------------------------------------------------------------------

    def _unclosed_error(self, span: Span | None) -> InputError:
        scope = self._scope
        line = self._source.span(scope.start).line
        what = self._title if self._depth == 1 else f"a block of {self._title}"
        return problem("PTX008", span, what=what, line=line, expected="'}'")

    def _syntax_error(self) -> InputError:
        """The error where no statement matches."""
        clean = self._clean
        cursor = self._cursor_at(self._at, len(clean))
        if cursor.kind == END:
            return self._unclosed_error(self._source.span(max(len(clean.rstrip()) - 1, 0)))
        start = cursor.start
        if cursor.text == "@":
            cursor.advance()
            cursor.accept("!")
            if cursor.kind != NAME:
                return cursor.unexpected("a predicate register")
            cursor.advance()
        if cursor.kind != NAME or not cursor.text[0].islower():
            return cursor.unexpected("an instruction, a directive, a label, '{' or '}'")
        cursor.advance()
        end, line_end = clean.find(";", cursor.start), clean.find("\n", start)
        if end < 0:
            where = self._source.span(max(len(clean.rstrip()) - 1, 0))
            return problem("PTX009", where, expected="';' after the instruction")
        quote = clean.find('"', start, end)
        if quote >= 0:
            return problem("PTX010", self._source.span(quote), found="a string", expected="an operand or ';'")
        text_end = line_end if 0 <= line_end < end else end
        brace = next((k for k in range(cursor.start, end) if clean[k] in "{}"), text_end)
        hint = "a semicolon may be missing" if line_end >= 0 and line_end < end else None
        span = self._source.span(min(brace, len(clean) - 1))
        return problem("PTX010", span, found=f"'{clean[brace]}'", expected="operands and ';'", hint=hint)


def parse_pragmas(cursor: Cursor) -> list[str]:
    """Parse the strings after ``.pragma``: ``"nounroll";``."""
    found = [cursor.take(STRING, "a string")[1:-1]]
    while cursor.accept(","):
        found.append(cursor.take(STRING, "a string")[1:-1])
    cursor.expect(";")
    return found


def skip_debug_directive(cursor: Cursor, name: str) -> None:
    """Skip what follows ``.file`` or ``.section``, which is for debuggers."""
    if name == "file":
        cursor.take(NUMBER, "a file number")
        while cursor.kind == STRING or cursor.text == ",":
            if cursor.accept(","):
                cursor.take(NUMBER, "a number")
            else:
                cursor.advance()
        return
    cursor.advance()
    end = cursor.source.clean.find("}", cursor.start)
    if cursor.text != "{":
        raise cursor.unexpected("'{'")
    if end < 0:
        line = cursor.span().line
        raise problem("PTX008", cursor.span(), what="a section", line=line, expected="'}'")
    cursor.seek(end)
    cursor.advance()
