"""The wallet's process: `python -m relance.wallet serve` and `migrate`."""

from __future__ import annotations

from relance.runtime.service import command_line
from relance.wallet.serve import serve
from relance.wallet.settings import WalletSettings

main = command_line("wallet", WalletSettings, serve, packages=("relance.wallet",))

if __name__ == "__main__":
    main()
