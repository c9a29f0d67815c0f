"""The async client of a Relance room, for players and operators. See README.md beside this file."""

from relance.client.channels import Channels
from relance.client.club import Club
from relance.client.errors import (
    ActionRefused,
    NoMoney,
    OutcomeUnknown,
    RelanceError,
    ResumeImpossible,
    SignInRequired,
    SlowReader,
    StaleAction,
    Unavailable,
)
from relance.client.events import Event, Events
from relance.client.house_keeping import HouseKeeping
from relance.client.limits import PlayerLimits
from relance.client.operator import Operator
from relance.client.private import PrivateTables
from relance.client.rake import Rake
from relance.client.room import Room, connect
from relance.client.seat import Seat
from relance.client.stream import TableStream, Watch
from relance.client.turns import Turn
from relance.client.waitlist import Waitlist
from relance.transport import Tls, TlsError

__all__ = [
    "ActionRefused",
    "Channels",
    "Club",
    "Event",
    "Events",
    "HouseKeeping",
    "NoMoney",
    "Operator",
    "OutcomeUnknown",
    "PlayerLimits",
    "PrivateTables",
    "Rake",
    "RelanceError",
    "ResumeImpossible",
    "Room",
    "Seat",
    "SignInRequired",
    "SlowReader",
    "StaleAction",
    "TableStream",
    "Tls",
    "TlsError",
    "Turn",
    "Unavailable",
    "Waitlist",
    "Watch",
    "connect",
]
