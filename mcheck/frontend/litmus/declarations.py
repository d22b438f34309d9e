"""The parser of the init block: PTX variables (PTX ISA 5.1, 5.4), locations of the table dialect, initial registers.

The dialect's forms: ``x = 5``, ``x = y`` and ``x = &y`` (a copy of y's initial value), ``P0:r1 = 5``, ``P0:r1 = x``
(a pointer), ``y @ surface aliases x``, ``m @ multimem aliases x, y``.
"""

from __future__ import annotations

from mcheck.base.errors import InputError, Span
from mcheck.base.records import replace
from mcheck.frontend.litmus.codes import problem, suggest
from mcheck.frontend.litmus.error_recovery import skip_statement
from mcheck.frontend.litmus.expressions import parse_constant, parse_expression
from mcheck.frontend.litmus.initial import Initial, RegisterInit
from mcheck.frontend.litmus.lexer import END, NAME, NUMBER, Tokens, integer
from mcheck.frontend.litmus.scope import Scope
from mcheck.frontend.litmus.variables import REGISTER_TYPES, parse_variables
from mcheck.ir.memory import MemObject

ANY = "any"
PROXIES = ("generic", "texture", "surface", "constant")
MULTIMEM = "multimem"
"""What stands in the place of a proxy where a name means the bytes of several objects (PTX ISA 8.2.3)."""
MAX_REGISTERS = 100_000


def parse_init_block(tokens: Tokens, scope: Scope, initial: Initial) -> None:
    """Parse the declarations up to the closing brace; the opening one has been consumed."""
    while not tokens.accept("}"):
        if tokens.accept(";"):
            continue
        first = tokens.at
        try:
            parse_declaration(tokens, scope, initial)
            if tokens.text != "}":
                tokens.semicolon("';' or '}'")
        except InputError as error:
            if tokens.kind == END:
                raise
            skip_statement(tokens, first)
            scope.mistakes.record(error, tokens, first, scope.names())


def parse_declaration(tokens: Tokens, scope: Scope, initial: Initial) -> None:
    """Parse one declaration, without its semicolon."""
    text = tokens.text
    if tokens.kind == NAME and text[0] == ".":
        if text == ".reg":
            parse_registers(tokens, scope)
        else:
            parse_variables(tokens, scope, initial)
        return
    if text == "const":
        parse_constants(tokens, scope)
        return
    if text == "[":
        tokens.at += 1
        name = tokens.name("a location")
        tokens.expect("]")
        _location(tokens, scope, name, tokens.at - 2)
        return
    if tokens.kind == NUMBER or tokens.texts[tokens.at + 1] == ":" or _is_role_register(tokens):
        _initial_register(tokens, scope, initial)
        return
    at = tokens.at
    name = tokens.name("a declaration such as 'x = 0' or '.global .u32 x'")
    if tokens.text == "@":
        _alias(tokens, scope, name, at)
        return
    _location(tokens, scope, name, at, initial)


def _is_role_register(tokens: Tokens) -> bool:
    """Whether ``role[i]:`` comes next."""
    if tokens.texts[tokens.at + 1] != "[":
        return False
    at = tokens.at + 2
    while tokens.texts[at] not in ("]", ";", "}", ""):
        at += 1
    return tokens.texts[at] == "]" and tokens.texts[at + 1] == ":"


def parse_constants(tokens: Tokens, scope: Scope) -> None:
    """Parse ``const A = 1, B = 2 * A`` at file level; ``any`` declares the parameter."""
    tokens.expect("const")
    while True:
        at = tokens.at
        name = tokens.name("the name of a constant")
        tokens.expect("=")
        here = tokens.span(at)
        if scope.given is not None and tokens.text == ANY and scope.constant(ANY) is None:
            tokens.accept(ANY)
            declare_parameter(scope, name, here)
        elif scope.symbolic:
            scope.declare_derived(name, parse_expression(tokens, scope), here)
        else:
            scope.declare_constant(name, parse_constant(tokens, scope, "the value of a const at file level"), here)
        if not tokens.accept(","):
            return


def declare_parameter(scope: Scope, name: str, here: Span) -> None:
    """Declare the parameter of a file: the constant that is ``any``."""
    if scope.parameter is not None:
        raise problem("LIT087", here, other=scope.parameter[0])
    assert scope.given is not None, "asked where there can be one"
    if scope.symbolic:
        scope.declare_symbol(name, here)
    else:
        scope.declare_constant(name, scope.given, here)
    scope.parameter = name, here


def declare_unnamed_parameter(tokens: Tokens, scope: Scope, ends: tuple[str, ...]) -> None:
    """Declare ``any`` if it occurs before one of ``ends``: one number for a file, in bounds of loops and in places."""
    at = tokens.at
    while tokens.texts[at] not in (ANY, *ends, ""):
        at += 1
    file = scope.file()
    if tokens.texts[at] == ANY and file.given is not None and not scope.declares(ANY):
        declare_parameter(file, ANY, tokens.span(at))


# --- registers ----------------------------------------------------------------------------------


def parse_registers(tokens: Tokens, scope: Scope) -> None:
    """Parse ``.reg .u32 a, b`` or ``.reg .pred %p<4>`` (PTX ISA 5.2 and 5.4.6)."""
    tokens.expect(".reg")
    kind = tokens.text[1:]
    if tokens.kind != NAME or tokens.text[0] != "." or kind not in REGISTER_TYPES:
        if tokens.kind == NAME and tokens.text[0] == ".":
            raise problem(
                "LIT022", tokens.span(), found=f"'{tokens.text}'", expected="a register type such as .u32 or .pred",
                hint=suggest(kind, REGISTER_TYPES),
            )  # fmt: skip
        raise tokens.unexpected("a type such as .u32")
    tokens.at += 1
    while True:
        tokens.accept("%")
        at = tokens.at
        name = tokens.name("the name of a register")
        if tokens.accept("<"):
            first = tokens.at
            count = _count(tokens)
            if not 0 < count <= MAX_REGISTERS:
                raise problem("LIT025", tokens.span(first), size=count, expected=f"1 to {MAX_REGISTERS} registers")
            tokens.expect(">")
            for number in range(count):
                scope.declare_register(f"{name}{number}", kind, tokens.span(at))
        else:
            scope.declare_register(name, kind, tokens.span(at))
        if not tokens.accept(","):
            return


def _count(tokens: Tokens) -> int:
    value = integer(tokens.text) if tokens.kind == NUMBER else None
    if value is None:
        raise tokens.unexpected("a number of registers")
    tokens.at += 1
    return value


def _initial_register(tokens: Tokens, scope: Scope, initial: Initial) -> None:
    at = tokens.at
    number: int | None = None
    if tokens.kind == NUMBER:
        value = integer(tokens.text)
        if value is None:
            raise tokens.unexpected("a thread or a location")
        thread = f"P{value}"
        tokens.at += 1
    else:
        thread = tokens.name("a thread")
        if tokens.accept("["):
            number = parse_constant(tokens, scope, "the number of a thread")
            tokens.expect("]")
    span = tokens.span_since(at)
    tokens.expect(":")
    tokens.accept("%")
    register = tokens.name("a register")
    tokens.expect("=")
    tokens.accept("&")
    initial.registers.append(RegisterInit(thread, number, register, parse_expression(tokens, scope), span))


# --- the dialect's locations -----------------------------------------------------------------------


def make_location(name: str, value: int, span: Span | None) -> MemObject:
    """A location of the table dialect: 32 bits of global memory."""
    return MemObject(
        name=name, space="global", elem="s32", elem_size=4, align=4, size=4,
        init=(value & 0xFFFFFFFF).to_bytes(4, "little"), dialect=True, span=span,
    )  # fmt: skip


def _location(tokens: Tokens, scope: Scope, name: str, at: int, initial: Initial | None = None) -> None:
    span = tokens.span(at)
    value = 0
    if tokens.accept("="):
        copied = tokens.accept("&")
        first = tokens.at
        source = scope.objects.get(tokens.text) if tokens.kind == NAME else None
        if source is not None and tokens.texts[first + 1] in (";", "}"):
            tokens.at += 1
            value = int.from_bytes((source.init or b"")[:4], "little")
        elif copied or (tokens.kind == NAME and scope.implicit is not None and not scope.declares(tokens.text)):
            copy = tokens.name("a location")
            if scope.implicit is None:
                raise problem("LIT018", tokens.span(first), name=copy, hint=suggest(copy, scope.objects))
            scope.implicit.setdefault(copy, tokens.span(first))
        else:
            value = parse_constant(tokens, scope, "an initial value")
            if not -(1 << 31) <= value < 1 << 32:
                raise problem("LIT029", tokens.span_since(first), value=value, type="32 bits")
    item = make_location(name, value, span)
    old = scope.objects.get(name)
    if old is not None and old.dialect and old.alias_of is None and scope.implicit is not None:
        # The peers take a location that is initialised twice; the last value counts.
        if initial is not None and old.init != item.init:
            initial.warnings.append((f"{name} is initialised twice; the last value is used", span))
        scope.objects[name] = item
        return
    scope.declare_object(item, span)


def _alias(tokens: Tokens, scope: Scope, name: str, at: int) -> None:
    """``name @ proxy aliases target``, or ``name @ multimem aliases target, target``."""
    tokens.expect("@")
    proxy, kinds = tokens.text, (*PROXIES, MULTIMEM)
    if proxy not in kinds:
        if tokens.kind != NAME:
            raise tokens.unexpected("a proxy: " + ", ".join(kinds))
        raise problem(
            "LIT031", tokens.span(), found=f"'{proxy}'", expected="one of " + ", ".join(kinds),
            hint=suggest(proxy, kinds),
        )  # fmt: skip
    tokens.at += 1
    tokens.expect("aliases")
    item = _target(tokens, scope)
    copies: tuple[str, ...] = ()
    if proxy == MULTIMEM:
        proxy, copies = "generic", (item.name, *_further_copies(tokens, scope, item))
    span = tokens.span(at)
    scope.declare_object(
        replace(item, name=name, alias_of=item.name, alias_proxy=proxy, copies=copies, span=span), span
    )


def _target(tokens: Tokens, scope: Scope) -> MemObject:
    at = tokens.at
    target = tokens.name("the location that the alias refers to")
    item = scope.objects.get(target)
    if item is None:
        hint = suggest(target, scope.objects)
        raise problem("LIT030", tokens.span(at), name=target, expected="a location declared before", hint=hint)
    return item


def _further_copies(tokens: Tokens, scope: Scope, first: MemObject) -> list[str]:
    """The other objects that a multimem object stands for: global memory of the same size, each once."""
    found: list[MemObject] = [first]
    at = tokens.at - 1
    while True:
        item = found[-1]
        shared = any(item.name in other.copies for other in scope.objects.values())
        if item.space != "global" or item.alias_of is not None or item.size != first.size or shared:
            expected = f"a .global variable of {first.size} bytes that no other multimem variable stands for"
            raise problem("LIT093", tokens.span(at), found=f"'{item.name}'", expected=expected)
        if item.name in [other.name for other in found[:-1]]:
            raise problem("LIT093", tokens.span(at), found=f"'{item.name}'", expected="each variable once")
        if not tokens.accept(","):
            return [other.name for other in found[1:]]
        at = tokens.at
        found.append(_target(tokens, scope))
