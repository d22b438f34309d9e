"""Random pipelines as kernels have them: rings of slots, full and empty mbarriers, producers, consumers, multicasts.

A plan is right; then it is damaged as ``tests.fuzz.damage`` does, or in what pipelines have of their own: a parity,
a count, the slot, a hand-over too early. Rounds are written out by ``for`` or are a loop with a branch.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.fuzz.damage import mutate
from tests.fuzz.draft import MODELS, Draft, Role
from tests.fuzz.programs import legal

BYTES = 16


@dataclass(frozen=True, slots=True)
class Plan:
    """A ring of ``slots`` for ``rounds`` rounds in ``ctas`` CTAs, each with ``consumers``; the producers fill it by
    ``how``, for their CTA alone or in the first one for all.
    """

    slots: int
    rounds: int
    ctas: int
    consumers: int
    how: str
    reading: str
    looped: bool

    @property
    def cast(self) -> bool:
        """Whether one producer fills the slots of all CTAs."""
        return self.how == "multicast"


def _plan(random: Random) -> Plan:
    how = random.choice(("bulk", "bulk", "generic", "cp.async", "multicast", "multicast", "remote", "tensor"))
    ctas = 2 if how in ("multicast", "remote") else random.choices((1, 2), (4, 1))[0]
    slots = random.choice((1, 1, 2))
    return Plan(
        slots=slots,
        rounds=random.choice((slots, slots + 1, slots + 1, 2 * slots)),
        ctas=ctas,
        consumers=1 if ctas == 2 else random.choice((1, 1, 2)),
        how=how,
        reading=random.choice(("load", "load", "wgmma", "store")),
        looped=random.random() < 0.3,
    )


def pipeline(random: Random) -> Draft:
    """A pipeline, mostly with a mistake or two."""
    plan = _plan(random)
    made = written(random, plan)
    for _ in range(random.choices((0, 1, 2), (2, 6, 2))[0]):
        for _ in range(10):
            changed = _spoiled(random, made) if random.random() < 0.5 else mutate(random, made, 1)
            if changed != made and legal(changed):
                made = changed
                break
    return made


def written(random: Random, plan: Plan) -> Draft:
    """The pipeline of a plan, without a mistake."""
    roles: list[Role] = []
    for cta in range(plan.ctas):
        place = f"cluster 0, cta {cta}" if plan.ctas == 2 else "cta 0"
        sends = cta == 0 or plan.how not in ("multicast", "remote")
        lines = [*_begun(plan, cta), *(_producer(random, plan) if sends else _expects(plan))]
        roles.append(Role(f"P{cta}", place, (*lines, *_met(plan))))
        if plan.how == "remote" and cta == 0:
            continue
        for k in range(plan.consumers):
            code = (*_ready(plan), *_rounds(plan, _consumer(random, plan, cta)), *_met(plan))
            roles.append(Role(f"C{cta}{k}", place, code))
    objects = [
        f".global .align 16 .u32 src[{4 * plan.rounds}] = {{{', '.join(str(k + 1) for k in range(4 * plan.rounds))}}};",
        f".global .align 16 .u32 dst[{4 * plan.rounds}];",
        f".shared .align 128 .b8 buf[{plan.slots}][128];",
        ".shared .align 16 .u32 own[4];",
        f".shared .align 8 .b64 full[{plan.slots}];",
        f".shared .align 8 .b64 empty[{plan.slots}];",
    ]
    if plan.how == "tensor":
        objects.append(
            f".global .tensormap tm = {{ global_address = src, elemtype = u32, rank = 1,"
            f" global_dim = {{{4 * plan.rounds}}}, global_stride = {{}},"
            " box_dim = {4}, element_stride = {1}, interleave_layout = none, swizzle_mode = none,"
            " swizzle_atomicity = 16B, fill_mode = zero };"
        )
    return Draft("pipeline", random.choice(MODELS), tuple(objects), tuple(roles))


def _begun(plan: Plan, cta: int) -> list[str]:
    readers = plan.consumers * (2 if plan.cast and cta == 0 else 1)
    lines = []
    for s in range(plan.slots):
        lines.append(f"mbarrier.init.shared::cta.b64 [full[{s}]], 1;")
        lines.append(f"mbarrier.init.shared::cta.b64 [empty[{s}]], {readers};")
    return [*lines, *_ready(plan)]


def _ready(plan: Plan) -> list[str]:
    if plan.ctas == 1:
        return ["bar.sync 0;"]
    return ["fence.mbarrier_init.release.cluster;", "barrier.cluster.arrive.relaxed;", "barrier.cluster.wait;"]


def _met(plan: Plan) -> list[str]:
    return ["barrier.cluster.arrive;", "barrier.cluster.wait;"] if plan.ctas == 2 else []


def _rounds(plan: Plan, body: list[str]) -> list[str]:
    """The body for each round: ``@k`` is its number, ``@s`` its slot, ``@p`` and ``@q`` the parities of its phase and
    of the one before, ``@src``, ``@dst`` and ``@c`` where its bytes are in the tensors.
    """
    if plan.looped and plan.slots == 1:
        names = {"@src": "%rd1", "@dst": "%rd2", "@c": "r8", "@k": "r7", "@s": "0", "@p": "r6", "@q": "r5"}
        start = ["mov.u32 r8, 0;", "mov.u32 r7, 0;", "mov.u32 r6, 0;", "mov.u32 r5, 1;"]
        start += ["mov.u64 %rd1, src;", "mov.u64 %rd2, dst;", "L7:"]
        further = ["add.u32 r8, r8, 4;", "add.u32 r7, r7, 1;", "xor.b32 r6, r6, 1;", "xor.b32 r5, r5, 1;"]
        further += ["add.u64 %rd1, %rd1, 16;", "add.u64 %rd2, %rd2, 16;"]
        end = [f"setp.lt.u32 %p7, r7, {plan.rounds};", "@%p7 bra L7;"]
        return [*start, *(_named(line, names) for line in body), *further, *end]
    found = []
    for k in range(plan.rounds):
        parity = k // plan.slots % 2
        names = {"@src": f"src + {16 * k}", "@dst": f"dst + {16 * k}", "@c": str(4 * k), "@k": str(k)}
        names |= {"@s": str(k % plan.slots), "@p": str(parity), "@q": str(1 - parity)}
        found += [_named(line, names) for line in body]
    return found


def _named(line: str, names: dict[str, str]) -> str:
    for name, value in names.items():
        line = line.replace(name, value)
    return line


def _producer(random: Random, plan: Plan) -> list[str]:
    scope = ".acquire.cluster" if plan.ctas == 2 else random.choice(("", ".acquire.cta"))
    wait = f"await mbarrier.try_wait.parity{scope}.shared::cta.b64 [empty[@s]], @q;"
    expect = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[@s]], {BYTES};"
    bulk = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    match plan.how:
        case "bulk":
            body = [expect, f"{bulk} [buf[@s]], [@src], {BYTES}, [full[@s]];"]
        case "tensor":
            tensor = "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes"
            body = [expect, f"{tensor} [buf[@s]], [tm, {{@c}}], [full[@s]];"]
        case "multicast":
            body = [expect, f"{bulk}.multicast::cluster [buf[@s]], [@src], {BYTES}, [full[@s]], 3;"]
        case "remote":
            wait = f"await mbarrier.try_wait.parity{scope}.shared::cta.b64 [empty[@s]], @q;"
            send = "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32"
            body = [f"{send} [buf[@s]@1], {{1, 2, 3, 4}}, [full[@s]@1];"]
        case "cp.async":
            arrive = "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [full[@s]];"
            body = [f"cp.async.cg.shared.global [buf[@s]], [@src], {BYTES};", arrive]
        case _:
            body = ["st.shared.u32 [buf[@s]], @k;"]
            if plan.reading != "load":
                body.append("fence.proxy.async.shared::cta;")
            body.append("mbarrier.arrive.shared::cta.b64 _, [full[@s]];")
    return _rounds(plan, [wait, *body])


def _expects(plan: Plan) -> list[str]:
    """The CTA that somebody else fills expects what comes; the phase before has to be over for that."""
    wait = "await mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 [empty[@s]], @q;"
    expect = f"mbarrier.arrive.expect_tx.shared::cta.b64 _, [full[@s]], {BYTES};"
    return _rounds(plan, [wait, expect])


def _consumer(random: Random, plan: Plan, cta: int) -> list[str]:
    scope = ".acquire.cluster" if plan.ctas == 2 else ""
    wait = f"await mbarrier.try_wait.parity{scope}.shared::cta.b64 [full[@s]], @p;"
    free = ["mbarrier.arrive.shared::cta.b64 _, [empty[@s]];"]
    far = "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [empty[@s]@0];"
    if plan.how == "remote" or (plan.cast and cta):
        free = [*free, far]
    generic = plan.how in ("bulk", "tensor", "multicast")
    match plan.reading:
        case "wgmma":
            product = (
                "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, [buf[@s], 16], [buf[@s], 16];"
            )
            fence = [] if generic else ["fence.proxy.async.shared::cta;"]
            end = ["wgmma.commit_group.sync.aligned;", "wgmma.wait_group.sync.aligned 0;"]
            read = [*fence, "wgmma.fence.sync.aligned;", product, *end]
        case "store":
            fence = [] if generic else ["fence.proxy.async.shared::cta;"]
            end = ["cp.async.bulk.commit_group;", f"cp.async.bulk.wait_group{random.choice(('.read', ''))} 0;"]
            copy = f"cp.async.bulk.global.shared::cta.bulk_group [@dst], [buf[@s]], {BYTES};"
            if plan.consumers * plan.ctas > 1:
                copy = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [@dst], [buf[@s]], {BYTES};"
            read = [*fence, copy, *end]
        case _:
            read = ["ld.shared.u32 r1, [buf[@s]];"] + (["fence.proxy.async.shared::cta;"] if generic else [])
    return [wait, *read, *free]


def _spoiled(random: Random, made: Draft) -> Draft:
    """A mistake of pipelines: a parity, a slot, a count, a wait or a fence left out, a hand-over too early, an exit."""
    k = random.randrange(len(made.roles))
    lines = list(made.roles[k].lines)
    kind = random.choice(("parity", "slot", "count", "wait", "early", "fence", "exit"))
    fitting = {
        "parity": "await", "slot": "[", "count": "mbarrier.", "wait": "await", "early": "arrive", "fence": "fence",
        "exit": "",
    }[kind]  # fmt: skip
    places = [n for n, line in enumerate(lines) if fitting in line]
    if not places:
        return made
    n = random.choice(places)
    line = lines[n]
    match kind:
        case "parity":
            swapped = {"0;": "1;", "1;": "0;", "r6;": "r5;", "r5;": "r6;"}
            head, _, last = line.rpartition(" ")
            lines[n] = f"{head} {swapped.get(last, last)}"
        case "slot":
            lines[n] = line.replace("[0]", "[#]").replace("[1]", "[0]").replace("[#]", "[1]")
        case "count":
            lines[n] = line.replace(", 16;", f", {random.choice((0, 32))};").replace(
                "], 1;", f"], {random.choice((2, 3))};"
            )
            lines[n] = lines[n].replace("], 2;", f"], {random.choice((1, 3))};") if lines[n] == line else lines[n]
        case "wait" | "fence":
            del lines[n]
        case "early":
            del lines[n]
            lines.insert(max(0, n - random.choice((1, 1, 2, 3))), line)
        case _:
            lines.insert(n, random.choice(("exit;", "@%p7 exit;") if "L7:" in lines[:n] else ("exit;",)))
    roles = (*made.roles[:k], replace(made.roles[k], lines=tuple(lines)), *made.roles[k + 1 :])
    return replace(made, roles=roles)
