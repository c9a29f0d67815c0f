"""The `relance` command."""
