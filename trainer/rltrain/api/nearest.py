"""Nearest names, for all that can be misspelt. Light: every start of the command line imports it."""

import difflib
from collections.abc import Iterable


def normal(name: str) -> str:
    """A name without its case, hyphens and underscores."""
    return name.replace("_", "").replace("-", "").lower()


def nearest(given: str, known: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> list[str]:
    """The known names that look most like the given one, best first.

    Args:
        given: as somebody wrote it.
        known: what could have been meant.
        most: how many are returned at most.
        cutoff: likeness below which a name isn't meant, from 0 to 1.
    """
    by_form = {normal(name): name for name in known}
    return [by_form[form] for form in difflib.get_close_matches(normal(given), by_form, n=most, cutoff=cutoff)]


def question(*meant: str) -> str:
    """What was probably meant, as a hint."""
    return f"did you mean {' or '.join(meant)}?"


def did_you_mean(given: str, known: Iterable[str], *, most: int = 1) -> str:
    """`question` in brackets, so that any sentence can go on after it; nothing where no name is near."""
    meant = nearest(given, known, most=most)
    return f" ({question(*meant)})" if meant else ""
