"""The parser of the table form: a column per thread, a row per line of code.

This is the dialect of PTX litmus tests that other tools read as well. Its cells hold the short forms of instructions
(``st.weak x, 1``) or full PTX. A name that nothing declares is a location that starts as 0.
"""

from __future__ import annotations

import re

from mcheck.base.errors import InputError, Unsupported
from mcheck.frontend.litmus.binding import Role, bind_program
from mcheck.frontend.litmus.cancel_requests import is_request
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.conditions import WORDS, Tail, parse_tail
from mcheck.frontend.litmus.declarations import parse_init_block
from mcheck.frontend.litmus.header import Header
from mcheck.frontend.litmus.initial import Initial
from mcheck.frontend.litmus.instructions import parse_operation
from mcheck.frontend.litmus.lexer import END, NAME, NUMBER, Tokens
from mcheck.frontend.litmus.placement import Placement, parse_placement
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.source import Source
from mcheck.frontend.litmus.statements import Body, Mark, Statement, Step
from mcheck.ir.expr import Const, Name, Reg
from mcheck.ir.ops import Await, Op
from mcheck.ir.program import Program
from mcheck.ir.resolve import expressions

_ROW = re.compile(r"\s*+([^;]*+);")
_TAIL = re.compile(r"\s*+(?:~|(?:exists|forall|not|final|filter|locations|expect)\b|\Z)")
_LABEL = re.compile(r"\s*+([A-Za-z_$][\w$]*+)\s*+:(?!:)\s*", re.ASCII)
_ROLE = re.compile(r"\s*+([A-Za-z_$][\w$]*+)\s*+@[^|;]*\{", re.ASCII)
_WORD = re.compile(r"\s*+(\w+)", re.ASCII)
_BLANK = re.compile(r"\s*")


def parse_table(head: Header, end: int) -> Program:
    """Parse the table of a file whose init block ends at offset ``end``."""
    scope = Scope(implicit={})
    initial = Initial()
    with scope.mistakes:
        placements, columns, labels, ending = _parts(head, end, scope, initial)
    roles = [
        Role(item.name, item, Body(tuple(column), frozenset(names)), scope.types)
        for item, column, names in zip(placements, columns, labels, strict=True)
    ]
    return bind_program(head, scope, initial, roles, ending, dialect=True)


def parse_columns(head: Header, end: int) -> dict[str, Body]:
    """The statements of each column as they are written, bound to no thread; raises ``InputError``."""
    scope = Scope(implicit={})
    with scope.mistakes:
        placements, columns, labels, _ = _parts(head, end, scope, Initial())
    return {
        item.name: Body(tuple(column), frozenset(names))
        for item, column, names in zip(placements, columns, labels, strict=True)
    }


def _parts(
    head: Header, end: int, scope: Scope, initial: Initial
) -> tuple[list[Placement], list[list[Statement]], list[set[str]], Tail]:
    """The threads, the statements and labels of their columns, and what follows the table."""
    source = head.source
    parse_init_block(Tokens(source, head.body, end + 1), scope, initial)
    position = end + 1
    after = _BLANK.match(source.clean, position)
    if after is not None and source.clean.startswith(";", after.end()):
        position = after.end() + 1
    match = _ROW.match(source.clean, position)
    if match is None:
        raise problem("LIT052", source.span(len(source.clean.rstrip())), expected="';'")
    placements = _threads(source, scope, match)
    columns: list[list[Statement]] = [[] for _ in placements]
    labels: list[set[str]] = [set() for _ in placements]
    position = match.end()
    plain = scope.is_plain()
    while not _TAIL.match(source.clean, position):
        match = _ROW.match(source.clean, position)
        if match is None:
            raise _open_row(source, position)
        if role := _ROLE.match(source.clean, position):
            raise problem(
                "LIT085", source.span(role.start(1), len(role[1])), expected="a row of the table or a condition"
            )
        _row(source, scope, head.target, plain, match, columns, labels)
        position = match.end()
    return placements, columns, labels, parse_tail(Tokens(source, position, len(source.clean)), scope.for_tail())


_FOREIGN = re.compile(
    r"(?:^|[|;])\s*(MOV\w*|MFENCE|LOCK|XCHG|CMPXCHG|LDR\w*|STR\w*|LDAR\w*|STLR\w*|LDXR|STXR|DMB|ISB|[ls][bhwd]|stw|lwz|"
    r"lwsync|fence [irwo]+,[irwo]+|li|ori|addi)(?=[\s;|])",
    re.MULTILINE,
)
"""Instructions of x86, Arm, RISC-V and Power at the start of a cell."""


def _open_row(source: Source, position: int) -> InputError:
    """The error for text without a semicolon: an unfinished row, or a misspelt keyword after the table."""
    word = _WORD.match(source.clean, position)
    if word is not None and (hint := suggest(word[1], WORDS)):
        span = source.span(word.start(1), len(word[1]))
        return problem("LIT011", span, found=f"'{word[1]}'", expected="a row of the table or a condition", hint=hint)
    return problem("LIT052", source.span(len(source.clean.rstrip())), expected="';'")


def _threads(source: Source, scope: Scope, match: re.Match[str]) -> list[Placement]:
    found: list[Placement] = []
    offset = match.start(1)
    for column, cell in enumerate(match[1].split("|")):
        tokens = Tokens(source, offset, offset + len(cell))
        offset += len(cell) + 1
        at = tokens.at
        text = tokens.text
        digits = text[1:] if tokens.kind == NAME and text[0] == "P" else text if tokens.kind == NUMBER else ""
        if not digits.isdigit():
            raise tokens.unexpected(f"thread P{column}")
        if int(digits[:9]) != column:
            raise problem("LIT046", tokens.span(), found=text, column=column, expected=f"P{column}")
        tokens.at += 1
        if tokens.kind == END and (foreign := _FOREIGN.search(source.clean, match.end())):
            hint = f"{foreign[1]} is not a PTX instruction: rewrite a test for another architecture in PTX first"
            raise problem("LIT040", tokens.span(at), name=f"P{column}", expected=f"P{column}@cta 0,gpu 0", hint=hint)
        found.append(parse_placement(tokens, scope, f"P{column}", at, ("",)))
    return found


def _row(
    source: Source,
    scope: Scope,
    target: str | None,
    plain: bool,
    match: re.Match[str],
    columns: list[list[Statement]],
    labels: list[set[str]],
) -> None:
    offset = match.start(1)
    cells = match[1].split("|")
    if len(cells) > len(columns) and "".join(cells[len(columns) :]).strip():
        first, newline, _ = match[1].partition("\n")
        if newline and first.count("|") < len(columns):
            missing = offset + len(first.rstrip())
            scope.mistakes.add(problem("LIT052", source.span(missing), expected="';'"))
            return
        where = source.span(offset + sum(len(cell) + 1 for cell in cells[: len(columns)]) - 1)
        hint = "a cell cannot contain '|'; end each row with ';'"
        scope.mistakes.add(problem("LIT051", where, found=len(cells), threads=len(columns), hint=hint))
        return
    for column, cell in enumerate(cells[: len(columns)]):
        if cell and not cell.isspace():
            try:
                _cell(source, scope, target, plain, offset, offset + len(cell), columns[column], labels[column])
            except InputError as error:
                tokens = Tokens(source, offset, offset + len(cell))
                tokens.at = tokens.kinds.index(END)
                if len(cells) < len(columns) and error.code == "LIT011" and error.hint is None:
                    cut = f"the row has {len(cells)} cell{'s' * (len(cells) > 1)} for {len(columns)} threads"
                    error.hint = f"{cut}: is a '|' missing?"
                scope.mistakes.record(error, tokens, 0)
            except Unsupported:
                if not scope.mistakes:
                    raise
        offset += len(cell) + 1


def _cell(
    source: Source,
    scope: Scope,
    target: str | None,
    plain: bool,
    start: int,
    end: int,
    steps: list[Statement],
    labels: set[str],
) -> None:
    label = _LABEL.match(source.clean, start, end)
    if label is not None:
        name = label[1]
        span = source.span(label.start(1), len(name))
        if name in labels:
            raise problem("LIT053", span, name=name)
        labels.add(name)
        steps.append(Mark(name, span))
        start = label.end()
        if start == end:
            return
    if not plain:
        steps.append(_operation(source, scope, target, start, end))
        return
    text = source.clean[start:end].strip()
    key = (text, target)
    known = _KNOWN.get(key)
    if known is None:
        step = _operation(source, scope, target, start, end)
        steps.append(step)
        _remember(key, step.op)
        return
    op, names = known
    span = source.span(start + len(source.clean[start:end]) - len(source.clean[start:end].lstrip()), len(text))
    assert scope.implicit is not None
    for name in names:
        if name not in scope.objects:
            scope.implicit.setdefault(name, span)
    steps.append(Step(op, span))


def _operation(source: Source, scope: Scope, target: str | None, start: int, end: int) -> Step:
    tokens = Tokens(source, start, end)
    step = parse_operation(tokens, scope, target)
    if is_request(step.op):
        raise Unsupported("clusterlaunchcontrol.try_cancel is followed in the block form only", step.op.span)
    if tokens.text:
        raise tokens.unexpected("the end of the cell")
    return step


# Decoded cells, with the locations that they name. A suite has few different ones, and if a file declares only
# locations, a cell means the same in every file.
_KNOWN: dict[tuple[str, str | None], tuple[Op, tuple[str, ...]]] = {}
_MAX_KNOWN = 10_000


def _remember(key: tuple[str, str | None], op: Op) -> None:
    """Memoize ``op`` unless an error could still point into it: indices, ranks and awaited operations have spans."""
    if isinstance(op, Await) or "\n" in key[0]:
        return
    names: list[str] = []
    for _, expr in expressions(op):
        if isinstance(expr, Name) and not expr.indices and expr.rank is None:
            names.append(expr.name)
        elif not isinstance(expr, Const | Reg):
            return
    if len(_KNOWN) >= _MAX_KNOWN:
        _KNOWN.clear()
    _KNOWN[key] = op, tuple(names)
