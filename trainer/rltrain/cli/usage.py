"""Usage errors of the command line in our words."""

import re
from typing import Any

import typer

_REWORDED = (
    (re.compile(r"No such option: (\S+)"), r"there is no option \1"),
    (re.compile(r"\(Possible options: (.*)\)"), r"(did you mean \1?)"),
    (re.compile(r"Missing (?:argument|option) '([^']+?)(?:\.\.\.)?'\.?"), r"\1 is missing"),
    (re.compile(r"Got unexpected extra argument\(?s?\)? \((.*)\)"), r"too many arguments: \1"),
    (re.compile(r"Option '?([^' ]+)'? requires an argument\.?"), r"\1 needs a value"),
    (re.compile(r"Invalid value for '?([^':]+?)'?: "), r"\1: "),
    (re.compile(r"Input should be a valid integer.*"), "must be a whole number"),
    (re.compile(r"Input should be a valid number.*"), "must be a number"),
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
    return f"rltrain: {text.rstrip('.')} ({command} --help shows the usage)"
