"""How processes of a room reach each other: TLS whose files may change, channels, traces.

It stands on no other package of the room, so that services and the client library may both use it.
"""

from relance.transport.channel import Open, Options, open_channel
from relance.transport.tls import Tls, TlsError

__all__ = ["Open", "Options", "Tls", "TlsError", "open_channel"]
