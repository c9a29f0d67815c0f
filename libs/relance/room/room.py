"""A whole room as child processes: PostgreSQL, NATS, the four services, and whatever else is added to it.

folder.take() -> servers -> migrations -> services -> ready;  a service that dies is started again
"""

from __future__ import annotations

import asyncio
import math
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from relance.room.embedded import Nats, Postgres
from relance.room.folder import DataFolder
from relance.room.processes import Child, RoomError
from relance.room.services import (
    DATABASE,
    SERVICES,
    Ports,
    allow_logins,
    audit_url,
    environment,
    inherited,
    make_database,
    migrate_command,
    migrate_environment,
    serve_command,
    without_login,
)
from relance.runtime.server import READINESS

READY_TIMEOUT = 60.0
# With what follows it a room is gone within 20 s.
DRAIN_SECONDS = 14.0
# A child that ran this long has started well: the next death is a new story.
STEADY_SECONDS = 20.0
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 10.0
# What a drain may take beyond the hands' time before processes are killed.
DRAIN_GRACE = 2.0


@dataclass(frozen=True, slots=True)
class RoomOptions:
    """How a room is started. None for a server's URL: an embedded one."""

    data: Path
    port: int | None = None
    database_url: str | None = None
    nats_url: str | None = None
    drain_seconds: float = DRAIN_SECONDS


class Room:
    """The supervisor of one room. To be used from the main thread's event loop.

    `say` gets a sentence whenever something happened that an operator would want to know.
    """

    def __init__(self, options: RoomOptions, say: Callable[[str], None]) -> None:
        self.options = options
        self.folder = DataFolder(options.data)
        self.say = say
        self.restarts: dict[str, int] = {}
        self._ports: Ports | None = None
        self._servers: dict[str, Postgres | Nats] = {}
        self._children: dict[str, Child] = {}
        self._programs: dict[str, tuple[Sequence[str], Mapping[str, str]]] = {}
        self._keepers: dict[str, asyncio.Task[None]] = {}
        self._held: set[str] = set()
        self._released = asyncio.Event()
        self.owner_url = ""
        self.nats_url = ""

    async def start(self) -> None:
        """Bring everything up. Raises RoomError; then nothing is left running."""
        self.folder.take()
        try:
            for name in self.folder.stop_leftovers():
                self.say(f"stopped {name}, which an earlier start had left running")
            self.folder.make_keys()
            self._ports = Ports.choose(self.folder, self.options.port)
            self._keepers["logs"] = asyncio.create_task(self._bound_logs(), name="bound logs")
            await self._start_servers()
            await self._migrate()
            for service in SERVICES:
                self.add(service, serve_command(service), self._environment(service))
            await asyncio.gather(*(self.wait_ready(service) for service in SERVICES))
            addresses = {service: self.address(service) for service in SERVICES}
            self.folder.write_addresses({**addresses, DATABASE: without_login(self.owner_url)})
        except BaseException:
            await self.stop(drain=False)
            raise

    @property
    def ports(self) -> Ports:
        """Ports of the room that was started."""
        if self._ports is None:
            raise RoomError("the room is not started")
        return self._ports

    @property
    def names(self) -> list[str]:
        """Names of all processes, in the order of their start."""
        return [*self._servers, *self._children]

    @property
    def audit_url(self) -> str:
        """Database URL of the role that may only read."""
        return audit_url(self.folder, self.owner_url)

    def address(self, service: str) -> str:
        """gRPC address of a service."""
        return self.ports.address(service)

    def child(self, name: str) -> Child:
        """A process by name. Raises RoomError for one that the room does not run."""
        if name in self._servers:
            return self._servers[name].child
        if name not in self._children:
            raise RoomError(f"this room runs no {name} of its own; it runs {', '.join(self.names)}")
        return self._children[name]

    def add(self, name: str, program: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Start a further process and keep it running. `env` None: this one's, without what is meant for services."""
        env = inherited() if env is None else env
        self._programs[name] = (program, env)
        log = self.folder.logs / f"{name}.log"
        self._children[name] = Child(name, self.folder.run / f"{name}.pid", log, signal.SIGKILL)
        self._children[name].start(program, env)
        self._keepers[name] = asyncio.create_task(self._keep(name), name=f"keep {name}")

    def kill(self, name: str) -> None:
        """SIGKILL a process. The supervisor starts it again unless it is held."""
        self.child(name).send(signal.SIGKILL)

    def hold(self, name: str) -> None:
        """Do not start `name` again until `release`."""
        self._held.add(name)

    def release(self, name: str) -> None:
        """Start `name` again if it has died, and keep it running."""
        self._held.discard(name)
        self._released.set()

    async def wait_ready(self, name: str) -> None:
        """Wait until a service answers the health check, a server its port. Raises RoomError after a minute."""
        deadline = time.monotonic() + READY_TIMEOUT
        while time.monotonic() < deadline:
            if name in self._servers:
                if self._servers[name].child.running and self._servers[name].ready():
                    return
            elif name not in SERVICES:
                if self._children[name].running:
                    return
            elif await self.healthy(name):
                return
            if self.restarts.get(name, 0) > 3 and not self.child(name).running:
                break
            await asyncio.sleep(0.05)
        child = self.child(name)
        raise RoomError(f"{name} does not get ready: {child.last_words()}")

    async def wait_restarted(self, name: str, pid: int | None) -> None:
        """Wait until another process than `pid` is ready. Raises RoomError."""
        child = self.child(name)
        if not await until(lambda: child.running and child.pid != pid, READY_TIMEOUT):
            raise RoomError(f"{name} was not started again; see {child.log}")
        await self.wait_ready(name)

    async def healthy(self, service: str) -> bool:
        """Whether a service says that it serves."""
        async with grpc.aio.insecure_channel(self.address(service)) as channel:
            request = health_pb2.HealthCheckRequest(service=READINESS)
            check = health_pb2_grpc.HealthStub(channel).Check(request, timeout=1)
            try:
                answer = await check
            except grpc.aio.AioRpcError:
                return False
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    async def stop(self, *, drain: bool = True) -> None:
        """Stop everything."""
        await self.stop_services(drain=drain)
        await self.stop_servers()

    async def stop_services(self, *, drain: bool = True) -> None:
        """Stop what uses the servers: the table service first, for its hands may end while all others still serve."""
        await self._let_go(list(self._programs))
        if drain and "table" in self._children:
            await self._end("table", signal.SIGTERM, self.options.drain_seconds + DRAIN_GRACE)
        number = signal.SIGTERM if drain else signal.SIGKILL
        others = [name for name in self._children if name != "table" or not drain]
        await asyncio.gather(*(self._end(name, number, DRAIN_GRACE) for name in others))
        self._children.clear()

    async def stop_servers(self) -> None:
        """Stop PostgreSQL and NATS, as far as they are ours, and leave the data folder."""
        await self._let_go(list(self._keepers))
        for name in reversed(self._servers):
            await self._end(name, signal.SIGINT if name == "postgres" else signal.SIGTERM, 2 * DRAIN_GRACE)
        self._servers.clear()
        self.folder.release()

    async def _let_go(self, names: Sequence[str]) -> None:
        """From now on, whatever of these dies stays dead."""
        keepers = [self._keepers.pop(name) for name in names if name in self._keepers]
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)

    async def _end(self, name: str, number: int, timeout: float) -> None:
        child = self.child(name)
        child.send(number)
        if not await until(lambda: not child.running, timeout):
            self.say(f"{name} did not end within {timeout:.0f} s and was killed")
            child.send(signal.SIGKILL)
        child.wait(5)

    async def _start_servers(self) -> None:
        options = self.options
        if options.database_url is None:
            self._servers["postgres"] = Postgres(self.folder.postgres, self.ports.of("postgres"))
        if options.nats_url is None:
            self._servers["nats"] = Nats(self.folder.nats, self.ports.of("nats"))
        for server in self._servers.values():
            server.spawn()
        for server in self._servers.values():
            await until(server.ready)
        for name in self._servers:
            self._keepers[name] = asyncio.create_task(self._keep(name), name=f"keep {name}")
        postgres, nats = self._servers.get("postgres"), self._servers.get("nats")
        self.nats_url = nats.url if nats is not None else str(options.nats_url)
        self.owner_url = (
            await make_database(postgres.url, "relance") if postgres is not None else str(options.database_url)
        )

    async def _migrate(self) -> None:
        env = migrate_environment(self.owner_url)
        migrations: dict[str, Child] = {}
        for service in SERVICES:
            name = f"migrate-{service}"
            child = Child(name, self.folder.run / f"{name}.pid", self.folder.logs / f"{name}.log")
            child.start(migrate_command(service), env)
            migrations[service] = child
        for service, child in migrations.items():
            await until(lambda child=child: not child.running)  # type: ignore[misc]
            child.wait(1)
            if child.exit_code != 0:
                raise RoomError(f"migrating {service} failed: {child.last_words()}")
        await allow_logins(self.owner_url, self.folder)

    def _environment(self, service: str) -> dict[str, str]:
        urls = (self.owner_url, self.nats_url)
        return environment(service, self.folder, self.ports, urls, self.options.drain_seconds)

    async def _keep(self, name: str) -> None:
        """Start a process again whenever it has died, more slowly if it keeps dying."""
        pause, started = 0.0, time.monotonic()
        while True:
            child = self.child(name)
            await until(lambda child=child: not child.running)  # type: ignore[misc]
            self.say(f"{name} died ({_how(child.exit_code)})")
            if time.monotonic() - started > STEADY_SECONDS:
                pause = 0.0
            await asyncio.sleep(pause)
            while name in self._held:
                self._released.clear()
                await self._released.wait()
            pause = min(max(FIRST_PAUSE, pause * 2), LONGEST_PAUSE)
            self.restarts[name] = self.restarts.get(name, 0) + 1
            started = time.monotonic()
            await self._again(name)
            self.say(f"started {name} again")

    async def _bound_logs(self) -> None:
        while True:
            await asyncio.sleep(5)
            for name in self.names:
                self.child(name).bound_log()

    async def _again(self, name: str) -> None:
        server = self._servers.get(name)
        if server is None:
            program, env = self._programs[name]
            self._children[name].start(program, env)
            return
        try:
            server.spawn()
            await until(server.ready)
        except RoomError as error:
            self.say(str(error))


async def until(condition: Callable[[], bool], timeout: float = math.inf) -> bool:
    """Wait until `condition` holds. False: `timeout` seconds went by first."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.03)
    return True


def _how(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return signal.Signals(-exit_code).name
    return f"exit code {exit_code}"
