"""Stress: the settings of a launch, and how many instances fit into it.

What makes weak outcomes show on a Hopper chip: words of one instance far apart, in no order that a warp shares; the
instances of one role permuted against those of another; lines that a cache holds already; a generic pipe that still
has accesses with bank conflicts queued; threads that are not all on time.
"""

from __future__ import annotations

from dataclasses import dataclass

from hardware.litmus.settings import BLOCKS

SMS = 132
REGISTERS = 65536
SHARED_LIMIT = 220 * 1024
RESULT_LIMIT = 1 << 28
SCATTER = (419, 1031, 2053, 4099, 6151, 12289, 24593, 49157, 98317, 196613)
PERMUTE = (1, 5, 13, 29, 17, 25, 9, 21)


@dataclass(frozen=True, slots=True)
class Preset:
    """A setting by name; see ``hardware.litmus.settings.FIELDS`` for what the numbers do."""

    name: str
    scatter: bool = True
    permute: bool = True
    warm: int = 0
    delay: int = 0
    pipe: int = 0
    noise: int = 0
    noisy_warps: int = 0
    line: bool = False
    spread: bool = False
    dense: bool = False
    few: bool = False
    loud: bool = False


FREE = (
    Preset("scattered"),
    Preset("warm all", warm=-1),
    Preset("warm odd", warm=0xAA),
    Preset("warm even", warm=0x55),
    Preset("meet, warm all", warm=-1, line=True),
    Preset("meet, warm even", warm=0x55, line=True),
    Preset("meet, late", line=True, delay=1023),
    Preset("side by side, meet, warm all", scatter=False, permute=False, line=True, warm=-1),
    Preset("dense, warm all", dense=True, warm=-1),
    Preset("late, warm all", delay=511, warm=-1),
    Preset("busy memory", noise=2, noisy_warps=4),
    Preset("side by side", scatter=False, permute=False),
)
BOUND = (
    Preset("scattered"),
    Preset("pipe", pipe=4),
    Preset("long pipe", pipe=16),
    Preset("busy banks", noise=1, noisy_warps=8),
    Preset("busy banks, pipe", noise=1, noisy_warps=8, pipe=4),
    Preset("busy banks, late", noise=1, noisy_warps=4, delay=1023),
    Preset("warm all, late", warm=-1, delay=255),
    Preset("busy memory", noise=2, noisy_warps=4),
    Preset("spread, pipe", spread=True, pipe=8),
    Preset("few, late", few=True, delay=4095),
)
WHOLE = (
    Preset("alone"),
    Preset("alone, late", delay=1023),
    Preset("alone, very late", delay=8191),
    Preset("alone, pipe", pipe=8),
    Preset("alone, pipe, late", pipe=16, delay=511),
    Preset("alone, warm all, late", warm=-1, delay=255),
    Preset("alone, busy banks", noise=1, loud=True),
    Preset("alone, busy banks, late", noise=1, loud=True, delay=2047),
    Preset("alone, busy memory", noise=2, loud=True),
    Preset("alone, busy memory, late", noise=2, loud=True, delay=1023),
)
"""Settings of tests whose instances have CTAs of their own."""
MOST_INSTANCES = 1 << 16
MOST_MAPS = 1 << 12
MOST_BYTES = 1 << 28


@dataclass(frozen=True, slots=True)
class Geometry:
    """A launch: CTAs and threads, copies per CTA, groups of the program's CTAs, rounds.

    ``loud`` of the groups make noise. Where instances have CTAs of their own the others are one instance each, and
    ``size`` is 1; else a copy has ``size`` of them.
    """

    grid: int
    block: int
    copies: int
    groups: int
    rounds: int
    shared: int
    size: int = 32
    loud: int = 0

    @property
    def instances(self) -> int:
        """Instances of the launch, a power of two."""
        return self.rounds * self.groups * self.copies * self.size


def _power(limit: int) -> int:
    return 1 << (max(limit, 1).bit_length() - 1)


def geometry(
    preset: Preset,
    *,
    ctas: int,
    warps: int,
    barriers: int,
    block: int,
    slots: int,
    free: bool,
    maps: bool,
    registers: int,
) -> Geometry:
    """The launch of a test with that many CTAs, warps per copy, barriers, and bytes of shared memory per instance.

    All CTAs of the grid are on the chip at the same time.
    """
    threads = 1024 if preset.dense else 512
    room = (threads - 32 * preset.noisy_warps) // (32 * warps)
    if not free:
        room = min(room, 16 // (1 + barriers), (SHARED_LIMIT // (32 * block)) if block else 16)
    copies = 1 if preset.few else _power(room)
    size = 32 * (copies * warps + preset.noisy_warps)
    shared = 1024 + 32 * 128 + copies * 32 * block
    threads_per_sm = min(2048, REGISTERS // ((registers + 7) // 8 * 8))
    per_sm = max(1, min(threads_per_sm // size, (227 * 1024) // (shared + 1024), 4))
    groups = _power(SMS * per_sm // ctas)
    rounds = 1 if maps else 8
    while rounds > 1 and rounds * groups * copies * 32 * 8 * max(slots, 1) > RESULT_LIMIT:
        rounds //= 2
    return Geometry(ctas * groups, size, copies, groups, rounds, shared)


def alone(preset: Preset, *, ctas: int, warps: int, block: int, bytes_each: int, maps: bool) -> Geometry:
    """The launch of a test whose instances have CTAs of their own, with so many bytes of global memory each.

    Not all CTAs are on the chip at the same time: those of an instance are neighbours, and the noise comes first.
    """
    groups = MOST_MAPS if maps else MOST_INSTANCES
    while groups > 1 and groups * max(bytes_each, 1) > MOST_BYTES:
        groups //= 2
    loud = max(SMS // ctas, 1) if preset.loud else 0
    return Geometry(ctas * (groups + loud), 32 * warps, 1, groups, 1, BLOCKS + block, size=1, loud=loud)
