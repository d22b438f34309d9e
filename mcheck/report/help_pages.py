"""The addresses of the pages of codes: of a site of this documentation where one is set, otherwise of the PTX ISA.

``MCHECK_SITE_URL`` is the one setting: the address below which ``make docs`` is published. The site takes it too.
"""

from __future__ import annotations

import os

ISA = "https://docs.nvidia.com/cuda/parallel-thread-execution/"
VARIABLE = "MCHECK_SITE_URL"


def site_url() -> str:
    """The address of the site, ending in a slash; empty if none is set."""
    set_to = os.environ.get(VARIABLE, "").strip()
    return f"{set_to.rstrip('/')}/" if set_to else ""


def help_page(code: str) -> str:
    """The address of the page of a finding's code."""
    from mcheck.findings import catalogue

    site = site_url()
    return f"{site}findings/#{heading_anchor(code, catalogue.get(code).name)}" if site else ISA


def heading_anchor(code: str, name: str) -> str:
    """The anchor of the heading ``CODE name`` on the page of findings."""
    return f"{code.lower()}-{name}"
