"""Text as LaTeX takes it: whatever a test says is shown and nothing of it is run."""

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
    """``text`` with what TeX would take for commands made visible. ``blanks`` keeps each blank, and the line whole.

    What is neither ASCII nor known here becomes a question mark: no engine of TeX has every letter.
    """
    out: list[str] = []
    for character, before in zip(text, f" {text}", strict=False):
        if character == "-" == before:
            out.append("{-}")  # two of them would be a dash
        elif character == " " and blanks:
            out.append("~")
        elif character in _SPECIAL:
            out.append(_SPECIAL[character])
        else:
            out.append(character if " " <= character <= "~" else "?")
    return "".join(out)
