"""WatchTables: the catalogue to those who watch it, as it changes.

Whichever replica follows a table writes to the one database; each looks there once a tick for what is new and tells
its own watchers. Nothing is asked while nobody watches.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence

import structlog

from relance.api.lobby.v1 import lobby_pb2
from relance.lobby.catalogue import Catalogue, Version, check_filter
from relance.lobby.watching import Watcher
from relance.runtime import database
from relance.runtime.clock import Clock

log = structlog.get_logger(__name__)

PAGE = 200
"""Tables in one message."""
WHOLE_SECONDS = 60.0
"""How often everything is looked at again: statistics change by time alone."""

TableWatcher = Watcher[lobby_pb2.WatchTablesResponse]


class _Viewer:
    """What a watcher has been shown."""

    def __init__(self, watcher: TableWatcher) -> None:
        self._watcher = watcher
        self._shown: dict[str, lobby_pb2.Table] = {}

    def show(self, found: Sequence[lobby_pb2.Table], looked_at: Collection[str] | None) -> None:
        """`found`: those of the tables looked at (None: all) that the filter lets through."""
        names = {table.name for table in found}
        new = [table for table in found if not _same(self._shown.get(table.name), table)]
        seen = self._shown.keys() if looked_at is None else self._shown.keys() & {f"tables/{id}" for id in looked_at}
        gone = sorted(seen - names)
        for name in gone:
            del self._shown[name]
        self._shown.update((table.name, table) for table in new)
        if new or gone:
            self._push(new, gone)

    def begin(self, found: Sequence[lobby_pb2.Table]) -> None:
        """The list as it is now."""
        self._shown = {table.name: table for table in found}
        self._push(found, [])

    def _push(self, tables: Sequence[lobby_pb2.Table], removed: Sequence[str]) -> None:
        pages = [tables[at : at + PAGE] for at in range(0, len(tables), PAGE)] or [[]]
        for number, page in enumerate(pages, 1):
            last = number == len(pages)
            self._watcher.push(
                lobby_pb2.WatchTablesResponse(tables=page, removed=removed if last else (), complete=last)
            )


class TableBoard:
    """The watchers of this process."""

    def __init__(self, catalogue: Catalogue, clock: Clock, tick_seconds: float) -> None:
        self._catalogue, self._clock, self._tick = catalogue, clock, tick_seconds
        self._viewers: dict[TableWatcher, tuple[str, _Viewer]] = {}
        self._versions: dict[str, Version] = {}
        self._entering = asyncio.Lock()

    async def enter(self, watcher: TableWatcher, filter: str) -> None:
        """Show the list, then what changes. Raises Refused INVALID_FILTER."""
        check_filter(filter)
        async with self._entering:  # between two looks: nothing falls in between the list and the changes
            if not self._viewers:
                self._versions = await self._catalogue.versions()
            viewer = _Viewer(watcher)
            viewer.begin(await self._catalogue.changed(filter, None))
            self._viewers[watcher] = (filter, viewer)

    def leave(self, watcher: TableWatcher) -> None:
        """Show no more."""
        self._viewers.pop(watcher, None)

    async def run(self) -> None:
        """Tell of changes, for ever."""
        whole_at = 0.0
        while True:
            await self._clock.sleep(self._tick)
            if not self._viewers:
                continue
            try:
                async with self._entering:
                    now = self._clock.monotonic()
                    await self._look(whole=now >= whole_at)
                    if now >= whole_at:
                        whole_at = now + WHOLE_SECONDS
            except database.OUTAGE as error:
                log.info("tables not looked at", error=type(error).__name__)

    async def _look(self, *, whole: bool) -> None:
        """Find what changed and show it to whom it concerns. Watchers with one filter share a query."""
        versions = await self._catalogue.versions()
        changed = [table for table, version in versions.items() if self._versions.get(table) != version]
        changed += self._versions.keys() - versions.keys()  # closed since then
        if not changed and not whole:
            return
        looked_at = None if whole else changed
        groups: defaultdict[str, list[_Viewer]] = defaultdict(list)
        for filter, viewer in self._viewers.values():
            groups[filter].append(viewer)
        for filter, viewers in groups.items():
            found = await self._catalogue.changed(filter, looked_at)
            for viewer in viewers:
                viewer.show(found, looked_at)
        self._versions = versions


def _same(one: lobby_pb2.Table | None, other: lobby_pb2.Table) -> bool:
    """Whether nothing that people see has changed: a version that did nothing else is none of their business."""
    if one is None:
        return False
    copy = lobby_pb2.Table()
    copy.CopyFrom(other)
    copy.version = one.version
    return one == copy
