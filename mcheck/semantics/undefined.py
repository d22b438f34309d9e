"""A run-time condition of an instruction is violated: what the PTX ISA calls undefined behaviour."""

from __future__ import annotations

from mcheck.base.phrase import Phrase, plain


class Misuse(Exception):
    """Raised by the concrete semantics; engines turn it into a finding of kind ``undefined``.

    ``code`` is a code of ``mcheck.findings.catalogue``, ``message`` one sentence with the offending values, ``section``
    the section of the PTX ISA that states the condition. It is no ``McheckError``: the program is legal text.
    """

    def __init__(self, code: str, message: str | Phrase, section: str) -> None:
        super().__init__(plain(message))
        self.code = code
        self.message = message
        self.section = section
