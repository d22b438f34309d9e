"""``mcheck exec``: data, schedules, findings on the way, files, statuses, and both forms of output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcheck.engines.concrete import array_files, schedule
from mcheck.engines.concrete.machine import machine
from mcheck.engines.concrete.result import execute
from mcheck.frontend.litmus import parse
from mcheck.report.finding import to_json
from mcheck.tools.cli.main import main

ROOT = Path(__file__).parents[3]


def run(text: str, seed: int = 0) -> dict[str, Any]:
    """The execution of a program: registers, hex of memory, codes of findings."""
    done = execute(machine(parse(text, "test.litmus"), seed=seed), seed)
    return {
        "registers": done.registers,
        "memory": {item.label: item.hex for item in done.objects},
        "codes": [f.code for f in done.findings],
        "kinds": {to_json(f)["kind"] for f in done.findings},
        "holds": done.holds,
        "barriers": {name: state.phase for name, state in done.barriers.items()},
    }


RING = """\
PTX ring
{
  .global .align 128 .b8 src[8192];
  .shared .align 128 .b8 buf[2][1024];
  .shared .align 8 .b64 full[2], empty[2];
  .global .u32 sums[128];
}
const S = 2, N = 8;
producer@cta 0, warp 0, lane 0 {
  for s in 0..S {
    mbarrier.init.shared::cta.b64 [full[s]], 1;
    mbarrier.init.shared::cta.b64 [empty[s]], 128;
  }
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [empty[k%S]], ((k/S)%2)^1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[k%S]], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [buf[k%S]], [src + 1024*k], 1024, [full[k%S]];
  }
}
consumer@cta 0, warp 1..5 {
  mov.u32 r1, 0;
  bar.sync 0;
  for k in 0..N {
    await mbarrier.try_wait.parity.shared::cta.b64 [full[k%S]], (k/S)%2;
    ld.shared.u32 r0, [buf[k%S] + 4*%laneid];
    add.u32 r1, r1, r0;
    fence.proxy.async.shared::cta;
    mbarrier.arrive.shared::cta.b64 _, [empty[k%S]];
  }
  st.global.u32 [sums + 4*(%tid.x - 32)], r1;
}
"""


@pytest.mark.daily
@pytest.mark.parametrize("seed", range(4))
def test_a_ring_of_129_threads_gives_the_same_sums_under_every_schedule(
    seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = np.arange(2048, dtype="<u4") ** 2
    np.save(tmp_path / "src.npy", words)
    (tmp_path / "ring.litmus").write_text(RING)
    arguments = [tmp_path / "ring.litmus", "--seed", seed, "--load", f"src={tmp_path / 'src.npy'}"]
    arguments += ["--dump", f"sums={tmp_path / 'sums.npy'}", "--format", "json"]
    assert main(["exec", *map(str, arguments)]) == 0
    done = json.loads(capsys.readouterr().out)
    sums = np.load(tmp_path / "sums.npy")
    expected = words.reshape(8, 256)[:, :32].sum(axis=0, dtype="<u4")
    assert (sums.reshape(4, 32) == expected).all()
    assert done["memory"]["sums"] == sums.tobytes().hex()
    assert done["memory"]["src"] == words.tobytes().hex()
    assert done["registers"]["consumer[0]:r1"] == int(expected[0])
    assert done["findings"] == []
    assert done["mbarriers"]["full@0"] == {"phase": 4, "expected": 1, "pending": 1, "tx": 0}


def test_the_json_has_the_keys_of_the_interface(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.litmus").write_text("PTX a\n{ .global .u32 x = 5; }\np@cta 0 {\n  ld.global.u32 r0, [x];\n}\n")
    assert main(["exec", str(tmp_path / "a.litmus"), "--format", "json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["schema"] == 1
    assert done["tool"] == "mcheck"
    assert {"version", "path", "registers", "memory", "findings"} <= set(done)
    assert done["registers"] == {"p:r0": 5}
    assert done["memory"] == {"x": "05000000"}


def test_text_marks_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        "PTX a\n{ .global .u32 x[4] = {1, 2, 3, 4}; .global .b8 y[64]; .shared .u32 z; }\np@cta 0 {\n"
        "  st.global.u32 [x + 8], 7;\n  st.global.u8 [y + 33], 255;\n}\n"
    )
    (tmp_path / "a.litmus").write_text(text)
    assert main(["exec", str(tmp_path / "a.litmus"), "--color", "never"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "         0   1  2 *7  4" in out
    assert "            32 unchanged bytes" in out
    assert any(line.startswith("        20  00*ff 00") for line in out)
    assert "  z@0: 4 bytes, unknown" in out


# --- what happens on the way ------------------------------------------------------------------------------

INIT = "{ .shared .align 8 .b64 bar; .global .u32 flag; .global .align 16 .b8 g[64]; .shared .align 16 .b8 s[64]; }\n"
PROGRAMS: list[tuple[str, str, str]] = [
    (
        "endless wait",
        "DEAD003",
        ("mbarrier.init.shared::cta.b64 [bar], 1;\nawait mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;"),
    ),
    ("endless spin", "DEAD001", "L: ld.relaxed.gpu.global.u32 r0, [flag];\nsetp.eq.u32 %p0, r0, 0;\n@%p0 bra L;"),
    ("awaited value", "DEAD004", "await ld.relaxed.gpu.global.u32 r0, [flag] == 1;"),
    ("half a barrier", "DEAD002", "bar.sync 1, 64;"),
    ("cluster out of step", "UB306", "barrier.cluster.wait;"),
    ("size 24", "UB101", "cp.async.bulk.global.shared::cta.bulk_group [g], [s], 24;"),
    ("misaligned", "UB102", "ld.global.u32 r0, [g + 2];"),
    ("beyond", "UB103", "st.global.u32 [g + 64], r0;"),
    ("src-size", "UB104", "mov.u32 r1, 17;\ncp.async.ca.shared.global [s], [g], 16, r1;"),
    (
        "twice in a group",
        "UB106",
        ("cp.async.ca.shared.global [s], [g], 16;\ncp.async.ca.shared.global [s + 8], [g], 8;\ncp.async.commit_group;"),
    ),
    (
        "parity 2",
        "UB109",
        (
            "mbarrier.init.shared::cta.b64 [bar], 1;\nmov.u32 r1, 2;\n"
            "mbarrier.test_wait.parity.shared::cta.b64 %p0, [bar], r1;"
        ),
    ),
    ("no object", "UB201", "mbarrier.arrive.shared::cta.b64 _, [bar];"),
    ("touched", "UB202", "mbarrier.init.shared::cta.b64 [bar], 1;\nld.shared.u32 r0, [bar];"),
    (
        "too many arrivals",
        "UB205",
        ("mbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.arrive.shared::cta.b64 _, [bar], 2;"),
    ),
    (
        "nobody waited",
        "UB212",
        (
            "mbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.arrive.shared::cta.b64 _, [bar];\n"
            "mbarrier.arrive.shared::cta.b64 _, [bar];"
        ),
    ),
    (
        "a state and one",
        "UB210",
        (
            "mbarrier.init.shared::cta.b64 [bar], 2;\nmbarrier.arrive.shared::cta.b64 %rd1, [bar];\n"
            "add.u64 %rd2, %rd1, 1;\nmbarrier.test_wait.shared::cta.b64 %p0, [bar], %rd2;"
        ),
    ),
    (
        "the pending count of a state and one",
        "UB211",
        (
            "mbarrier.init.shared::cta.b64 [bar], 2;\nmbarrier.arrive.noComplete.shared::cta.b64 %rd1, [bar], 1;\n"
            "add.u64 %rd2, %rd1, 1;\nmbarrier.pending_count.b64 r0, %rd2;"
        ),
    ),
    ("barrier 16", "UB302", "mov.u32 r1, 16;\nbar.sync r1;"),
]


@pytest.mark.parametrize(("code", "body"), [p[1:] for p in PROGRAMS], ids=[p[0] for p in PROGRAMS])
def test_findings_on_the_way(code: str, body: str) -> None:
    done = run(f"PTX a\n{INIT}p@cta 0 {{\n{body}\n}}\n")
    assert done["codes"] == [code]


def test_statuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def status(body: str, *options: str) -> int:
        (tmp_path / "a.litmus").write_text(f"PTX a\n{INIT}p@cta 0 {{\n{body}\n}}\n")
        return main(["exec", str(tmp_path / "a.litmus"), *options])

    assert status("st.global.u32 [flag], 1;") == 0
    assert status("bar.sync 1, 64;") == 1
    assert status("mbarrier.init.shared::cta.b64 [bar], 1;\nmbarrier.arrive.shared::cta.b64 _, [bar];\n"
                  "mbarrier.arrive.shared::cta.b64 _, [bar];") == 0  # fmt: skip
    assert status("ld.shared.u64 %rd1, [s];\nld.global.u32 r0, [%rd1];") == 3
    assert status("nonsense;") == 2
    assert status("", "--load", "nothing=/dev/null") == 2
    assert status("", "--load", "flag=/does/not/exist") == 2
    assert status("", "--dump", f"flag={tmp_path}/no/such/folder") == 2
    capsys.readouterr()
    (tmp_path / "big").write_bytes(bytes(5))
    assert status("", "--load", f"flag={tmp_path}/big") == 2
    assert "holds more than the 4 bytes of flag" in capsys.readouterr().err
    assert main(["exec", "/does/not/exist.litmus"]) == 2


# --- data ---------------------------------------------------------------------------------------------------


def test_multicast_reaches_the_same_place_in_every_cta_of_the_mask() -> None:
    done = run("""PTX m
{ .global .align 16 .b8 g[32] = {1, 2, 3}; .shared .align 16 .b8 s[32]; .shared .align 8 .b64 bar; }
a@cluster 0, cta 0 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [s + 16], [g], 16, [bar], 3;
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
b@cluster 0, cta 1 {
  mbarrier.init.shared::cta.b64 [bar], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
  barrier.cluster.arrive;
  barrier.cluster.wait;
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}
""")
    assert done["codes"] == []
    assert done["memory"]["s@0"] == done["memory"]["s@1"] == "??" * 16 + "010203" + "00" * 13
    assert done["barriers"] == {"bar@0": 1, "bar@1": 1}


def test_asynchronous_copies_are_late_and_seeds_differ() -> None:
    """Without a wait the source may be overwritten before the copy reads it; some schedule shows each."""
    text = """PTX late
{ .global .align 16 .u32 g[4]; .shared .align 16 .u32 s[4]; }
p@cta 0 {
  st.shared.u32 [s], 1;
  cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;
  cp.async.bulk.commit_group;
  st.shared.u32 [s], 2;
  bar.sync 0;
}
q@cta 0 { bar.sync 0; ld.global.u32 r0, [g]; }
exists (g[0] == 1)
"""
    finals = [run(text, seed)["memory"]["g"][:2] for seed in range(30)]
    assert set(finals) == {"01", "02"}
    waited = text.replace("commit_group;", "commit_group;\n  cp.async.bulk.wait_group.read 0;")
    assert {run(waited, seed)["memory"]["g"][:2] for seed in range(20)} == {"01"}


def test_unknown_contents_stay_unknown() -> None:
    done = run("""PTX u
{ .shared .align 16 .u32 s[4]; .global .align 16 .u32 g[4]; }
p@cta 0 {
  st.shared.u32 [s + 4], 9;
  cp.async.bulk.global.shared::cta.bulk_group [g], [s], 16;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  ld.global.u32 r0, [g];
  add.u32 r1, r0, 1;
  ld.global.u32 r2, [g + 4];
}
exists (p:r0 == 0)
""")
    assert done["memory"]["g"] == "????????09000000" + "??" * 8
    assert done["registers"] == {"p:r0": None, "p:r1": None, "p:r2": 9}
    assert done["holds"] is None


@pytest.mark.parametrize("seed", range(5))
def test_barriers_reduce_predicates(seed: int) -> None:
    done = run("""PTX r
{ .global .u32 x; }
p@cta 0, warp 0..2 {
  setp.lt.u32 %p0, %tid.x, 40;
  barrier.cta.red.popc.aligned.u32 r0, 0, %p0;
  barrier.cta.red.and.aligned.pred %p1, 0, %p0;
  barrier.cta.red.or.aligned.pred %p2, 0, %p0;
}
""", seed)  # fmt: skip
    assert done["codes"] == []
    assert {v for k, v in done["registers"].items() if k.endswith(":r0")} == {40}
    assert {v for k, v in done["registers"].items() if k.endswith(":p1")} == {0}
    assert {v for k, v in done["registers"].items() if k.endswith(":p2")} == {1}


def test_exited_threads_are_not_waited_for() -> None:
    done = run("PTX e\n{ .global .u32 x; }\np@cta 0 { exit; }\nq@cta 0 { bar.sync 0; st.global.u32 [x], 1; }\n")
    assert done["codes"] == []
    assert done["memory"]["x"] == "01000000"


@pytest.mark.daily(days=4, least=0)
def test_every_shipped_test_runs_to_an_end() -> None:
    """No crash, and no deadlock or undefined behaviour in a test that is expected to be clean."""
    count = 0
    for path in sorted((ROOT / "litmus").rglob("*.litmus"))[::3]:
        program = parse(path.read_text(), str(path))
        m = machine(program, seed=1)
        schedule.run(m)
        count += 1
        if program.expectation.kinds == (("clean",),):
            assert [f.code for f in m.findings if f.severity == "error"] == [], path
    assert count > 100


def test_open_points_are_told_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy that leaves its tensor relies on the count of complete-tx, which no document gives."""
    text = """PTX t
{
  .global .align 128 .b8 t[512];
  .shared .align 128 .b8 buf[128];
  .shared .align 8 .b64 full;
  .global .tensormap tm = { global_address = t, elemtype = u8, rank = 2, global_dim = {16, 4}, global_stride = {16},
    box_dim = {16, 8}, fill_mode = zero };
}
p@cta 0 {
  mbarrier.init.shared::cta.b64 [full], 1;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 128;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [buf], [tm, {0, 0}], [full];
  await mbarrier.try_wait.parity.shared::cta.b64 [full], 0;
}
"""
    (tmp_path / "t.litmus").write_text(text)
    (tmp_path / "t.bin").write_bytes(bytes(range(64)))
    path, fill = str(tmp_path / "t.litmus"), f"t={tmp_path}/t.bin"
    assert main(["exec", path, "--load", fill, "--format", "json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["memory"]["buf@0"] == bytes(range(64)).hex() + "00" * 64
    assert len(done["open_points"]) == 1
    assert "full box" in done["open_points"][0]
    assert main(["exec", path]) == 0
    assert "full box" not in capsys.readouterr().out
    assert main(["exec", path, "--all"]) == 0
    assert "full box" in capsys.readouterr().out


TENSOR_OF_UNKNOWN = """\
PTX tensor-of-unknown
{{
  .global .align 16 .u32 g[8] = {{1, 2, 3, 4, 5, 6, 7, 8}};
  .global .tensormap tm = {{ global_address = g, elemtype = {elemtype}, rank = 1, global_dim = {{6}},
    global_stride = {{}}, box_dim = {{8}}, element_stride = {{1}}, fill_mode = zero }};
  .shared .align 1024 .u32 s[8], d[8];
  .shared .align 8 .b64 bar;
}}
P@cta 0 {{
  mbarrier.init.shared::cta.b64 [bar], 1;
  st.shared.u16 [s + 4], 77;
  st.shared.u32 [s + 8], 9;
  st.shared.u32 [s + 20], 5;
  fence.proxy.async;
  {store} [tm, {{0}}], [s];
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 32;
  cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [d], [tm, {{0}}], [bar];
  await mbarrier.try_wait.parity.shared::cta.b64 [bar], 0;
}}
"""
STORE = "cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group"
ADD = "cp.reduce.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group"


@pytest.mark.parametrize(
    ("elemtype", "store", "tensor", "loaded"),
    [
        ("u32", STORE, "???????? 4d00???? 09000000 ???????? ???????? 05000000", None),
        ("u32", ADD, "???????? ???????? 0c000000 ???????? ???????? 0b000000", None),
        # half an unknown element is rounded: none of it is known
        ("tf32", STORE, "???????? 4d00???? 09000000 ???????? ???????? 05000000", "???????? ???????? 00000000"),
    ],
    ids=["copied", "reduced", "rounded"],
)
def test_tensor_copies_of_unknown_bytes(elemtype: str, store: str, tensor: str, loaded: str | None) -> None:
    """Each byte, or element that is computed, is unknown by itself; what lies outside the tensor is filled."""
    done = run(TENSOR_OF_UNKNOWN.format(elemtype=elemtype, store=store))
    assert done["codes"] == []
    assert done["memory"]["g"] == tensor.replace(" ", "") + "0700000008000000"
    expected = (loaded or tensor).replace(" ", "")
    assert done["memory"]["d@0"][: len(expected)] == expected
    assert done["memory"]["d@0"][-16:] == "00" * 8


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x01\x00\x10\x00{'descr':",
        b"\x93NUMPY\x07\x00\x10\x00{'descr': '<u4'}",
        b"\x93NUMPY\x01\x00\x46\x00{'descr': '<u4', 'fortran_order': False, 'shape': (1000000000000,)}      ",
        b"\x93NUMPY\x01\x00\x3e\x00{'descr': '<u4', 'fortran_order': False, 'shape': (1024,)}     ",
        b"\x93NUMPY\x01\x00\x3a\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,)}     ",
        b"\x93NUMPY\x01\x00\x40\x00" + b"(" * 64,
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
        b"PK\x03\x04 an archive",
        b"\x80\x05K\x01.",
    ],
)
def test_a_file_that_is_no_array(data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "src.npy").write_bytes(data)
    (tmp_path / "ring.litmus").write_text(RING)
    assert main(["exec", str(tmp_path / "ring.litmus"), "--load", f"src={tmp_path / 'src.npy'}"]) == 2
    assert str(tmp_path / "src.npy") in capsys.readouterr().err


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["<u4", ">u4", "<f2", "u1"])
def test_arrays_of_all_layouts(kind: str, order: str, tmp_path: Path) -> None:
    words = np.arange(24).reshape(2, 3, 4).astype(kind)
    np.save(tmp_path / "a.npy", np.asarray(words, order=order))
    assert array_files._contents(str(tmp_path / "a.npy"), 4096) == words.astype(words.dtype.newbyteorder("<")).tobytes()


def test_a_commit_of_the_tensor_core_arrives_and_its_data_are_unknown() -> None:
    done = run("""PTX e
{ .tensor .b32 acc[128][32]; .shared .align 16 .b8 a[32]; .shared .b64 over; .shared .b32 word; }
p@cta 0, warp 0, lane 0 {
  mbarrier.init.shared::cta.b64 [over], 1;
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [word], 32;
  tcgen05.mma.cta_group::1.kind::f16 [acc, 16384], [a, 32], [a, 32];
  tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [over];
  await mbarrier.try_wait.parity.shared::cta.b64 [over], 0;
  tcgen05.ld.sync.aligned.32x32b.x1.b32 {...}, [acc];
  tcgen05.wait::ld.sync.aligned;
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 acc, 32;
  mov.u32 r0, 1;
}
""")
    assert done["codes"] == []
    assert done["registers"]["p:r0"] == 1
