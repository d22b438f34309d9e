"""Reader of PTX modules: header, variables and functions (PTX ISA 4, 11).

It accepts everything that NVIDIA's assembler accepts; whether an instruction exists is checked where it is executed.
"""

from __future__ import annotations

import re
from typing import Final

from mcheck.base.errors import Span
from mcheck.base.files import MEBIBYTE
from mcheck.base.records import replace
from mcheck.frontend.litmus.codes import suggest
from mcheck.frontend.litmus.error_recovery import Mistakes
from mcheck.frontend.litmus.source import Source, decode_source, read_source_bytes
from mcheck.frontend.ptx import declarations
from mcheck.frontend.ptx.body import Body, BodyParser, parse_pragmas, skip_debug_directive
from mcheck.frontend.ptx.cursor import COMMENTS, DIRECTIVE, END, NAME, NUMBER, Cursor
from mcheck.frontend.ptx.module import Function, Module, Parameter, Variable
from mcheck.frontend.ptx.names import FunctionNames, Scope
from mcheck.frontend.ptx.problems import problem
from mcheck.frontend.ptx.source_lines import Lines, debug_strings, file_table

MAX_BYTES: Final = 64 * MEBIBYTE
"""The largest modules that compilers emit have about ten."""

_PERFORMANCE: Final = (
    "maxnreg", "maxntid", "reqntid", "minnctapersm", "maxnctapersm", "noreturn", "pragma", "abi_preserve",
    "abi_preserve_control", "reqnctapercluster", "explicitcluster", "maxclusterrank", "blocksareclusters",
)  # fmt: skip
_BODY_DIRECTIVES: Final = (".reg", ".shared", ".local", ".param", ".loc")
"""Directives that only a body has."""
_MODULE_WORDS: Final = (
    "version", "target", "address_size", "file", "section", "alias", "pragma", "entry", "func", "visible", "extern",
    "weak", "common", "global", "const", "shared", "tex",
)  # fmt: skip
_ARCHITECTURE = re.compile(r"sm_\d+[af]?")


def read_module(path: str) -> Module:
    """Read the module in the file at ``path``; raises ``InputError``."""
    return parse_module(read_text(path), path)


def read_text(path: str) -> str:
    """The text of the file at ``path``; raises ``InputError`` if it cannot be read or is not text."""
    data = read_source_bytes(path, MAX_BYTES)
    if b"\0" in data.rstrip(b"\0"):
        hint = "cuobjdump -ptx extracts the PTX from a program or an object file"
        raise problem("PTX003", Span(path, 1, 1), hint=hint)
    return decode_source(data.rstrip(b"\0"), path, MAX_BYTES)


def parse_module(text: str, path: str = "<ptx>") -> Module:
    """Parse the module ``text``; ``path`` is for messages. Raises ``InputError``."""
    return _ModuleParser(Source(text, path, COMMENTS)).read()


class _ModuleParser:
    def __init__(self, source: Source) -> None:
        self._source = source
        self._clean = source.clean
        self._files = file_table(self._clean)
        self._strings = debug_strings(self._clean)
        self._variables: dict[str, Variable] = {}
        self._functions: dict[str, Function] = {}
        self._aliases: dict[str, str] = {}
        self._known: dict[str, object] = {}
        self._scope = Scope(FunctionNames(self._known), None, 0)
        self._pragmas: list[str] = []
        self._version = ""
        self._target: tuple[str, ...] = ()
        self._target_span: Span | None = None
        self._address_size = 32
        self._mistakes = Mistakes()

    def read(self) -> Module:
        cursor = Cursor(self._source, 0, len(self._clean))
        if cursor.kind == END:
            raise problem("PTX002", Span(self._source.path, 1, 1))
        if cursor.text != ".version":
            expected = "such as .version 8.7"
            raise problem("PTX006", cursor.span(), expected=expected)
        with self._mistakes:
            while cursor.kind != END:
                self._item(cursor)
            if self._mistakes:
                # imported here: a module without errors does not need it
                from mcheck.frontend.ptx.illegal_instructions import find_illegal

                for error in find_illegal(self._functions.values(), self._version):
                    self._mistakes.add(error)
        if not self._target:
            raise problem("PTX007", Span(self._source.path, 1, 1), expected="such as .target sm_90a")
        return Module(
            path=self._source.path,
            version=self._version,
            target=self._target[0],
            options=self._target[1:],
            address_size=self._address_size,
            variables=self._variables,
            functions=self._functions,
            aliases=self._aliases,
            files=self._files,
            pragmas=tuple(self._pragmas),
            target_span=self._target_span,
        )

    def _item(self, cursor: Cursor) -> None:
        start, word, span = cursor.start, cursor.text, cursor.span()
        if word == "@" and self._clean.startswith("@@", start):  # debugging information as older compilers write it
            newline = self._clean.find("\n", start)
            cursor.seek(len(self._clean) if newline < 0 else newline)
            return
        if cursor.kind != DIRECTIVE:
            hint = "there may be one '}' too many" if word == "}" else None
            raise cursor.unexpected("a directive, such as .entry or .global", hint)
        cursor.advance()
        linkage = ""
        name = word[1:]
        while name in declarations.LINKAGES:
            linkage, word, span = name, cursor.text, cursor.span()
            name = cursor.take(DIRECTIVE, ".entry, .func or a state space")[1:]
        match name:
            case "version":
                self._version = cursor.take(NUMBER, "a version, such as 8.7")
            case "target":
                self._targets(cursor)
            case "address_size":
                self._address_size = declarations.parse_integer(cursor)
            case "entry" | "func":
                self._function(cursor, linkage, entry=name == "entry")
            case "pragma":
                self._pragmas += parse_pragmas(cursor)
            case "file" | "section":
                skip_debug_directive(cursor, name)
            case "alias":
                self._alias(cursor)
            case _ if name in declarations.SPACES and name != "reg":
                for variable in declarations.parse_variables(cursor, name, linkage, self._scope):
                    self._declare(variable)
            case _:
                hint = suggest(word, [f".{known}" for known in _MODULE_WORDS])
                raise problem("PTX025", span, found=word, expected="such as .entry or .global", hint=hint)

    def _targets(self, cursor: Cursor) -> None:
        span = cursor.span()
        found = [cursor.take(NAME, "such as sm_90a")]
        if _ARCHITECTURE.fullmatch(found[0]) is None:
            raise problem("PTX010", span, found=f"'{found[0]}'", expected="a target, such as sm_90a")
        while cursor.accept(","):
            found.append(cursor.take(NAME, "such as debug"))
        self._target, self._target_span = tuple(found), span

    def _alias(self, cursor: Cursor) -> None:
        alias = cursor.take(NAME, "the name of a function")
        cursor.expect(",")
        span = cursor.span()
        target = cursor.take(NAME, "the name of a function")
        if target not in self._functions:
            hint = suggest(target, self._functions)
            raise problem("PTX030", span, name=target, expected="a function", hint=hint)
        cursor.expect(";")
        self._aliases[alias] = target
        self._known[alias] = target

    def _declare(self, variable: Variable) -> None:
        """Record a declaration, which may be repeated, ``.extern`` and without an initialiser first."""
        before = self._variables.get(variable.name)
        if before is not None:
            both = (before.linkage, variable.linkage)
            if before.initial is not None and variable.initial is not None:
                raise problem("PTX020", variable.span, name=variable.name)
            if (before.space, before.type) != (variable.space, variable.type):
                raise problem("PTX027", variable.span, name=variable.name, line=before.span.line)
            if "extern" not in both and "common" not in both and "weak" not in both:
                raise problem("PTX020", variable.span, name=variable.name)
            if variable.linkage == "extern" or (before.initial is not None and variable.initial is None):
                variable = before
        elif variable.name in self._known:
            raise problem("PTX020", variable.span, name=variable.name)
        self._variables[variable.name] = variable
        self._known[variable.name] = variable

    # --- functions --------------------------------------------------------------------------------------------------

    def _function(self, cursor: Cursor, linkage: str, *, entry: bool) -> None:
        if cursor.text == ".attribute":
            cursor.advance()
            declarations.parse_attributes(cursor)
        returns: tuple[Parameter, ...] = ()
        if cursor.text == "(" and not entry:
            returns = declarations.parse_parameters(cursor)
        name, span = cursor.text, cursor.span()
        cursor.take(NAME, "the name of a function")
        parameters = declarations.parse_parameters(cursor) if cursor.text == "(" else ()
        directives, strings_ = self._directives(cursor)
        before = self._functions.get(name)
        if before is None and name in self._known:
            raise problem("PTX020", span, name=name)
        head = Function(
            name=name,
            entry=entry,
            linkage=linkage,
            returns=returns,
            parameters=parameters,
            directives=directives,
            defined=False,
            registers=(),
            variables={},
            labels={},
            branch_targets={},
            call_targets={},
            prototypes={},
            pragmas=tuple(strings_),
            body=(),
            span=span,
        )
        if cursor.accept(";"):
            self._functions.setdefault(name, head)
            self._known[name] = head
            return
        if before is not None and before.defined:
            raise problem("PTX026", span, name=name)
        self._functions[name] = head
        self._known[name] = head
        if cursor.text != "{":
            raise cursor.unexpected("'{', ';' or a directive such as .reqntid")
        self._functions[name] = self._defined(head, cursor.start + 1, f"the body of {name}")
        cursor.seek(self._end)

    def _defined(self, head: Function, start: int, title: str) -> Function:
        names = FunctionNames(self._known)
        outer = Scope(names, None, start)
        for parameter in (*head.returns, *head.parameters):
            if parameter.name == "_":
                continue
            if parameter.space == "reg":
                outer.declare_registers(parameter.name, parameter.type, 1, None, parameter.span)
                outer.find(parameter.name)
            else:
                outer.declare_variable(parameter.name, parameter.span)
        found: Body = BodyParser(
            self._source, start, names, outer, Lines(self._files, self._strings), title, self._mistakes
        ).parse()
        self._end = found.end
        return replace(
            head,
            defined=True,
            registers=tuple(names.registers),
            variables=names.variables,
            labels=found.labels,
            branch_targets=found.branch_targets,
            call_targets=found.call_targets,
            prototypes=found.prototypes,
            pragmas=(*head.pragmas, *found.pragmas),
            body=tuple(found.statements),
        )

    def _directives(self, cursor: Cursor) -> tuple[dict[str, tuple[int, ...]], list[str]]:
        """Parse the directives between the head and the body."""
        found: dict[str, tuple[int, ...]] = {}
        strings_: list[str] = []
        while cursor.kind == DIRECTIVE:
            word, span = cursor.text, cursor.span()
            cursor.advance()
            if word == ".pragma":
                strings_ += parse_pragmas(cursor)
                continue
            if word == ".attribute":
                declarations.parse_attributes(cursor)
                continue
            if word[1:] not in _PERFORMANCE:
                hint = suggest(word, [f".{known}" for known in _PERFORMANCE])
                if word in _BODY_DIRECTIVES:
                    hint = "the '{' before the body is missing"
                raise problem("PTX025", span, found=word, expected="such as .reqntid, or '{'", hint=hint)
            numbers: list[int] = []
            if cursor.kind == NUMBER or cursor.text in ("(", "-"):
                numbers.append(declarations.parse_integer(cursor))
                while cursor.accept(","):
                    numbers.append(declarations.parse_integer(cursor))
            found[word[1:]] = tuple(numbers)
        return found, strings_
