"""How an operator's command says that it has no answer."""

from __future__ import annotations

import click


class NoAnswer(click.ClickException):
    """What was asked cannot be answered: one clear line on stderr, exit code 1."""
