"""The pages that MkDocs makes while it builds the site: every finding, every name of cat, every reported bug.

A hook of MkDocs (``hooks`` in mkdocs.yml); the pages are in no checkout.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files


def findings() -> str:
    """Every entry of the catalogue: what it means, how grave it is, a program that has it and one that has not."""
    from mcheck.findings import catalogue
    from mcheck.findings.entry import PROFILES
    from mcheck.report.help_pages import heading_anchor

    parts = [
        "# Findings",
        "",
        "Made from `mcheck/findings/pages`; `mcheck explain CODE` shows the same. A code is never given",
        "a second meaning. Severities depend on `--profile`.",
        "",
        "| code | finding | kind | strict | ptx | permissive |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for entry in catalogue.all():
        levels = " | ".join(entry.severity(profile) for profile in PROFILES)
        anchor = heading_anchor(entry.code, entry.name)
        parts.append(f"| [{entry.code}](#{anchor}) | {entry.name.replace('-', ' ')} | {entry.kind} | {levels} |")
    for entry in catalogue.all():
        parts += [
            "",
            f"## {entry.code} {entry.name}",
            "",
            f"*{entry.kind}, {entry.level}; {entry.section}*",
            "",
            _plain(entry.explanation.strip()),
            "",
            f"**Fix:** {_plain(' '.join(entry.all_remedies.split()))}",
            "",
            f"**After this finding** {entry.consequence}.",
            "",
            "Incorrect:",
            "",
            "```ptx",
            entry.bad.strip(),
            "```",
            "",
            "Correct:",
            "",
            "```ptx",
            entry.good.strip(),
            "```",
        ]
    return "\n".join(parts) + "\n"


def names() -> str:
    """The base sets and relations that a model may use."""
    from mcheck.cat.ast import Kind
    from mcheck.cat.names import BASE, OPTIONS

    parts = [
        "# Names of cat",
        "",
        "Made from `mcheck/cat/names.py`: what an execution supplies to a model. Sections are",
        "those of the PTX ISA. Operators: `|` `&` `\\` `;` `*` (product of sets), `~`, `?`, `+`, `*`, `^-1`, `[S]`,",
        "`domain`, `range`; `let`, `let rec`, functions, `include`, `show`. Follow herd's precedence, or write",
        "parentheses. `extending.md` says what holds of models that were written for herd or Dat3M.",
    ]
    for kind, title in ((Kind.SET, "Sets"), (Kind.REL, "Relations")):
        parts += ["", f"## {title}", "", "| name | meaning | section |", "| --- | --- | --- |"]
        parts += [f"| `{b.name}` | {_plain(b.doc)} | {b.section} |" for b in BASE.values() if b.kind is kind]
    parts += ["", "## Options", ""]
    for key, values in OPTIONS.items():
        parts.append(
            f"`(* mcheck: {key} = VALUE *)`, where VALUE is one of {', '.join(f'`{v}`' for v in sorted(values))}."
        )
    return "\n".join(parts) + "\n"


def reported() -> str:
    """The public reports whose bugs are sketches in ``litmus/kernels``."""
    parts = [
        "# Reported bugs",
        "",
        "Public reports of bugs with asynchronous copies, and the sketches in `litmus/kernels` that have them. Each",
        "sketch expects what is said here; the one whose name ends in `-fixed` expects `clean`.",
        "",
        "| report | sketch | expected | what is wrong |",
        "| --- | --- | --- | --- |",
    ]
    for path in sorted((Path(__file__).parents[1] / "litmus" / "kernels").glob("*.litmus")):
        text = path.read_text(encoding="utf-8")
        links = re.findall(r'^"Source: (https://\S+)"$', text, re.MULTILINE)
        expected = re.findall(r"^expect (race|undefined|deadlock)\b", text, re.MULTILINE)
        if not links or not expected:
            continue
        about = re.search(r'^"(?:PTX ISA [^:"]+: )?(.+)"$', text, re.MULTILINE)
        shown = " ".join(f"[{link.removeprefix('https://github.com/')}]({link})" for link in links)
        what = _plain(about[1]) if about is not None else ""
        parts.append(f"| {shown} | `{path.stem}` | {', '.join(dict.fromkeys(expected))} | {what} |")
    return "\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Text in which Markdown finds nothing to mark up."""
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("_", "\\_").replace("<", "&lt;").replace("|", "\\|")


PAGES = {"findings.md": findings, "cat-names.md": names, "reported-bugs.md": reported}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages to the files of the site."""
    from mkdocs.structure.files import File

    for name, make in PAGES.items():
        files.append(File.generated(config, name, content=make()))
    return files
