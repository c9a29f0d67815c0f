"""Probes: how a container is asked whether it lives and whether it is ready, and what follows from the answers."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from relance.cluster.pods import Container, Probe
from relance.room.room import until

_OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0))


class Verdict:
    """What a probe says after so many equal answers in a row. None: not known yet."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._last: bool | None = None
        self._in_a_row = 0
        self.value: bool | None = None

    def hear(self, answer: bool) -> None:
        """One more answer."""
        self._in_a_row = self._in_a_row + 1 if answer == self._last else 1
        self._last = answer
        if self._in_a_row >= (self._probe.success if answer else self._probe.failure):
            self.value = answer


async def keep_asking(probe: Probe, ask: Callable[[], Awaitable[bool]], heard: Callable[[bool], None]) -> None:
    """Ask for ever as the probe says; `heard` gets the verdict after each answer, once there is one."""
    verdict = Verdict(probe)
    await asyncio.sleep(probe.initial_delay)
    loop = asyncio.get_running_loop()
    while True:
        next_time = loop.time() + probe.period
        verdict.hear(await ask())
        if verdict.value is not None:
            heard(verdict.value)
        await asyncio.sleep(max(0.0, next_time - loop.time()))


async def answers(probe: Probe, container: Container, address: str, environment: Mapping[str, str]) -> bool:
    """Ask once."""
    try:
        async with asyncio.timeout(probe.timeout):
            if probe.kind == "exec":
                return await run(probe.command, environment)
            port = container.port(probe.port)
            if probe.kind == "grpc":
                return await _health(f"{address}:{port}", probe.service, probe.timeout)
            reader, writer = await asyncio.open_connection(address, port)
            try:
                return probe.kind == "tcp" or await _get(reader, writer, probe.path, address)
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return False


async def _health(address: str, service: str, timeout: float) -> bool:
    async with grpc.aio.insecure_channel(address, options=_OPTIONS) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check(
            health_pb2.HealthCheckRequest(service=service), timeout=timeout
        )
        try:
            answer = await check
        except grpc.aio.AioRpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def _get(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, path: str, host: str) -> bool:
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    words = (await reader.readline()).split()
    return len(words) > 1 and words[1].isdigit() and 200 <= int(words[1]) < 400


async def run(words: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Run a command; whether it succeeded. Cancelled, it is killed."""
    process = _started(words, environment)
    try:
        await until(lambda: process.poll() is not None)
    finally:
        process.kill()
        process.wait()
    return process.returncode == 0


def _started(words: Sequence[str], environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    # Not by the event loop, which forks: among the threads of gRPC that is not safe, and this does without.
    return subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
