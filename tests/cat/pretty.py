"""A pretty-printer of checked models; parsing its output gives the same tree.

Operands that are products, compositions and the like keep their parentheses even where precedence would do without:
tools differ in it, and readers do not remember it. Only a union shows its parts bare.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mcheck.cat.ast import Base, Check, Empty, Let, LetRec, Model, Node, Op1, Op2, Statement, Var
from mcheck.cat.names import BASE

# How tightly a text holds together; an operand that holds less than asked gets parentheses.
_UNION: Final = 1
_BINARY: Final = 2
_PREFIX: Final = 3
_POSTFIX: Final = 4
_ATOM: Final = 5

Names = Mapping[int, str]
"""What to call a variable, by uid; its own name where nothing is said."""


def show(node: Node, names: Names | None = None) -> str:
    """``node`` on one line."""
    return _show(node, 0, names or {})


def show_statement(statement: Statement, names: Names | None = None) -> str:
    """A definition or an axiom on one line, a recursive group on one line per name."""
    names = names or {}
    if isinstance(statement, Let):
        return f"let {_let(statement, names)}"
    if isinstance(statement, LetRec):
        return "let rec " + "\nand ".join(_let(let, names) for let in statement.bindings)
    return _check(statement, names)


def show_model(model: Model) -> str:
    """The whole model after checking: includes spliced, calls inlined, every variable with a name of its own."""
    names = unique_names(model)
    lines = [f'"{model.name}"']
    lines += [f"(* mcheck: {key} = {value} *)" for key, value in model.options]
    lines += [show_statement(statement, names) for statement in model.statements]
    if model.shows:
        lines.append("show " + ", ".join(_show(node, 0, names) for node in model.shows))
    return "\n".join(lines) + "\n"


def unique_names(model: Model) -> dict[int, str]:
    """A name for every variable: its own, or ``name.2``, ``name.3`` … where something before it has that one."""
    taken = set(BASE)
    names: dict[int, str] = {}
    for statement in model.statements:
        if isinstance(statement, Check):
            continue
        for let in (statement,) if isinstance(statement, Let) else statement.bindings:
            name = let.var.name
            number = 2
            while name in taken:
                name = f"{let.var.name}.{number}"
                number += 1
            taken.add(name)
            names[let.var.uid] = name
    return names


def _let(let: Let, names: Names) -> str:
    return f"{names.get(let.var.uid, let.var.name)} = {_show(let.body, 0, names)}"


def _check(check: Check, names: Names) -> str:
    flag = "flag " if check.flag else ""
    negated = "~" if check.negated else ""
    # an axiom without a name of its own is called by its text, which "as" could not take
    label = "" if " " in check.name else f" as {check.name}"
    return f"{flag}{negated}{check.test} {_show(check.body, 0, names)}{label}"


def _show(node: Node, minimum: int, names: Names) -> str:
    text, power = _text(node, names)
    return f"({text})" if power < minimum else text


def _text(node: Node, names: Names) -> tuple[str, int]:
    if isinstance(node, Base):
        return node.name, _ATOM
    if isinstance(node, Var):
        return names.get(node.uid, node.name), _ATOM
    if isinstance(node, Empty):
        return "0", _ATOM
    if isinstance(node, Op1):
        return _unary(node, names)
    if node.op == "|":
        return f"{_show(node.left, _BINARY, names)} | {_show(node.right, _UNION, names)}", _UNION
    # \ and * group to the left, the others to the right, where one operator needs no parentheses of its own
    to_left = node.op in "\\*"
    bare = _POSTFIX if node.op == "*" else _PREFIX  # ~A * B is the complement of the product
    left = _show(node.left, _BINARY if to_left and _is(node.op, node.left) else bare, names)
    right = _show(node.right, _BINARY if not to_left and _is(node.op, node.right) else _PREFIX, names)
    return f"{left}{'; ' if node.op == ';' else f' {node.op} '}{right}", _BINARY


def _is(op: str, node: Node) -> bool:
    return isinstance(node, Op2) and node.op == op


def _unary(node: Op1, names: Names) -> tuple[str, int]:
    if node.op == "[]":
        return f"[{_show(node.arg, 0, names)}]", _ATOM
    if node.op in ("domain", "range"):
        return f"{node.op}({_show(node.arg, 0, names)})", _ATOM
    if node.op == "~":
        return f"~{_show(node.arg, _PREFIX, names)}", _PREFIX
    arg = _show(node.arg, _POSTFIX, names)
    if node.op == "+" and arg.endswith("+"):  # ++ is another operator
        arg = f"({arg})"
    return f"{arg}{node.op}", _POSTFIX
