"""The rake service's process: `python -m relance.rake serve` and `migrate`."""

from __future__ import annotations

from relance.rake.serve import serve
from relance.rake.settings import RakeSettings
from relance.runtime.service import command_line

main = command_line("rake", RakeSettings, serve, packages=("relance.rake",))

if __name__ == "__main__":
    main()
