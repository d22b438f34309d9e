"""What Triton and Gluon call a CTA: a program, unless a launch has several CTAs for each (``num_ctas``).

Then it has clusters; of a launch without them a cluster is one CTA, and a program, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import prod

from mcheck.base.source_files import SourceText
from mcheck.findings.finding import Finding
from mcheck.report.language_words import language_of, language_of_module

Words = Callable[[str], str]

_CLUSTER = re.compile(r"^\s*\.reqnctapercluster\s+([\d, ]+)", re.MULTILINE)
_PROGRAMS = (
    (re.compile(r"\b(?:CTA|cta)(?= ?\(\d)"), "program"),
    (re.compile(r"(?<![\w.:`])CTA(?![\w.:`])"), "program"),
    (re.compile(r"(?<![\w.:`])CTAs(?![\w.:`])"), "programs"),
    (re.compile(r"(?<![\w.:`])cluster(s?)(?![\w:`]|\.\w)"), r"program\1"),
    (re.compile(r"\bprogram\((?=\d)"), "program ("),
)


def words_of_finding(finding: Finding, texts: SourceText) -> Words:
    """The words for what is said of a finding."""
    path = next((access.path for access in finding.accesses if access.path), None)
    return _words(language_of(finding, texts), texts.whole(path) if path else "")


def words_of_module(source: str, path: str | None) -> Words:
    """The words for what is said of a module."""
    return _words(language_of_module(source, SourceText(source, path)), source)


def _words(language: str, module: str) -> Words:
    several = any(prod(map(int, re.findall(r"\d+", found))) > 1 for found in _CLUSTER.findall(module))
    return _as_programs if language in ("triton", "gluon") and not several else str


def _as_programs(text: str) -> str:
    for pattern, word in _PROGRAMS:
        text = pattern.sub(word, text)
    return text
