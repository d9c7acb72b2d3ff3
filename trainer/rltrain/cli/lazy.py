"""Subcommands that are imported when they are called, so that help and small commands start at once."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from rltrain.api.nearest import did_you_mean


@dataclass(frozen=True)
class Command:
    """A subcommand: the module and function of ``rltrain.cli`` behind it, and its line in the overview."""

    module: str
    function: str
    help: str
    hidden: bool = False

    def load(self, name: str) -> TyperCommand:
        """Import the function and make a command of it."""
        module = importlib.import_module(f"rltrain.cli.{self.module}")
        app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        app.command(name, hidden=self.hidden)(getattr(module, self.function))
        return cast("TyperCommand", typer.main.get_command(app))


class LazyGroup(TyperGroup):
    """A group that lists its commands from a table and imports only the one that is called."""

    table: Mapping[str, Command] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """What the overview and completion need to know of a command."""
        known = self.table.get(cmd_name)
        return TyperCommand(cmd_name, help=known.help, hidden=known.hidden) if known is not None else None

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        given = args[0]
        if given in self.table:
            return given, self.table[given].load(given), args[1:]
        if not given.startswith("-") and not ctx.resilient_parsing:
            visible = [name for name, known in self.table.items() if not known.hidden]
            ctx.fail(f"there is no command {given}{did_you_mean(given, visible)}")
        return super().resolve_command(ctx, args)
