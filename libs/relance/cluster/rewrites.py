"""What has to be said differently on one machine: names become addresses, paths of mounts become folders.

Nothing else of a manifest is changed. Every change is kept, so that it can be printed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_EVERYWHERE = re.compile(r"(?<![\w.:])(0\.0\.0\.0|\[::\])(?=:\d)")


@dataclass(slots=True)
class Ledger:
    """The changes so far: (workload, variable or argument) -> what was replaced by what kind of thing."""

    entries: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)

    def note(self, workload: str, where: str, old: str, kind: str) -> None:
        """Something was replaced."""
        self.entries.setdefault((workload, where), {})[old] = kind

    def lines(self) -> list[str]:
        """One line for each replaced text: what became of it, and where."""
        by_change: dict[tuple[str, str], list[str]] = {}
        for (workload, where), changes in sorted(self.entries.items()):
            for old, kind in changes.items():
                by_change.setdefault((old, kind), []).append(f"{workload} {where}")
        return [f"{old} → {kind} ({', '.join(places)})" for (old, kind), places in sorted(by_change.items())]


@dataclass(frozen=True, slots=True)
class Rewriter:
    """Replaces in the texts of one pod.

    own: the pod's address; hosts: name of a Service -> (address, kind for the ledger); mounts: path -> folder.
    """

    workload: str
    namespace: str
    own: str
    hosts: Mapping[str, tuple[str, str]]
    mounts: Mapping[str, str]
    ledger: Ledger

    def text(self, where: str, text: str) -> str:
        """A value of the environment, or an argument, as it has to be here."""
        note = self.ledger.note

        def host(found: re.Match[str]) -> str:
            address, kind = self.hosts[found["name"]]
            note(self.workload, where, found["name"], kind)
            return address

        def everywhere(found: re.Match[str]) -> str:
            note(self.workload, where, found[0], "the pod's address")
            return self.own

        def mount(found: re.Match[str]) -> str:
            note(self.workload, where, found[0], "a folder of the pod")
            return self.mounts[found[0]]

        if self.hosts:
            names = "|".join(sorted(map(re.escape, self.hosts), key=len, reverse=True))
            domain = rf"(\.{re.escape(self.namespace)}(\.svc(\.cluster\.local)?)?\.?)?"
            # A host's name stands alone, after // of a URL, after @ of a login or after a comma, and before a port.
            text = re.sub(rf"(?:(?<=^)|(?<=[/@,\s]))(?P<name>{names}){domain}(?=:\d)", host, text)
        text = _EVERYWHERE.sub(everywhere, text)
        if self.mounts:
            paths = "|".join(sorted(map(re.escape, self.mounts), key=len, reverse=True))
            text = re.sub(rf"(?<![\w./-])({paths})(?![\w.-])", mount, text)
        return text
