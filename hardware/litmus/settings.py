"""What the host tells a kernel: the fields of its one parameter, 8 bytes each, and where things lie in shared memory.

No import of mcheck: the runner uses it on a machine that has nothing else.
"""

from __future__ import annotations

FIELDS = (
    "rounds",  # instances that each lane runs one after the other
    "mask",  # number of instances of the launch, a power of two, less one
    "copies",  # sets of 32 instances per CTA, a power of two
    "groups",  # instances of the program's CTAs in the grid, a power of two, less one
    "seed",  # of the delays
    "delay",  # mask of the random delay before a round
    "warm",  # bit n: object n is read weakly before the round
    "pipe",  # accesses with bank conflicts that are queued before the round, in groups of four
    "noise",  # 1: other warps access shared memory with bank conflicts; 2: they access global memory
    "line",  # address of a counter at which all warps meet before a round (0: they do not), or one for each instance
    "turn",  # by how much the roles are turned among the CTAs of the grid
    "spread",  # 0: the warps of a copy are neighbours; 1: the copies of a role are
    "pause",  # nanoseconds after a round, for copies that nobody waited for
    "results",  # address of the registers: by slot, then by instance, 8 bytes each
    "stuck",  # address of a word per instance that is not 0 if a wait gave up
    "scratch",  # address of memory for noise
    "shift",  # by how much the warps of a CTA are turned
    "loud",  # instances' worth of CTAs that make noise instead
    "done",  # address of a word that counts the CTAs that are done
)
HEAD = len(FIELDS)
OBJECT_FIELDS = 2  # address, multiplier that scatters the instances
CTA_FIELDS = 1  # multiplier that permutes the groups
THREAD_FIELDS = 2  # multiplier and offset that permute the lanes

FLAG = 0  # copies that are done, for the noise to end
PIPE = 1024  # 32 lines of 128 bytes
BLOCKS = PIPE + 32 * 128  # the instances

ROW = 8192  # words of a row of a surface


def parameter_bytes(objects: int, ctas: int, threads: int) -> int:
    """The size of the parameter."""
    return 8 * (HEAD + OBJECT_FIELDS * objects + CTA_FIELDS * ctas + THREAD_FIELDS * threads)


def at(name: str) -> int:
    """The offset of a field of the head."""
    return 8 * FIELDS.index(name)


def object_at(number: int) -> int:
    """The offset of the fields of a global object."""
    return 8 * (HEAD + OBJECT_FIELDS * number)


def cta_at(objects: int, number: int) -> int:
    """The offset of the field of a CTA of the program."""
    return 8 * (HEAD + OBJECT_FIELDS * objects + CTA_FIELDS * number)


def thread_at(objects: int, ctas: int, number: int) -> int:
    """The offset of the fields of a thread."""
    return 8 * (HEAD + OBJECT_FIELDS * objects + CTA_FIELDS * ctas + THREAD_FIELDS * number)
