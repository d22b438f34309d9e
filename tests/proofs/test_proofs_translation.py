"""Translations: what is a translation of a program has its answer, and what decides something is none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from mcheck.cat import load_model
from mcheck.engines.protocol.findings_answer import check
from mcheck.frontend.litmus import parse
from mcheck.ir.program import Program
from mcheck.proofs.translation import is_translation
from mcheck.tools.cli.main import main

MODEL = load_model("ptx-9.0")
SIZE = 256
OBJECTS = """
  .global .align 128 .b8 x[256], y[256];
  .shared .align 16 .b8 s[64];
  .shared .b64 bar;
"""


def program(*bodies: str, objects: str = OBJECTS) -> Program:
    roles = "\n".join(f"r{k}@cta 0 {{\n{body}\n}}" for k, body in enumerate(bodies))
    return parse(f"PTX moved\n{{{objects}}}\n{roles}\nexpect pass\n", "moved.litmus")


COPY = """
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.proxy.async;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 32;
  cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [s], [x + {at}], 32, [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
  ld.shared.u32 r0, [s];
  st.global.v2.u32 [y + {to}], {{0, 1}};
"""


def copied(at: int, to: int) -> Program:
    return program(COPY.format(at=at, to=to))


@pytest.mark.parametrize(("at", "to"), [(0, 0), (64, 0), (0, 8), (224, 248), (16, 104)])
def test_each_object_is_moved_by_a_distance_of_its_own(at: int, to: int) -> None:
    assert is_translation(copied(0, 0), copied(at, to))
    assert is_translation(copied(at, to), copied(32, 32))


@pytest.mark.parametrize(
    ("at", "to"),
    [(8, 0), (0, 4), (240, 0), (0, 252)],
    ids=["copy-align", "store-align", "copy-end", "store-end"],
)
def test_what_is_not_legal_everywhere_is_no_translation(at: int, to: int) -> None:
    assert not is_translation(copied(0, 0), copied(at, to))
    assert not is_translation(copied(at, to), copied(0, 0))


def test_one_object_is_not_moved_by_two_distances() -> None:
    def stores(first: int, second: int) -> Program:
        return program(f"st.global.u32 [x + {first}], 1;", f"st.global.u32 [x + {second}], 1;")

    assert is_translation(stores(0, 8), stores(4, 12))
    assert not is_translation(stores(0, 8), stores(8, 8))
    assert not is_translation(stores(0, 8), stores(0, 12))


CHANGES: dict[str, Callable[[str], str]] = {
    "value": lambda s: s.replace("], 1", "], 2"),
    "width": lambda s: s.replace("u32", "u16"),
    "strength": lambda s: s.replace("st.global", "st.relaxed.gpu.global"),
    "object": lambda s: s.replace("[x", "[y"),
    "length": lambda s: s + "\nst.global.u32 [x + 128], 1;",
}


@pytest.mark.parametrize("name", CHANGES)
def test_all_else_that_an_operation_says_is_the_same(name: str) -> None:
    text = "st.global.u32 [x + 16], 1;"
    assert is_translation(program(text), program(text.replace("16", "32")))
    assert not is_translation(program(text), program(CHANGES[name](text.replace("16", "32"))))


def test_what_is_known_of_an_object_keeps_it_where_it_is() -> None:
    def reading(at: int) -> Program:
        return program(f"ld.global.u32 r0, [x + {at}];", objects=".global .u32 x[2] = {1, 2};")

    assert is_translation(reading(0), reading(0))
    assert not is_translation(reading(0), reading(4))


# --- random programs ------------------------------------------------------------------------------------------------

ACCESSES = (
    "st.global.u32 [{}], 1;", "ld.global.u32 r0, [{}];", "st.release.gpu.global.u32 [{}], 1;",
    "ld.acquire.gpu.global.u32 r1, [{}];", "atom.add.relaxed.gpu.global.u32 r2, [{}], 1;",
    "st.global.v2.u32 [{}], {{1, 2}};", "st.global.u16 [{}], 3;", "bar.sync 0;",
    "cp.async.ca.shared.global [s], [{}], 4;\n  cp.async.wait_all;", "fence.acq_rel.gpu;",
)  # fmt: skip
Access = tuple[str, str, int]


def drawn(random: Random) -> list[list[Access]]:
    """Two or three threads that access a few words of both objects."""
    return [
        [
            (random.choice(ACCESSES), random.choice("xy"), random.choice((0, 4, 8, 8, 16)))
            for _ in range(random.randint(1, 4))
        ]
        for _ in range(random.randint(2, 3))
    ]


def moved(code: list[list[Access]], distances: dict[str, int]) -> Program:
    return program(*("\n".join(a.format(f"{o} + {at + distances[o]}") for a, o, at in body) for body in code))


def edited(code: list[list[Access]], random: Random) -> list[list[Access]]:
    """The code with another address, or another access, at one place."""
    out = [list(body) for body in code]
    body = random.choice(out)
    k = random.randrange(len(body))
    access, name, at = body[k]
    body[k] = random.choice([(access, name, at ^ 4), (access, "y", at), (random.choice(ACCESSES), name, at)])
    return out


def told(one: Program) -> object:
    given = check(one, MODEL, timeout=None)
    return given.verdict, {f.code for f in given.findings}


@pytest.mark.parametrize("seed", range(40))
def test_translated_programs_have_the_same_answer(seed: int) -> None:
    random = Random(f"translated {seed}")
    code = drawn(random)
    distances = {name: random.choice((0, 4, 8, 16, 128, SIZE - 24, SIZE - 8)) for name in "xy"}
    one, other = moved(code, dict.fromkeys("xy", 0)), moved(code, distances)
    if "UB" not in str(told(one)) and "UB" not in str(told(other)):
        assert is_translation(one, other)
    for two in (other, moved(edited(code, random), distances)):
        if is_translation(one, two):
            assert told(one) == told(two)


# --- the clusters of a launch -----------------------------------------------------------------------------------------

PRODUCT = Path(__file__).parents[1] / "simt" / "corpus" / "triton" / "matmul_persistent_sm90.ptx"
"""Its launch is in the file beside it; its clusters are of two classes."""


def test_clusters_of_a_launch_share_an_answer(capsys: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[int, int]] = []
    for options in ([], ["--without", "translated-programs"]):
        code = main(["check", str(PRODUCT), "--format", "json", *options])
        (result,) = json.loads(capsys.readouterr().out)["results"]
        told.append((code, result["executions"]))
    (code, fewer), (same, more) = told
    assert code == same == 0
    assert fewer < more
