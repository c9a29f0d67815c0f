"""Tables among friends: opening one, its guests, and the password that lets one in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from relance.api.common.v1 import game_pb2
from relance.api.table.v1 import table_pb2
from relance.client import RelanceError, Seat
from relance.play.form import Form
from relance.play.glyphs import LIMITS, clean, game_title, stakes_text, unit
from relance.play.rows import Choice, Line, Row, switch

if TYPE_CHECKING:
    from relance.play.app import PlayApp

_ID = re.compile(r"[a-z0-9-]{1,40}")


async def open_private(app: PlayApp, like: game_pb2.TableConfig) -> str:
    """Ask for a name and a password, and open a private table like another; its name, empty: the player did not want.

    Raises RelanceError with the room's refusal.
    """
    limit = LIMITS.get(like.limit, "")
    what = f"{game_title(like.game)} {limit} {stakes_text(like)} {unit(like.currency, app.glyphs)}"
    seats = [(str(number), number) for number in range(2, like.seats + 1)]
    rows: list[Row] = [
        Line("name", "Name (empty: from the game)", most=32),
        Line("password", "Password (empty: only guests)", most=128),
        Choice("seats", "Seats", seats, len(seats) - 1),
    ]
    answers = await app.push_screen_wait(Form(f"A private table: {what}", rows, "open it", app.glyphs))
    if answers is None:
        return ""
    request = table_pb2.OpenTableRequest(
        house=like.house,
        game=like.game,
        limit=like.limit,
        stakes=like.stakes,
        seats=answers.amount("seats"),
        currency=like.currency,
        display_name=answers.text("name"),
        turbo=like.turbo,
    )
    return await app.room.private.open(request, answers.text("password"))


async def invitation_for(app: PlayApp, seat: Seat) -> str | None:
    """What lets the player sit at a private table: as a guest, else by its password. None: the player gave up.

    Raises RelanceError with the room's refusal: TABLE_PASSWORD_WRONG.
    """
    try:
        return await app.room.private.invitation(seat.table)
    except RelanceError as refusal:
        if refusal.reason not in {"NOT_INVITED", "TABLE_PASSWORD_WRONG"}:
            raise
    row = Line("password", "Password", most=128, secret=True, needed=True)
    answers = await app.push_screen_wait(
        Form("A private table: you are not among its guests", [row], "go in", app.glyphs)
    )
    if answers is None:
        return None
    return await app.room.private.invitation(seat.table, answers.text("password"))


async def ask_guests(app: PlayApp, table: str) -> str:
    """Show who may sit, and change it; what came of it, in a line. For the host. Raises RelanceError."""
    private = app.room.private
    guests = [invite.player.rpartition("/")[2] for invite in await private.invites(table)]
    await app.learn_names(guests)
    names = ", ".join(clean(app.names.get(guest, guest)) for guest in guests) or "nobody yet"
    rows: list[Row] = [
        Line("invite", "Invite (name or id)"),
        Line("back", "Take back (name or id)"),
        Line("password", "New password", most=128),
        switch("none", "No password", on=False),
    ]
    answers = await app.push_screen_wait(Form(f"Guests: {names}", rows, "do it", app.glyphs))
    if answers is None:
        return ""
    done = []
    if invited := answers.text("invite"):
        await private.invite(table, [find_player(app, invited)])
        done.append(f"{invited} may sit here")
    if back := answers.text("back"):
        await private.uninvite(table, [find_player(app, back)])
        done.append(f"{back} may not any more")
    if answers.text("password") or answers["none"]:
        await private.set_password(table, "" if answers["none"] else answers.text("password"))
        done.append("there is no password" if answers["none"] else "the password is another")
    return f"{'; '.join(done)}." if done else ""


def find_player(app: PlayApp, typed: str) -> str:
    """The id of a player whose name or id was typed. Raises RelanceError PLAYER_NOT_FOUND.

    The room tells names of ids, not ids of names: whom one has met at tables is known here.
    """
    for player, name in app.names.items():
        if name.casefold() == typed.casefold():
            return player
    if _ID.fullmatch(typed):
        return typed
    raise RelanceError("PLAYER_NOT_FOUND", f"{typed} was not met at a table yet; their id would do (? shows one's own)")
