"""Builder of the statements of one thread."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from random import Random

SCOPES = ("cta", "cluster", "gpu", "sys")


@dataclass(slots=True)
class Body:
    """A thread body under construction; ``results`` are the registers with values read."""

    random: Random
    thread: int
    cta: int
    clustered: bool
    copies: list[str]
    lines: list[str] = field(default_factory=list)
    results: list[str] = field(default_factory=list)
    registers: int = 0
    predicates: int = 0
    labels: int = 0
    accesses: int = 0

    def result(self) -> str:
        """A fresh register for a value that is read."""
        name = f"r{self.registers}"
        self.registers += 1
        self.results.append(name)
        return name

    def predicate(self) -> str:
        """A fresh predicate."""
        self.predicates += 1
        return f"%p{self.predicates}"

    def label(self) -> str:
        """A fresh label."""
        self.labels += 1
        return f"L{self.labels}"

    def value(self) -> str:
        """What is written: mostly a small constant, now and then something that was read."""
        if self.results and self.random.random() < 0.25:
            return self.random.choice(self.results)
        return str(self.random.randint(1, 3))

    def scope(self) -> str:
        """A scope; wide ones are more common."""
        return self.random.choices(SCOPES, (3, 1, 5, 1))[0]

    def chance(self, probability: float) -> bool:
        """Whether something happens."""
        return self.random.random() < probability

    def say(self, *lines: str) -> None:
        """Appends statements, now and then leaving one out."""
        for line in lines:
            if self.chance(0.93):
                self.lines.append(line)
            else:
                self.results = [r for r in self.results if not re.search(rf"\b{r}\b", line)]
