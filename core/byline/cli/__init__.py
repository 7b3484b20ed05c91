"""The `byline` command: a group, and one module per command."""

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import click

from byline.cli._reports import own_version

__all__ = ["main"]

_COMMANDS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "demo": ("byline.cli.demo", "Run a team of scripted agents and watch who does what."),
        "grant": ("byline.cli.grant", "Say what a grant covers and why it would be refused."),
        "check": ("byline.cli.check", "Judge streams of AG-UI events."),
        "tree": ("byline.cli.tree", "Show who did what in a stream of AG-UI events."),
        "inspect": ("byline.cli.inspect", "See a team before it runs, and what is worth changing in it."),
        "serve": ("byline.cli.serve", "Serve an app as an AG-UI agent."),
        "view": ("byline.cli.view", "See a recording as one HTML page, or follow an endpoint."),
    }
)
"""Name, module (with a command of that name), one line of help; a command is imported when it is used."""


class _Lazy(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return [*_COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = getattr(importlib.import_module(_COMMANDS[cmd_name][0]), cmd_name)
        return command


@click.group(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(own_version(), prog_name="byline")
def main() -> None:
    """See who did what in a multi-agent run."""
