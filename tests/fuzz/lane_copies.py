"""Generator of small kernels whose lanes copy: two lanes with the same code, mbarriers, and often another thread.

Most are wrong in some way: lanes copy to one place, wait for the wrong phase, or announce other bytes than come.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from mcheck.engines.protocol.analysis.lane_groups import PER_LANE, partition_lanes
from mcheck.ir.expr import Const, Lanes
from mcheck.ir.ops import Op
from mcheck.ir.program import Program

WARP = 32
LANES = 2
BUFFERS = ("buf + 16*%laneid", "buf + 16*%laneid", "buf + 16 - 16*%laneid", "buf", "buf + 16")
WORDS = ("buf + 16*%laneid", "buf + 4*%laneid", "buf", "buf + 16", "buf + 16 - 16*%laneid")
FILL = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
DRAIN = "cp.async.bulk.global.shared::cta.bulk_group"
BAR = "mbarrier."
KINDS = {
    "fill": 1, "announced fill": 4, "drain": 1, "drained": 1, "copy": 1, "copied": 1, "arrival of copies": 1,
    "arrival": 2, "announcement": 1, "wait": 3, "load": 2, "store": 1, "warp": 1, "fence": 1,
}  # fmt: skip


def lane_copies(random: Random) -> str:
    """The text of a kernel: ``a`` are lanes of one warp, ``b`` is a thread of another one."""
    code: dict[str, list[str]] = {"a": [], "b": []}
    for part in range(random.choice((1, 1, 2))):
        for name, numbers in (("a", (1, 2, 3, 4)), ("b", (0, 0, 1, 2))):
            code[name] += ["bar.sync 0;"] * (part > 0)
            for _ in range(random.choice(numbers)):
                code[name] += _statement(random)
    inits = [f"{BAR}init.shared::cta.b64 [{bar}], {random.choice((1, 2, 2, 3, 4))};" for bar in "mn"]
    return "\n".join((
        "PTX lane-copies",
        "{ .global .align 16 .b8 src[32]; .global .align 16 .b8 dst[32]; .shared .align 16 .b8 buf[32];",
        "  .shared .align 8 .b64 m, n; }",
        "b@cta 0, warp 1, lane 0 {", *inits, "fence.proxy.async;", "bar.sync 0;", *code["b"], "}",
        f"a@cta 0, warp 0, lane 0..{LANES} {{", "bar.sync 0;", *code["a"], "}", "",
    ))  # fmt: skip


def _statement(random: Random) -> list[str]:
    bar, place = random.choice("mmn"), random.choice(BUFFERS)
    (kind,) = random.choices(tuple(KINDS), tuple(KINDS.values()))
    fill, arrive = f"{FILL} [{place}], [src + 16*%laneid], 16, [{bar}];", f"{BAR}arrive.shared::cta.b64 _, [{bar}];"
    match kind:
        case "fill":
            return [fill]
        case "announced fill":
            pair = [f"{BAR}expect_tx.relaxed.cta.shared::cta.b64 [{bar}], 16;", fill]
            return [*random.sample(pair, 2), *random.choice(([], [arrive]))]
        case "drain":
            return [f"{DRAIN} [dst + 16*%laneid], [{place}], 16;", "cp.async.bulk.commit_group;"]
        case "drained":
            return [f"cp.async.bulk.wait_group{random.choice(('.read', ''))} {random.choice((0, 0, 1))};"]
        case "copy":
            return [f"cp.async.ca.shared.global [{place}], [src + 16*%laneid], 16;"]
        case "copied":
            return ["cp.async.wait_all;"]
        case "arrival of copies":
            return [f"cp.async.mbarrier.arrive{random.choice(('.noinc', ''))}.shared.b64 [{bar}];"]
        case "arrival":
            return [arrive]
        case "announcement":
            return [f"{BAR}arrive.expect_tx.shared::cta.b64 _, [{bar}], {random.choice((16, 32))};"]
        case "wait":
            return [f"await {BAR}try_wait.parity.shared::cta.b64 [{bar}], {random.choice((0, 0, 1))};"]
        case "load":
            return [f"ld.shared.u32 r0, [{random.choice(WORDS)}];"]
        case "store":
            return [f"st.shared.u32 [{random.choice(WORDS)}], 1;"]
        case "warp":
            return [f"bar.warp.sync {(1 << LANES) - 1};"]
    return ["fence.proxy.async;"]


def share_operations(program: Program) -> Program:
    """The program as a module has it: lanes of a group share each operation, with an operand for all of them."""
    threads = list(program.threads)
    for group in partition_lanes(program):
        columns = zip(*(program.threads[t].code for t in group), strict=True)
        shared = tuple(_share([program.threads[t].place.lane for t in group], column) for column in columns)
        for t in group:
            threads[t] = replace(program.threads[t], code=shared)
    return replace(program, threads=tuple(threads))


def _share(lanes: list[int], column: tuple[Op, ...]) -> Op:
    together: dict[str, Lanes] = {}
    for name in PER_LANE.get(type(column[0]), ()):
        values = [getattr(op, name) for op in column]
        if any(value != values[0] for value in values):
            assert all(isinstance(value, Const) for value in values)
            held = dict(zip(lanes, (value.value for value in values), strict=True))
            together[name] = Lanes(tuple(held.get(lane, 0) for lane in range(WARP)))
    return replace(column[0], **together)  # type: ignore[arg-type]
