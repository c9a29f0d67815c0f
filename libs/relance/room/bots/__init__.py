"""Bots: players on the client library, for rooms that have nobody else yet."""

from relance.room.bots.fleet import BotFleet, BotStats, FleetStats
from relance.room.bots.player import PACES, Pace

__all__ = ["PACES", "BotFleet", "BotStats", "FleetStats", "Pace"]
