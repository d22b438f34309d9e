"""Modules with multimem instructions: the launch says which buffers an address stands for, and all are accessed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mcheck.base.errors import Unsupported
from mcheck.checking.check.modules import check_text
from mcheck.checking.run.case import Options, Settings
from mcheck.checking.run.result import Result
from mcheck.effects.site import Objects
from mcheck.frontend.litmus import parse
from mcheck.frontend.ptx.launch_reader import from_object
from mcheck.frontend.ptx.launch_template import launch_template
from mcheck.frontend.ptx.reader import parse_module
from mcheck.simt.sketches.objects import Declarations
from mcheck.simt.sketches.spelling import Speller
from tests.checking.modules.stream_kernels import HEAD, READ, WRITE, checked, kernel, launch
from tests.checking.modules.test_modules_gpus import ONE, ZERO, receive, signal, spin

ADD = "multimem.red.release.sys.global.add.u32 [%rd4], 1;"
ALIAS = "fence.proxy.alias;"
NEWEST = HEAD.replace("8.7", "9.5")
TO_TILE = "shared::cta.global.mbarrier::complete_tx::bytes"


def pair(sender: str, receiver: str, *, second: tuple[str, str] = ("a", "m"), **more: Any) -> Result:
    """A kernel on each of two GPUs: both have ``a``, and ``m``, by which ``b`` and ``c`` are accessed."""
    buffers = {"a": ZERO, "b": ZERO, "c": {**ZERO, "gpu": 1}, "m": {"multicast": ["b", "c"]}, **more}
    declared = {name: given if "multicast" in given else {"bytes": 4, **given} for name, given in buffers.items()}
    launches = [launch("send", "a", "m") | ONE, launch("receive", *second, gpu=1) | ONE]
    given = from_object({"launches": launches, "buffers": declared})
    return check_text(NEWEST + sender + receiver, "<ptx>", given, Settings(timeout=60), Options())


@pytest.mark.daily(days=4, least=0)
def test_a_buffer_without_a_mapping_is_named() -> None:
    for add in (ADD, "multimem.ld_reduce.add.u32 %r4, [%rd4];", "multimem.st.u32 [%rd4], 1;"):
        found = checked(
            kernel("send", WRITE, add, width=1) + receive(), launch("send", "a", "b") | ONE,
            launch("receive", "a", "b", gpu=1) | ONE, b=ZERO,
        )  # fmt: skip
        assert (found.verdict, found.findings) == ("unknown", ())
        assert add.rstrip(";") in str(found.reason)
        assert '"multicast"' in str(found.reason)


@pytest.mark.parametrize("given", ["b", [], ["b", "b"], ["b", "x"], ["m", "b"], ["b", "d"], ["b", 1], ["b", "e"]])
def test_a_mapping_is_of_several_buffers_of_one_size(given: object) -> None:
    other = {"d": {"bytes": 8}, "e": {"bytes": None}}
    found = pair(kernel("send", ADD, width=1), kernel("receive", width=1), m={"multicast": given}, **other)
    assert found.verdict == "error"
    assert getattr(found.problem, "code", None) == "PTX103"


def test_a_buffer_is_a_copy_of_one_mapping() -> None:
    found = pair(kernel("send", ADD, width=1), kernel("receive", width=1), n={"multicast": ["c"]})
    assert getattr(found.problem, "code", None) == "PTX103"
    found = pair(kernel("send", ADD, width=1), kernel("receive", width=1), m={"multicast": ["b"], "bytes": 4})
    assert getattr(found.problem, "code", None) == "PTX104"


def test_data_by_the_mapping_and_a_flag_by_an_address() -> None:
    """The first GPU stores to both copies; the other one reads its own when the flag is set."""
    store = "multimem.st.weak.global.u32 [%rd4], 1;"
    flag = signal("%rd1")
    receiver = kernel("receive", *spin("%rd1"), "ld.global.u32 %r4, [%rd4];", width=1)
    right = kernel("send", store, ALIAS, flag, width=1)
    assert pair(right, receiver, second=("a", "c"), a=ZERO).verdict == "proved"
    assert pair(right, receiver, second=("a", "b"), a=ZERO).verdict == "proved"
    found = pair(kernel("send", store, flag, width=1), receiver, second=("a", "c"), a=ZERO)
    assert [f.code for f in found.findings] == ["RACE001"]
    assert "fence.proxy.alias" in found.findings[0].missing
    narrow = pair(right.replace("release.sys", "release.gpu"), receiver, second=("a", "c"), a=ZERO)
    assert narrow.verdict == "finding"
    assert {f.code for f in narrow.findings} <= {"RACE001", "RACE010"}


def test_halves_of_the_alias_fence() -> None:
    """What is stored by the mapping is released, and acquired where it is read by the copy's own address (PTX 9.4)."""
    store = "multimem.st.weak.global.u32 [%rd4], 1;"
    release, acquire = "fence.proxy.alias.release.sys;", "fence.proxy.alias.acquire.sys;"

    def answer(before: str, after: str) -> Result:
        flag = "st.relaxed.sys.global.u32 [%rd1], 1;"
        sender = kernel("send", store, "fence.release.sys;", before, flag, width=1)
        wait = [line.replace("acquire", "relaxed") for line in spin("%rd1")]
        receiver = kernel("receive", *wait, after, "fence.acquire.sys;", "ld.global.u32 %r4, [%rd4];", width=1)
        return pair(sender, receiver, second=("a", "c"), a=ZERO)

    assert answer(release, acquire).verdict == "proved"
    for before, after in ((release, ""), ("", acquire), (acquire, release)):
        found = answer(before, after)
        assert [f.code for f in found.findings] == ["RACE001"]


def test_a_flag_by_two_addresses() -> None:
    """Released by the mapping, acquired by the copy's own address: open (Q41), unless it would synchronise nothing."""
    sender = kernel("send", WRITE, ADD, ALIAS, width=1)
    receiver = kernel("receive", ALIAS, *spin("%rd4"), READ, width=1)
    found = pair(sender, receiver, second=("a", "c"))
    assert (found.verdict, found.findings) == ("unknown", ())
    assert re.search(r"line \d+ and line \d+ .* programming guide .*\(open question Q41\)", str(found.reason))
    unfenced = kernel("receive", *spin("%rd4"), READ, width=1)
    weak = sender.replace(ADD, "multimem.st.weak.global.u32 [%rd4], 1;")
    for one, other in ((sender, unfenced), (weak, receiver), (sender.replace("release.sys", "release.gpu"), receiver)):
        wrong = pair(one, other, second=("a", "c"))
        assert wrong.verdict == "finding"
        assert {f.code for f in wrong.findings} <= {"RACE001", "RACE010"}
        assert "Q41" not in str(wrong.findings)


def test_control_that_depends_on_a_sum_of_copies_is_left_open() -> None:
    wait = (
        "W:",
        "multimem.ld_reduce.acquire.sys.global.add.u32 %r5, [%rd4];",
        "setp.lt.u32 %p1, %r5, 1;",
        "@%p1 bra W;",
    )
    found = pair(kernel("send", WRITE, ADD, width=1), kernel("receive", *wait, READ, width=1))
    assert (found.verdict, found.findings) == ("unknown", ())
    assert "'multimem.ld_reduce.acquire.sys.global.add.u32 %r5, [%rd4]' returns" in str(found.reason)


def test_additions_of_both_gpus_and_a_later_launch() -> None:
    """Reductions of both are atomics of each copy."""
    add = "multimem.red.relaxed.sys.global.add.u32 [%rd4], 1;"
    assert pair(kernel("send", add, width=1), kernel("receive", add, width=1)).verdict == "proved"
    found = pair(kernel("send", add, width=1), kernel("receive", add.replace("sys", "gpu"), width=1))
    assert {f.code for f in found.findings} <= {"RACE001", "RACE010"}
    assert found.verdict == "finding"


def test_other_instructions_with_a_multimem_address() -> None:
    found = pair(kernel("send", "ld.global.u32 %r4, [%rd4];", width=1), kernel("receive", width=1))
    assert [f.code for f in found.findings] == ["UB111"]


BULK = (
    "mov.u32 %r6, tile;", "st.shared.u32 [%r6], 1;", "fence.proxy.async.shared::cta;",
    "multimem.cp.async.bulk.global.shared::cta.bulk_group [%rd4], [%r6], 16;", "cp.async.bulk.commit_group;",
)  # fmt: skip


@pytest.mark.daily(days=3, least=0)
def test_bulk_copies() -> None:
    """The other GPU reads all copies by their mapping, once the copy is complete."""
    wide: dict[str, Any] = {"b": {"bytes": 16}, "c": {"bytes": 16, "gpu": 1}}
    head = ".shared .align 16 .b8 tile[16];"
    reader = kernel("receive", *spin("%rd1"), "multimem.ld_reduce.weak.global.add.u32 %r4, [%rd4];", width=1)
    right = head + kernel("send", *BULK, "cp.async.bulk.wait_group 0;", signal("%rd1"), width=1)
    assert pair(right, reader, **wide).verdict == "proved"
    early = head + kernel("send", *BULK, signal("%rd1"), "cp.async.bulk.wait_group 0;", width=1)
    assert [f.code for f in pair(early, reader, **wide).findings] == ["RACE003"]
    reduced = right.replace("multimem.cp.async", "multimem.cp.reduce.async").replace(
        "bulk_group [", "bulk_group.add.u32 ["
    )
    assert pair(reduced, reader, **wide).verdict == "proved"
    hasty = early.replace("multimem.cp.async", "multimem.cp.reduce.async").replace(
        "bulk_group [", "bulk_group.add.u32 ["
    )
    assert {f.code for f in pair(hasty, reader, **wide).findings} == {"RACE003"}
    unnamed = pair(right, reader, m=wide["b"])
    assert '"multicast"' in str(unnamed.reason)


def test_the_template_of_a_launch_names_the_field() -> None:
    """Only where there are such instructions."""
    written = launch_template(parse_module(NEWEST + kernel("send", ADD), "k.ptx"))
    assert '"multicast"' in written
    assert '"multicast"' not in launch_template(parse_module(NEWEST + kernel("send", READ), "k.ptx"))


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("multimem.st.async.release.sys.global.u32 [%rd4], 1;", "multimem.st.async"),
        ("multimem.red.async.release.sys.global.add.u32 [%rd4], 1;", "multimem.red.async"),
        ("ld.global.u32.proxy::readonly %r4, [%rd4];", "proxy::readonly"),
        ("fence.alias.release.sync_restrict::read.sys;", "fence.alias.release"),
        ("fabric.submit;", "'fabric'"),
        ("mbarrier.init.layout::v1.shared::cta.b64 [%r1], 2;", "layout::v1"),
        ("fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cta;", "read.cta"),
        (f"cp.async.bulk.{TO_TILE}.mbarrier::report::validity::per_16bytes::80 [%r1], [%rd4], 16, [%r2];", "report"),
        (f"cp.async.bulk.{TO_TILE}.ignore_oob [%r1], [%rd4], 32, 4, 0, [%r2];", "ignore_oob"),
        (
            f"cp.async.bulk.{TO_TILE.replace('cta', 'cluster')}.multicast::cluster::32b [%r1], [%rd4], 16, [%r2], %r3;",
            "32b",
        ),
        (
            f"cp.async.bulk.tensor.1d.{TO_TILE}.override::global_address [%r1], [%rd1, %rd4, {{%r3}}], [%r2];",
            "override::global_address",
        ),
        ("tensormap.replace.tile.alloc_large.global.b1024 [%rd4];", "alloc_large"),
        ("tensormap.query.alloc_class_large.global.b1024 %p1, [%rd4];", "tensormap.query"),
        ("tcgen05.dealloc.exclusive.cta_group::1.sync.aligned.b32 %r1, 32;", "exclusive"),
    ],
)
def test_newer_forms_are_left_open_by_name(line: str, named: str) -> None:
    found = checked(kernel("send", line), launch("send", "a", "b") | ONE, target="sm_107a")
    assert (found.verdict, found.findings) == ("unknown", ())
    assert named in str(found.reason)


def test_no_sketch_is_written_of_the_accesses_of_single_copies() -> None:
    program = parse(
        "PTX t\n{ x = 0; y = 0; m @ multimem aliases x, y; }\nP@cta 0 { multimem.st.u32 [m], 1; }\n", "t.litmus"
    )
    declared = Declarations(program, Objects(program.memory))
    speller = Speller(declared, program.threads[0].place.cta, (0,))
    with pytest.raises(Unsupported, match="not put together again"):
        speller.statements(program.threads[0].code[0])
