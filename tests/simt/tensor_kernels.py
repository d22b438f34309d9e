"""A kernel whose first thread issues operations of the tensor core, and what is said of it."""

from __future__ import annotations

from mcheck.answers.result import Answer
from mcheck.cat import load_model
from mcheck.checking.modules.answer import answer_launch
from mcheck.checking.policy.question import Completeness, Question
from mcheck.frontend.ptx.launch_reader import build_launch, from_object
from mcheck.frontend.ptx.reader import parse_module
from mcheck.frontend.ptx.targets import check_target

COLUMNS = 512
QUARTER = "shr.u32 %r16, %r1, 5;\n  shl.b32 %r16, %r16, 21;\n  add.u32 %r15, %r16, %r10;\n"
DONE = "  @!%p4 bra WAIT;\n"


def describe(m: int, n: int, *, sparse: bool = False, more: int = 0) -> int:
    """An instruction descriptor."""
    return m >> 4 << 24 | n >> 3 << 17 | sparse << 2 | more


def module(
    issued: str = "", behind: str = "", *, group: int = 1, idesc: int = describe(128, 64), target: str = "sm_100a"
) -> str:
    """A kernel whose first thread issues something, commits it and waits; then both warps do something."""
    cluster = ".reqnctapercluster 2, 1, 1\n" if group == 2 else ""
    return f""".version 8.8
.target {target}
.address_size 64
.global .align 16 .b8 data[16];
.visible .entry k()
.reqntid 64, 1, 1
{cluster}{{
  .reg .pred %p<8>;
  .reg .b16 %rs<4>;
  .reg .b32 %r<400>;
  .reg .b64 %rd<8>;
  .shared .align 1024 .b8 a[65536];
  .shared .align 1024 .b8 b[65536];
  .shared .align 8 .b64 over;
  .shared .align 4 .b32 base;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, a;
  mov.u32 %r4, b;
  setp.gt.u32 %p1, %r1, 31;
  setp.ne.u32 %p6, %r2, 0;
  @%p1 bra MEET;
  tcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [base], {COLUMNS};
  setp.ne.u32 %p2, %r1, 0;
  @%p2 bra MEET;
  mbarrier.init.shared::cta.b64 [over], 1;
  fence.mbarrier_init.release.cluster;
MEET:
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  ld.shared.b32 %r10, [base];
  add.u32 %r11, %r10, 256;
  add.u32 %r12, %r10, 320;
  add.u32 %r13, %r10, 352;
  add.u32 %r14, %r10, 384;
  {QUARTER}
  mov.u32 %r20, {idesc};
  shr.u32 %r21, %r3, 4;
  or.b32 %r21, %r21, 0x80000;
  shr.u32 %r22, %r4, 4;
  or.b32 %r22, %r22, 0x80000;
  mov.u32 %r23, 0x4010;
  mov.b64 %rd1, {{%r21, %r23}};
  mov.b64 %rd2, {{%r22, %r23}};
  mov.b64 %rd3, 0;
  setp.eq.u32 %p5, %r1, %r1;
  or.b32 %r24, %r1, %r2;
  setp.ne.u32 %p3, %r24, 0;
  @%p3 bra WAIT;
  {issued}
  mov.u16 %rs1, {2 * group - 1};
  tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [over], %rs1;
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p4, [over], 0;
{DONE}  bar.sync 0;
  {behind}
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  @%p1 bra DONE;
  tcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %r10, {COLUMNS};
  tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;
DONE:
  barrier.cluster.arrive.release.aligned;
  barrier.cluster.wait.acquire.aligned;
  ret;
}}
"""


def ask(text: str, ctas: int = 1) -> Answer:
    """The answer about a module, as ``mcheck check`` has it."""
    read = parse_module(text)
    check_target(read)
    question = Question(about=Completeness.FINDINGS, timeout=60)
    return answer_launch(read, build_launch(read, from_object({"grid": ctas})), load_model("ptx-9.0"), question)


def found_at(text: str, found: Answer) -> dict[str, set[str]]:
    """By code of the errors, the instructions that they name."""
    lines, out = text.splitlines(), dict[str, set[str]]()
    for f in found.findings:
        if f.severity == "error":
            out.setdefault(f.code, set()).update(lines[a.span.line - 1].strip() for a in f.accesses if a.span)
    return out


def registers(count: int) -> str:
    """A vector."""
    return "{" + ", ".join(f"%r{40 + k}" for k in range(count)) + "}"
