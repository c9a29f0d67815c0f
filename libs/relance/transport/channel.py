"""Channels to other processes: TLS whose certificates may change while they are open, and traces of their calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

import grpc

from relance.transport import tracing
from relance.transport.tls import Material, Tls

Options: TypeAlias = Sequence[tuple[str, Any]]
Open: TypeAlias = Callable[[str, Options], grpc.aio.Channel]


def open_channel(address: str, tls: Tls | None, options: Options = ()) -> grpc.aio.Channel:
    """A channel to host:port: with TLS where there is any, plaintext otherwise. It connects on first use.

    When the certificates' files have changed, calls that begin from then on go over a new connection; those under way
    end on the old one, which closes with the last of them.
    """
    if tls is None and not tracing.on():
        return grpc.aio.insecure_channel(address, options=list(options))
    return _Channel(address, tls, list(options))


class _Channel(grpc.aio.Channel):
    """A channel that is made anew when its certificates have changed."""

    def __init__(self, address: str, tls: Tls | None, options: list[tuple[str, Any]]) -> None:
        self._address, self._tls, self._options = address, tls, options
        self._material = None if tls is None else tls.current()
        self._channel = self._made(self._material)
        self.number = 0
        """Counts the channels under this one."""

    def _made(self, material: Material | None) -> grpc.aio.Channel:
        if self._tls is None or material is None:
            return grpc.aio.insecure_channel(self._address, options=self._options)
        # Connections are not shared with a channel of other certificates.
        options = [*self._options, ("grpc.use_local_subchannel_pool", 1)]
        if self._tls.server_name:
            options.append(("grpc.ssl_target_name_override", self._tls.server_name))
        return grpc.aio.secure_channel(self._address, self._tls.channel_credentials(material), options=options)

    def now(self) -> grpc.aio.Channel:
        """The channel of the certificates of now."""
        if self._tls is not None:
            material = self._tls.recent()
            if material is not self._material:
                self._material = material
                # Not closed: that would cancel its calls. gRPC lets the connection go with the last of them.
                self._channel = self._made(material)
                self.number += 1
        return self._channel

    def unary_unary(self, method: str, *codec: Any, **named: Any) -> Any:
        """See grpc.aio.Channel."""
        return _Method(self, method, lambda channel: channel.unary_unary(method, *codec, **named))

    def unary_stream(self, method: str, *codec: Any, **named: Any) -> Any:
        """See grpc.aio.Channel."""
        return _Method(self, method, lambda channel: channel.unary_stream(method, *codec, **named))

    def stream_unary(self, method: str, *codec: Any, **named: Any) -> Any:
        """See grpc.aio.Channel."""
        return _Method(self, method, lambda channel: channel.stream_unary(method, *codec, **named))

    def stream_stream(self, method: str, *codec: Any, **named: Any) -> Any:
        """See grpc.aio.Channel."""
        return _Method(self, method, lambda channel: channel.stream_stream(method, *codec, **named))

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """See grpc.aio.Channel."""
        return self.now().get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """See grpc.aio.Channel."""
        await self.now().wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """See grpc.aio.Channel."""
        await self.now().channel_ready()

    async def close(self, grace: float | None = None) -> None:
        """See grpc.aio.Channel."""
        await self._channel.close(grace)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class _Method:
    """One method of the channel, whichever channel that is at the time of a call."""

    __slots__ = ("_callable", "_channel", "_make", "_method", "_number", "_traced")

    def __init__(self, channel: _Channel, method: str, make: Callable[[grpc.aio.Channel], Any]) -> None:
        self._channel, self._method, self._make = channel, method, make
        self._traced = not method.startswith("/grpc.")  # whether somebody is there is asked all the time
        self._callable, self._number = make(channel.now()), channel.number

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        channel = self._channel.now()
        if self._number != self._channel.number:
            self._callable, self._number = self._make(channel), self._channel.number
        if not self._traced or not tracing.on():
            return self._callable(*arguments, **named)
        return tracing.called(self._method, self._callable, arguments, named)
