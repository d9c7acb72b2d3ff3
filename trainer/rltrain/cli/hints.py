"""Nearest names."""

import difflib
from collections.abc import Iterable


def nearest(given: str, known: Iterable[str]) -> str:
    """ ", did you mean x", or nothing."""
    close = difflib.get_close_matches(given, list(known), n=1)
    return f", did you mean {close[0]}?" if close else ""
