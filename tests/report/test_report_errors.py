"""Errors as text: frame, caret, colours, odd lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcheck.base.errors import InputError, InternalError, McheckError, Span, Unsupported
from mcheck.report.errors import MAX_WIDTH, render, render_warning


def shown(error: McheckError, text: str, *, color: bool = False) -> list[str]:
    return render(error, sources={"a.litmus": text}, color=color).split("\n")


def test_all_parts() -> None:
    error = InputError(
        "y is not declared",
        Span("a.litmus", 2, 5, 3),
        code="LIT018",
        expected="a name",
        hint="did you mean x?",
        section="9.7",
    )
    assert shown(error, "one\n abc yyy;\n") == [
        "error[LIT018]: y is not declared",
        "  --> a.litmus:2:5",
        "2 |  abc yyy;",
        "  |     ^^^",
        "expected: a name",
        "see: PTX ISA, section 9.7",
        "hint: did you mean x?",
    ]


def test_without_a_place() -> None:
    assert shown(InputError("no such model"), "") == ["error: no such model"]


def test_the_file_is_read_if_no_text_is_given(tmp_path: Path) -> None:
    path = tmp_path / "b.litmus"
    path.write_text("first\nsecond\n", encoding="utf-8")
    assert render(InputError("m", Span(str(path), 2, 1, 6))).endswith("2 | second\n  | ^^^^^^")
    path.unlink()
    assert render(InputError("m", Span(str(path), 2, 1, 6))).endswith("b.litmus:2:1")


@pytest.mark.parametrize(
    ("error", "first", "last"),
    [
        (Unsupported("wgmma with sparsity"), "unsupported: wgmma with sparsity", "unsupported: wgmma with sparsity"),
        (InternalError("no base"), "internal error: no base", "hint: this is a bug in mcheck;"),
    ],
)
def test_kinds(error: McheckError, first: str, last: str) -> None:
    lines = shown(error, "")
    assert lines[0] == first
    assert lines[-1].startswith(last)


def test_colours_only_when_asked_for() -> None:
    error = InputError("m", Span("a.litmus", 1, 1), code="LIT001", hint="h")
    assert "\x1b" not in "".join(shown(error, "text"))
    lines = shown(error, "text", color=True)
    assert lines[0] == "\x1b[1;31merror[LIT001]\x1b[0m\x1b[1m: m\x1b[0m"
    assert all(line.count("\x1b[") % 2 == 0 for line in lines)


@pytest.mark.parametrize(
    ("text", "column", "line", "caret"),
    [
        ("\tx", 2, "1 |     x", "  |     ^"),
        ("\x1b[31mx", 6, "1 | \\x1b[31mx", "  |         ^"),
        ("é\u202ex", 3, "1 | é\\u202ex", "  |        ^"),
        ("", 1, "1 |", "  | ^"),
        ("ab", 9, "1 | ab", "  |   ^"),
    ],
)
def test_odd_lines(text: str, column: int, line: str, caret: str) -> None:
    assert shown(InputError("m", Span("a.litmus", 1, column)), text)[2:] == [line, caret]


def test_long_lines_are_cut_around_the_caret() -> None:
    text = "x" * 5000 + "y" + "z" * 5000
    line, caret = shown(InputError("m", Span("a.litmus", 1, 5001)), text)[2:]
    assert len(line) < MAX_WIDTH + 20
    assert line[caret.index("^")] == "y"


def test_messages_stay_on_one_line() -> None:
    assert shown(InputError("a\nb\x07"), "") == ["error: a\\nb\\x07"]


def test_warnings() -> None:
    sources = {"a.litmus": "abc"}
    span = Span("a.litmus", 1, 2, 2)
    assert render_warning("odd", span, sources=sources).split("\n") == [
        "warning: odd",
        "  --> a.litmus:1:2",
        "1 | abc",
        "  |  ^^",
    ]
