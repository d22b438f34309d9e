"""Options that all tests share."""

from __future__ import annotations

import gc
import signal
from collections.abc import Generator

import pytest

pytest_plugins = [
    "tests.assembler",
    "tests.clock",
    "tests.compiler",
    "tests.enumerated",
    "tests.processor",
    "tests.samples",
    "tests.shown_commands",
    "tests.tiers",
]


def pytest_configure() -> None:
    # A shell's background job ignores interrupts and hands that on; tests that send one want it to arrive.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--promote", action="store_true", help="rewrite the golden files instead of comparing with them")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing of what is collected goes before the last test: looking through it again and again is a quarter of the
    time that collecting takes, and each worker of xdist collects all.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.fixture
def promote(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--promote"))
