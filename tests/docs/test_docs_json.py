"""The page about JSON names every key of every document, and no key that there is not."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from mcheck.base.reasons import Cause
from mcheck.tools.cli.main import main
from tests.checking.check import test_check_unused_loads as unused
from tests.checking.modules.test_modules_filled_stages import HEAD, RING, launch

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "json.md").read_text(encoding="utf-8")
NAMED = frozenset(re.findall(r"`([a-z_]+)`", PAGE))
OWN_NAMES = frozenset(("state", "states", "registers", "memory", "mbarriers", "verdicts"))
"""What is in these has the names of the program or of models."""
NO_KEYS = frozenset((
    "run", "check", "outcomes", "exec", "compare", "generate", "proved", "bounded", "finding", "unknown", "error",
    "pass", "fail", "exists", "forall", "none", "explicit", "protocol", "null", "race", "undefined", "deadlock",
    "review", "advice", "read", "write", "expect", "locations", "fences",
    "selection", "comment", "baseline", "new", "unchanged", "false",
))  # fmt: skip
"""Commands and values that stand in the same letters."""
WRONG = """PTX wrong
{ .shared .align 16 .u32 s[4]; .global .align 16 .u32 g[4]; .shared .align 8 .b64 bar; }
P@cta 0 {
  st.shared.u32 [s], 1;
  cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;
  ld.shared.u32 r0, [s];
  mbarrier.init.shared::cta.b64 [bar], 1;
}
exists (P:r0 == 1)
"""
LATE = """PTX late
{ .shared .align 16 .u32 s[4]; .shared .align 8 .b64 bar; }
P@cta 0 { st.shared.u32 [s], 1; mbarrier.init.shared::cta.b64 [bar], 1; }
Q@cta 0 { mbarrier.arrive.shared::cta.b64 _, [bar]; st.shared.u32 [s], 2; }
"""
PROVED = """PTX proved
{ .shared .align 16 .u32 s[4]; .global .align 16 .u32 g[4]; }
P@cta 0 {
  st.shared.u32 [s], 1;
  fence.proxy.async;
  cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  fence.acq_rel.cta;
  fence.sc.gpu;
  barrier.cluster.arrive;
  barrier.cluster.wait;
}
"""
MODULE = """.version 8.7
.target sm_90a
.address_size 64
.visible .entry nothing()
.reqntid 32, 1, 1
{
  ret;
}
"""
COMMANDS = (
    ("run", "wrong.litmus", "broken.litmus"), ("check", "wrong.litmus", "broken.litmus"),
    ("check", "wrong.litmus", "--ignore", "RACE,UB"), ("check", "late.litmus"), ("check", "module.ptx", "--grid", "2"),
    ("check", "module.ptx", "--launch", "several.json"),
    ("check", "ring.ptx", "--launch", "ring.json"), ("check", "unused.ptx", "--launch", "unused.json"),
    ("check", "late.litmus", "--write-baseline", "b.json"), ("check", "late.litmus", "--baseline", "b.json"),
    ("fences", "wrong.litmus"), ("fences", "proved.litmus"), ("fences", "late.litmus"),
    ("outcomes", "wrong.litmus"), ("exec", "wrong.litmus"),
    ("outcomes", str(ROOT / "litmus/classic/MP+rel+acq.litmus"), "--forbidden"),
    ("compare", "sc", "ptx-9.0", *(str(ROOT / f"litmus/classic/{test}.litmus") for test in ("SB.sc", "SB+rlx+rlx"))),
    ("generate", "--edges", "classic", "--size", "4", "--limit", "9"),
    ("generate", "--edges", "classic", "--size", "4", "--limit", "3", "--differs", "sc", "ptx-9.0"),
)  # fmt: skip


def keys(value: object) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from keys(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            if key not in OWN_NAMES:
                yield from keys(item)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, frozenset[str]]:
    folder = tmp_path_factory.mktemp("json")
    (folder / "wrong.litmus").write_text(WRONG)
    (folder / "late.litmus").write_text(LATE)
    (folder / "proved.litmus").write_text(PROVED)
    (folder / "broken.litmus").write_text("PTX broken\n{ }\nP@cta 0 { nothing; }\n")
    (folder / "module.ptx").write_text(MODULE)
    (folder / "ring.ptx").write_text(HEAD + RING)
    (folder / "ring.json").write_text(json.dumps(launch(2, 32)))
    (folder / "unused.ptx").write_text(unused.MODULE.replace("USE", ""))
    (folder / "unused.json").write_text(json.dumps(unused.LAUNCH))
    (folder / "several.json").write_text('{"launches": [{"grid": 1}, {"grid": 2, "gpu": 1}]}')
    found: dict[str, frozenset[str]] = {}
    for command, *words in COMMANDS:
        given = [str(folder / w) if (folder / w).exists() or w.endswith(".json") else w for w in words]
        with contextlib.redirect_stdout(io.StringIO()) as said:
            main([command, *given, "--format", "json"])
        found[command] = found.get(command, frozenset()) | frozenset(keys(json.loads(said.getvalue())))
    return found


@pytest.mark.parametrize("command", sorted({c for c, *_ in COMMANDS}))
def test_the_page_names_every_key(command: str, seen: dict[str, frozenset[str]]) -> None:
    assert seen[command] - NAMED == frozenset()


def test_the_page_names_no_other_key(seen: dict[str, frozenset[str]]) -> None:
    assert frozenset(re.findall(r"`([a-z-]+)`", PAGE)) >= frozenset(Cause)
    assert NAMED - NO_KEYS - frozenset(Cause) - frozenset().union(*seen.values()) <= {
        "because",
        "cut",
        "phase",
        "pending",
        "tx",
        "source",
    }  # of an mbarrier, of a module
