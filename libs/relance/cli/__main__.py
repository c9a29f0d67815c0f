"""`python -m relance.cli`."""

from relance.cli.main import main

main()
