"""Generator of programs that poll: before they wait, instead of waiting, in loops with several ways out, for others.

A producer hands over data by an mbarrier, a flag or a counter, and its consumers wait in one of many ways: by a poll
that may save the wait, with something between the two; by a loop that asks twice in each round; by one lane that tells
the others; a bounded number of times. Most are right or nearly so, and then one statement is damaged now and then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.fuzz.draft import MODELS, Draft, Role

WHERE = ".shared::cta.b64"
SEMS = ("", "", "", ".acquire.cta", ".relaxed.cta", ".relaxed.cluster")


@dataclass(slots=True)
class _Thread:
    random: Random
    lanes: int
    """How many lanes of a warp execute it."""
    inits: int = 1
    """How many arrivals end a phase."""
    n: int = 0
    lines: list[str] = field(default_factory=list)

    def fresh(self) -> int:
        """The number of a register."""
        self.n += 1
        return self.n

    def say(self, *lines: str) -> None:
        """Append statements."""
        self.lines += lines

    # --- mbarriers ---

    def poll(self, bar: str, parity: int, p: int) -> None:
        """A poll of an mbarrier."""
        way = self.random.choice(("try_wait", "test_wait"))
        self.say(f"mbarrier.{way}.parity{self.random.choice(SEMS)}{WHERE} %p{p}, [{bar}], {parity};")

    def wait(self, bar: str, parity: int) -> None:
        """A wait."""
        way = self.random.choice(("try_wait", "test_wait"))
        sem = self.random.choice(SEMS)
        self.say(f"await mbarrier.{way}.parity{sem}{WHERE} [{bar}], {parity};")

    def between(self, other: str) -> None:
        """Something between a poll and what is made of its answer."""
        r = self.random
        match r.randrange(9):
            case 0:
                self.say(f"mbarrier.arrive{WHERE} _, [{other}];")
            case 1:
                self.say(f"mbarrier.arrive{WHERE} _, [bar];")
            case 2:
                self.say("bar.sync 0;")
            case 3:
                self.wait(other, r.randrange(2))
            case 4:
                self.say(f"ld.{r.choice(('relaxed', 'acquire'))}.cta.shared.u32 r{self.fresh()}, [f];")
            case 5:
                self.say(f"bar.warp.sync {(1 << self.lanes) - 1};")
            case 6:
                self.poll(other, r.randrange(2), self.fresh())
            case 7:
                self.say("st.relaxed.cta.shared.u32 [f], 1;")
            case _:
                pass

    def await_phase(self, bar: str, parity: int) -> None:
        """Wait for a phase in some way, or not quite."""
        r, other = self.random, "oth" if bar == "bar" else "bar"
        p = self.fresh()
        match r.choice(
            ("wait", "saved", "saved", "between", "between", "twice", "guarded", "vote", "shuffle", "bounded", "state")
        ):
            case "wait":
                self.wait(bar, parity)
            case "saved":
                self.poll(bar, parity, p)
                self._unless(p, bar, parity)
            case "between":
                self.poll(bar, parity, p)
                self.between(other)
                if r.random() < 0.3:
                    self.between(other)
                self._unless(p, bar, parity)
            case "twice":
                q = self.fresh()
                self.say(f"L{p}:")
                self.poll(bar, parity, p)
                self.say(f"@%p{p} bra D{p};")
                self.poll(*r.choice(((bar, parity), (bar, parity), (other, parity))), q)
                self.say(f"@!%p{q} bra L{p};", f"D{p}:")
            case "guarded":
                self.poll(bar, parity, p)
                self.say(f"selp.u32 r{p}, 1, 0, %p{p};", f"if (r{p} == 1) {{")
                self.use()
                self.say("}")
            case "vote":
                self.poll(bar, parity, p)
                self.say(f"vote.sync.{r.choice(('any', 'all'))}.pred %q{p}, %p{p}, {(1 << self.lanes) - 1};")
                self.say(f"selp.u32 r{p}, 1, 0, %q{p};", f"if (r{p} == 0) {{")
                self.wait(bar, parity)
                self.say("}")
            case "shuffle":
                self.say(f"mov.u32 r{p}, 0;", "if (%laneid == 0) {")
                self.poll(bar, parity, p)
                self.say(f"selp.u32 r{p}, 1, 0, %p{p};", "}")
                self.say(f"shfl.sync.idx.b32 r{p}, r{p}, 0, 31, {(1 << self.lanes) - 1};", f"if (r{p} == 0) {{")
                self.wait(bar, parity)
                self.say("}")
            case "bounded":
                self.say(f"mov.u32 r{p}, 0;")
                for _ in range(2):
                    self.say(f"if (r{p} == 0) {{")
                    self.poll(bar, parity, p)
                    self.say(f"selp.u32 r{p}, 1, 0, %p{p};", "}")
                self.say(f"if (r{p} == 0) {{")
                self.wait(bar, parity)
                self.say("}")
            case "state":
                self.say(f"mbarrier.arrive{WHERE} %rd{p}, [{bar}];")
                if r.random() < 0.5:
                    self.say(f"mbarrier.test_wait{r.choice(SEMS)}{WHERE} %p{p}, [{bar}], %rd{p};")
                    self.between(other)
                    self.say(f"selp.u32 r{p}, 1, 0, %p{p};", f"if (r{p} == 0) {{")
                    self.say(f"await mbarrier.try_wait{r.choice(SEMS)}{WHERE} [{bar}], %rd{p};", "}")
                else:
                    self.say(f"await mbarrier.try_wait{r.choice(SEMS)}{WHERE} [{bar}], %rd{p};")

    def _unless(self, p: int, bar: str, parity: int) -> None:
        self.say(f"selp.u32 r{p}, 1, 0, %p{p};", f"if (r{p} == 0) {{")
        self.wait(bar, parity)
        self.say("}")

    # --- words ---

    def load(self, word: str, r: int) -> str:
        """A load of a word of which others tell something."""
        space = "shared" if word in ("f", "h") else "global"
        how = self.random.choices(("relaxed", "acquire", "volatile", "weak"), (4, 6, 1, 0.5))[0]
        scope = "" if how in ("volatile", "weak") else f".{self.random.choice(('cta', 'gpu'))}"
        return f"ld.{how}{scope}.{space}.u32 r{r}, [{word}]"

    def await_word(self, word: str) -> None:
        """Wait for a word in some way, or not quite."""
        r, n = self.random, self.fresh()
        mask = (1 << self.lanes) - 1
        test = r.choices(("== 1", "!= 0", ">= 1", "== 2", "> 1"), (6, 3, 3, 1, 1))[0]
        match r.choice(("wait", "wait", "once", "two", "leader", "leader", "saved", "vote", "told", "last")):
            case "wait":
                self.say(f"await {self.load(word, n)} {test};")
            case "once":
                self.say(f"{self.load(word, n)};", f"if (r{n} {test}) {{")
                self.use()
                self.say("}")
            case "two":
                m, other = self.fresh(), r.choice((word, "h" if word == "f" else "e"))
                self.say(f"L{n}:", f"{self.load(word, n)};", f"setp.eq.u32 %p{n}, r{n}, 1;", f"@%p{n} bra D{n};")
                self.say(f"{self.load(other, m)};", f"setp.ne.u32 %p{m}, r{m}, 1;", f"@%p{m} bra L{n};", f"D{n}:")
            case "leader":
                self.say("if (%laneid == 0) {", f"await {self.load(word, n)} {test};", "}")
                self.say(
                    r.choice((f"bar.warp.sync {mask};", "bar.sync 0;", f"fence.acq_rel.cta;\nbar.warp.sync {mask};"))
                )
            case "saved":
                self.say(f"{self.load(word, n)};", f"if (r{n} == 0) {{", f"await {self.load(word, n)} == 1;", "}")
            case "vote":
                self.say(f"L{n}:", f"{self.load(word, n)};", f"setp.eq.u32 %p{n}, r{n}, 1;")
                self.say(f"vote.sync.{r.choice(('any', 'all'))}.pred %q{n}, %p{n}, {mask};", f"@!%q{n} bra L{n};")
            case "told":
                self.say(f"L{n}:", f"mov.u32 r{n}, 0;", "if (%laneid == 0) {", f"{self.load(word, n)};", "}")
                self.say(f"shfl.sync.idx.b32 r{n}, r{n}, 0, 31, {mask};")
                self.say(f"setp.ne.u32 %p{n}, r{n}, 1;", f"@%p{n} bra L{n};")
            case "last":
                sem = r.choice(("acq_rel", "acq_rel", "relaxed", "acquire", "release"))
                space = "shared" if word in ("f", "h") else "global"
                self.say(f"atom.{sem}.gpu.{space}.add.u32 r{n}, [{word}], 1;")
                self.say(f"if (r{n} {r.choice(('== 1', '!= 0', '>= 1', '== 0'))}) {{")
                self.use()
                self.say("}")

    def tell(self, word: str) -> None:
        """Set a word."""
        r = self.random
        space = "shared" if word in ("f", "h") else "global"
        scope = r.choice(("cta", "gpu"))
        match r.choices(("release", "relaxed", "fence", "atom", "red", "weak"), (6, 1, 2, 2, 2, 0.3))[0]:
            case "atom":
                sem = r.choice(("release", "relaxed", "acq_rel"))
                self.say(f"atom.{sem}.{scope}.{space}.add.u32 r{self.fresh()}, [{word}], 1;")
            case "red":
                self.say(f"red.{r.choice(('release', 'relaxed'))}.{scope}.{space}.add.u32 [{word}], 1;")
            case "fence":
                self.say(f"fence.acq_rel.{scope};", f"st.relaxed.{scope}.{space}.u32 [{word}], 1;")
            case "weak":
                self.say(f"st.{space}.u32 [{word}], 1;")
            case how:
                self.say(f"st.{how}.{scope}.{space}.u32 [{word}], 1;")

    # --- data ---

    def use(self) -> None:
        """Access the data."""
        word = self.random.choice(("x", "x", "x", "y"))
        if self.random.random() < 0.6:
            self.say(f"ld.shared.u32 r{self.fresh()}, [{word}];")
        else:
            store = f"st.shared.u32 [{word}], {self.random.randint(1, 3)};"
            # Lanes that store to one place by one instruction count as one store of a module.
            self.say(*((store,) if self.lanes == 1 else ("if (%laneid == 0) {", store, "}")))

    def produce(self, bar: str | None) -> None:
        """Write the data, and with ``bar`` signal it."""
        r = self.random
        match r.choices(("store", "bulk", "async"), (6, 3 if bar else 0, 2))[0]:
            case "store":
                self.say(f"st.shared.u32 [x], {r.randint(1, 3)};")
                if bar:
                    sem = r.choice(("", "", ".release.cta", ".relaxed.cta"))
                    self.say(f"mbarrier.arrive{sem}{WHERE} _, [{bar}]{f', {self.inits}' if self.inits > 1 else ''};")
            case "bulk":
                if self.inits > 1:
                    self.say(f"mbarrier.arrive{WHERE} _, [{bar}];")
                self.say(f"mbarrier.arrive.expect_tx{WHERE} _, [{bar}], 16;")
                self.say(f"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [x], [g], 16, [{bar}];")
            case "async":
                self.say("cp.async.ca.shared.global [x], [g], 4;")
                if bar and r.random() < 0.5:
                    self.say(f"cp.async.mbarrier.arrive.noinc{WHERE} [{bar}];")
                    if self.inits > 1:
                        self.say(f"mbarrier.arrive{WHERE} _, [{bar}];")
                    return
                self.say(*r.choice((("cp.async.wait_all;",), ("cp.async.commit_group;", "cp.async.wait_group 0;"),
                                    ("cp.async.commit_group;", "cp.async.wait_group 1;"))))  # fmt: skip
                if bar:
                    self.say(f"mbarrier.arrive{WHERE} _, [{bar}]{f', {self.inits}' if self.inits > 1 else ''};")


def polled(random: Random) -> Draft:
    """Two or three threads in one or two warps, one of which produces what the others wait for."""
    where = random.choice(("mbarrier", "mbarrier", "word", "both"))
    lanes = random.choice((1, 1, 1, 2, 2))
    inits = random.choices((1, 2), (4, 1))[0]
    apart = random.random() < 0.75
    producer, consumer = _Thread(random, 1, inits), _Thread(random, lanes, inits)
    threads = [producer, consumer]
    if lanes == 1 and random.random() < 0.3:
        threads.append(_Thread(random, 1, inits))
    producer.say(f"mbarrier.init.shared::cta.b64 [bar], {inits};", "mbarrier.init.shared::cta.b64 [oth], 1;")
    for t in threads:
        t.say("barrier.sync 0;")
    phases = random.choice((1, 1, 2))
    flag = random.choice(("f", "f", "e"))
    for phase in range(phases):
        if phase:
            producer.await_phase("oth", 0)
        if where != "word":
            producer.produce("bar")
        else:
            producer.produce(None)
        if where != "mbarrier" and not phase:
            producer.tell(flag)
        for t in threads[1:]:
            if where != "word" and (where == "mbarrier" or random.random() < 0.5):
                t.await_phase("bar", phase if random.random() < 0.95 else 1 - phase)
            else:
                t.await_word(flag)
            if random.random() < 0.9:
                t.use()
            if not phase and phases > 1 and t is consumer:
                t.say("if (%laneid == 0) {", f"mbarrier.arrive{WHERE} _, [oth];", "}")
    if random.random() < 0.15:
        t = random.choice(threads)
        t.lines.insert(random.randrange(len(t.lines)), "bar.sync 0;")
    roles = []
    for k, t in enumerate(threads):
        lane = "lane 0" if t.lanes == 1 else f"lane 0..{t.lanes}"
        if not apart and lanes == 1:
            place = f"cta 0, warp 0, lane {k}"
        else:
            place = f"cta 0, warp {k}, {lane}"
        roles.append(Role(f"P{k}", place, tuple(line for text in t.lines for line in text.split("\n"))))
    objects = [".shared .align 8 .b64 bar;", ".shared .align 8 .b64 oth;", ".shared .align 16 .u32 x[4];"]
    objects += [".shared .u32 y;", ".shared .u32 f;", ".shared .u32 h;", ".global .u32 e = 0;"]
    objects += [".global .align 16 .u32 g[4] = {1, 2, 3, 4};"]
    return Draft("polled", random.choice(MODELS), tuple(objects), tuple(roles), (), "")
