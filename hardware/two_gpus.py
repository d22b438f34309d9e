"""Handshakes between two GPUs of one host, right ones and ones with a mistake, and how often they go wrong.

    python -m hardware.two_gpus [--rounds N] [--grid CTAS] [--block THREADS]

Each thread of the first GPU hands a word to its partner on the second one, round after round: it writes the word,
raises a flag to the number of the round, and waits until the partner has acknowledged. The partner waits for the flag,
reads the word, and counts if it is not that of the round. The words, and the flags, lie in the memory of either GPU.
The right ones must never count; a mistake that shows is one that mcheck has to find (``tests/simt/launch/two_gpu_*``).
Two GPUs that reach each other's memory, and a driver that takes PTX 8.0, are needed. Prints a row for each handshake
and place: rounds of all threads together, and how many read something else.
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import dataclass

from hardware.driver import Driver

DISTANCE = 128
"""Bytes between the words of two threads."""


@dataclass(frozen=True, slots=True)
class Handshake:
    """What the writer does between word and flag, how the flag is raised and read, and what the reader does then."""

    name: str
    allowed: bool
    """Whether the model lets the reader read an old word."""
    raise_flag: str
    read_flag: str
    between: str = ""
    after: str = ""
    write: str = "st.global.u32"
    read: str = "ld.global.u32"


RELEASE, ACQUIRE = "st.release.sys.global.u32", "ld.acquire.sys.global.u32"
SET, POLL = "st.relaxed.sys.global.u32", "ld.relaxed.sys.global.u32"
FENCE = "fence.acq_rel.sys;"
STRONG = {"write": SET, "read": POLL}
HANDSHAKES = (
    Handshake("release.sys, acquire.sys", False, RELEASE, ACQUIRE),
    Handshake("fence.acq_rel.sys on both sides", False, SET, POLL, FENCE, FENCE),
    Handshake("fence.sc.sys on both sides", False, SET, POLL, "fence.sc.sys;", "fence.sc.sys;"),
    Handshake("no fence at the writer", True, SET, ACQUIRE),
    Handshake("no fence at the reader", True, RELEASE, POLL),
    Handshake("no fence", True, SET, POLL),
    Handshake("no fence, relaxed words", True, SET, POLL, **STRONG),
    Handshake("no fence at the writer, relaxed words", True, SET, ACQUIRE, **STRONG),
    Handshake(
        "fences of scope cta, relaxed words", True, SET, POLL, "fence.acq_rel.cta;", "fence.acq_rel.cta;", **STRONG
    ),
    Handshake(
        "fences of scope gpu, relaxed words", True, SET, POLL, "fence.acq_rel.gpu;", "fence.acq_rel.gpu;", **STRONG
    ),
    Handshake("the flag raised first", True, "", ACQUIRE),
)


def write_module(handshake: Handshake, rank: int) -> str:
    """The kernel of a GPU: (words, flags, acknowledgements, counts, rounds)."""
    send = [
        f"{handshake.write} [%word], %k;",
        handshake.between,
        f"{handshake.raise_flag or RELEASE} [%flag], %k;",
        "ACK: ld.acquire.sys.global.u32 %v, [%ack];",
        "setp.ne.u32 %p, %v, %k;",
        "@%p bra ACK;",
    ]
    if not handshake.raise_flag:
        send[0], send[2] = f"{RELEASE} [%flag], %k;", send[0]
    receive = [
        f"FLAG: {handshake.read_flag} %v, [%flag];",
        "setp.ne.u32 %p, %v, %k;",
        "@%p bra FLAG;",
        handshake.after,
        f"{handshake.read} %v, [%word];",
        "setp.ne.u32 %p, %v, %k;",
        "@%p add.u64 %count, %count, 1;",
        "st.release.sys.global.u32 [%ack], %k;",
    ]
    names = ("word", "flag", "ack", "total", "rounds")
    lines = [".version 8.0", ".target sm_90", ".address_size 64"]
    lines += [f".visible .entry run({', '.join(f'.param .u64 p{k}' for k in range(len(names)))})", "{"]
    lines += [".reg .pred %p, %q;", ".reg .b32 %v, %k, %n, %i, %t;", ".reg .b64 %count, %rounds, %at;"]
    lines += [f".reg .b64 {', '.join(f'%{name}' for name in names[:4])};"]
    lines += [f"ld.param.u64 %{name}, [p{k}];" for k, name in enumerate(names)]
    lines += ["mov.u32 %i, %ctaid.x;", "mov.u32 %n, %ntid.x;", "mov.u32 %t, %tid.x;", "mad.lo.u32 %i, %i, %n, %t;"]
    lines += [f"mul.wide.u32 %at, %i, {DISTANCE};"]
    lines += [f"add.u64 %{name}, %{name}, %at;" for name in names[:3]]
    lines += ["cvt.u32.u64 %n, %rounds;", "mov.u32 %k, 0;", "mov.u64 %count, 0;", "ROUND:", "add.u32 %k, %k, 1;"]
    lines += [line for line in (receive if rank else send) if line]
    lines += ["setp.lt.u32 %q, %k, %n;", "@%q bra ROUND;"]
    lines += ["red.relaxed.sys.global.add.u64 [%total], %count;", "ret;", "}"]
    return "\n".join([*lines, ""])


def run(
    drivers: tuple[Driver, Driver], handshake: Handshake, places: tuple[int, int], size: tuple[int, int, int]
) -> int:
    """How many reads were of another round; ``places`` are the GPUs of the words and of the flags."""
    grid, block, rounds = size
    room = grid * block * DISTANCE
    homes = (drivers[places[0]], drivers[places[1]], drivers[1 - places[1]], drivers[1])
    memory = [home.use().allocate(room) for home in homes]
    for home, address in zip(homes, memory, strict=True):
        home.use().write(address, bytes(room))
    for driver in drivers:
        driver.use().wait()
    arguments = [*memory, rounds]
    for rank, driver in enumerate(drivers):
        driver.use().start(write_module(handshake, rank), grid, block, 0, arguments)
    for driver in drivers:
        driver.use().wait()
    count = int.from_bytes(drivers[1].use().read(memory[3], 8), "little")
    for home, address in zip(homes, memory, strict=True):
        home.use().free(address)
    return count


def main() -> int:
    """Prints the table; exit status 1 if a right one has read an old word."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--right", type=int, default=20_000, help="rounds of those that must not go wrong")
    parser.add_argument("--grid", type=int, default=128)
    parser.add_argument("--block", type=int, default=128)
    options = parser.parse_args()
    drivers = (Driver(0), Driver(1))
    for driver, peer in itertools.permutations(drivers):
        driver.reach(peer)
    print(f"2 x {drivers[0].device}, driver {drivers[0].version}")
    bad = 0
    for handshake in HANDSHAKES:
        for words, flags in itertools.product(range(2), repeat=2):
            rounds = options.rounds if handshake.allowed else options.right
            began = time.perf_counter()
            count = run(drivers, handshake, (words, flags), (options.grid, options.block, rounds))
            seconds = time.perf_counter() - began
            total = rounds * options.grid * options.block
            verdict = "allowed" if handshake.allowed else "forbidden"
            where = f"words at {words}, flags at {flags}"
            print(f"{handshake.name:<40} {where:<26} {total:.2e} {count:>12} {verdict} {seconds:6.1f} s", flush=True)
            bad += count > 0 and not handshake.allowed
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
