"""Escaping for LaTeX: any text of a test is printed and never executed."""

from __future__ import annotations

from typing import Final

_SPECIAL: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "_": r"\_",
    "%": r"\%",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "'": r"\textquotesingle{}",
    "`": r"\textasciigrave{}",
    "\N{HORIZONTAL ELLIPSIS}": r"\ldots{}",
    "\N{RIGHTWARDS ARROW}": r"$\rightarrow$",
    "\N{MULTIPLICATION SIGN}": r"$\times$",
}


def latex(text: str, *, blanks: bool = False) -> str:
    """``text`` with TeX's special characters escaped. ``blanks`` keeps every blank, without line breaks.

    Other characters outside ASCII become question marks, since no TeX engine has all of them.
    """
    out: list[str] = []
    for character, before in zip(text, f" {text}", strict=False):
        if character == "-" == before:
            out.append("{-}")  # two hyphens would be a dash
        elif character == " " and blanks:
            out.append("~")
        elif character in _SPECIAL:
            out.append(_SPECIAL[character])
        else:
            out.append(character if " " <= character <= "~" else "?")
    return "".join(out)
