"""Variables larger than any memory are told with their place, and take none of ours."""

from __future__ import annotations

import json

import pytest

from mcheck.checking.run.case import Settings
from tests.simt import fuzz

HEAD = ".version 8.7\n.target sm_90a\n.address_size 64\n"
KERNEL = ".visible .entry k() { ret; }"
WRONG = {
    "shared memory": (f"{HEAD}.shared .b8 huge[1 << 40];\n{KERNEL}", "at most 232448 fit"),
    "many shared variables": (
        HEAD + "".join(f".shared .b8 a{k}[200000];\n" for k in range(100)) + KERNEL,
        "shared variables of the module are larger",
    ),
    "an alignment": (f"{HEAD}.shared .align 1073741824 .b8 s[4];\n{KERNEL}", "larger than the memory"),
    "constants": (f"{HEAD}.const .b8 huge[1 << 33] = {{1}};\n{KERNEL}", "at most 65536 fit"),
    "global memory": (f"{HEAD}.global .b8 huge[1 << 40];\n{KERNEL}", "variables and buffers are larger"),
    "local memory": (f"{HEAD}.visible .entry k() {{ .local .b8 depot[1 << 40]; ret; }}", "at most 524288 fit"),
    "the local memory of all": (f"{HEAD}.visible .entry k() {{ .local .b8 depot[1 << 19]; ret; }}", "of the lanes are"),
    "a parameter": (f"{HEAD}.visible .entry k(.param .b8 p[1 << 40]) {{ ret; }}", "at most 32764 fit"),
}


SETTINGS = Settings(profile="ptx", timeout=5.0, memory=fuzz.MEMORY)


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG.keys())
def test_what_is_too_large_is_told_with_its_place(text: str, said: str) -> None:
    launch = json.dumps({"grid": 1, "block": 1024})
    result, _ = fuzz.check(text, launch, SETTINGS, apart=True)
    assert result.verdict == "error"
    assert result.problem is not None
    assert result.problem.span is not None
    assert said in result.problem.message


def test_global_memory_may_be_large() -> None:
    text = f"{HEAD}.global .b8 table[1 << 34] = {{1}};\n{KERNEL}"
    result, _ = fuzz.check(text, '{"grid": 1, "block": 32}', SETTINGS, apart=True)
    assert result.verdict == "proved"
