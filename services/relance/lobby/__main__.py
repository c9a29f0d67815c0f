"""The lobby's process: `python -m relance.lobby serve` and `migrate`."""

from __future__ import annotations

from relance.lobby.serve import serve
from relance.lobby.settings import LobbySettings
from relance.runtime.service import command_line

main = command_line("lobby", LobbySettings, serve, packages=("relance.lobby",))

if __name__ == "__main__":
    main()
