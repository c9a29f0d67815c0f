"""What bots that misbehave did, what the room answered, and what no behaviour explains."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

MOST_FINDINGS = 100
"""More of them say nothing new."""


@dataclass(slots=True)
class Blotter:
    """Counts by the names of behaviours. A finding is an answer of the room that is wrong, or that nothing explains."""

    tries: Counter[str] = field(default_factory=Counter)
    refusals: dict[str, Counter[str]] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    def tried(self, behaviour: str) -> None:
        """A bot has begun to misbehave so."""
        self.tries[behaviour] += 1

    def refused(self, behaviour: str, reason: str) -> None:
        """The room refused, rightly."""
        self.refusals.setdefault(behaviour, Counter())[reason] += 1

    def found(self, what: str) -> None:
        """The room did something that it should not."""
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(what)

    def write(self, file: Path) -> None:
        """Leave it in a file, whole or not at all."""
        draft = file.with_suffix(".new")
        draft.write_text(
            json.dumps({"tries": self.tries, "refusals": self.refusals, "findings": self.findings}, indent=1)
        )
        os.replace(draft, file)

    @classmethod
    def read(cls, file: Path) -> Blotter:
        """What was left in a file; an empty one where there is none."""
        if not file.exists():
            return cls()
        found = json.loads(file.read_text())
        refusals = {name: Counter(reasons) for name, reasons in found["refusals"].items()}
        return cls(Counter(found["tries"]), refusals, found["findings"])

    def lines(self, behaviours: Sequence[str]) -> list[str]:
        """A line for each behaviour: how often, and the refusals by reason."""
        width = max(map(len, behaviours), default=0)
        return [
            f"{name:<{width}}  {self.tries[name]:>5}  {_words(self.refusals.get(name, Counter()))}".rstrip()
            for name in behaviours
        ]


def _words(reasons: Counter[str]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
