"""The wallet's process: `python -m relance.wallet serve` and `migrate`."""

from __future__ import annotations

from relance.runtime.service import command_line
from relance.runtime.settings import ServiceSettings
from relance.wallet.serve import serve

main = command_line("wallet", ServiceSettings, serve, packages=("relance.wallet",))

if __name__ == "__main__":
    main()
