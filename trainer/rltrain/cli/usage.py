"""Usage errors of the command line in our words."""

import re
from collections.abc import Callable
from typing import Any, Final

import typer

from rltrain.api.nearest import question


def _choices(found: re.Match[str]) -> str:
    allowed = found[2].replace("'", "")
    return f"must be {'one of ' if ',' in allowed else ''}{allowed}, not {found[1]}"


_REWORDED: Final[tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r"No such option: (\S+)"), r"there is no option \1"),
    (re.compile(r"\(Possible options: (.*)\)"), lambda found: f"({question(*found[1].split(', '))})"),
    (re.compile(r"Missing (?:argument|option) '([^']+?)(?:\.\.\.)?'\.?"), r"\1 is missing"),
    (re.compile(r"Got unexpected extra argument\(?s?\)? \((.*)\)"), r"too many arguments: \1"),
    (re.compile(r"Option '?([^' ]+)'? requires an argument\.?"), r"\1 needs a value"),
    (re.compile(r"Option '?([^' ]+)'? does not take a value\.?"), r"\1 takes no value"),
    (re.compile(r"Invalid value for '?([^': ]+)'?(?: / '[^']+')*: "), r"\1: "),
    (re.compile(r"Value error, '(.*)' is not one of (.*?)\.?$"), _choices),
    (re.compile(r"Input should be a valid integer.*"), "must be a whole number"),
    (re.compile(r"Input should be a valid number.*"), "must be a number"),
    (re.compile(r"Input should be greater than or equal to "), "must be at least "),
    (re.compile(r"Input should be less than or equal to "), "must be at most "),
)


def usage_message(error: typer.TyperException) -> str:
    """One sentence on what is wrong with the arguments, and how to see the right ones."""
    context: Any = getattr(error, "ctx", None)
    text = error.format_message()
    if context is not None and text == context.get_help():
        return text
    for pattern, words in _REWORDED:
        text = pattern.sub(words, text)
    command = context.command_path if context is not None else "rltrain"
    return f"rltrain: {text.rstrip('.')}; {command} --help shows the usage"
