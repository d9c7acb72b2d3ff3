"""How an unquoted YAML scalar is read: only where YAML 1.2 and kubectl, which reads YAML 1.1, agree."""

import math
import re
from dataclasses import dataclass

Value = str | int | float | bool | None

_CONSTANTS: dict[str, bool | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_OLD_BOOLEANS = {
    **dict.fromkeys(("y", "yes", "on"), True),
    **dict.fromkeys(("n", "no", "off"), False),
}
_NOT_JSON = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_PREFIXED = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_OLD_PREFIXED = re.compile(r"[-+]?0[xXoObB][0-9a-fA-F]+")
_INTEGRAL = re.compile(r"[-+]?[0-9][0-9a-fA-FxXoO_]*")
_LONGEST_NUMBER = 400
"""Digits that are looked at; the largest float has 309."""
_NUMBER_STARTS = frozenset("+-.0123456789")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@dataclass(frozen=True)
class Ambiguous(Exception):
    """Two parsers read it differently, or JSON has no word for it.

    Attributes:
        message: who reads what.
        hint: what to write instead.
        value: the likeliest meaning, so that the rest of the manifest can be checked.
    """

    message: str
    hint: str
    value: Value


def resolve(text: str) -> Value:
    """The value of an unquoted scalar.

    Raises:
        Ambiguous: it can't be taken as it stands.
    """
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if len(text) > _LONGEST_NUMBER and _INTEGRAL.fullmatch(text):
        raise _too_large(f"{text[:10]}...")
    if _DECIMAL.fullmatch(text):
        return _within_64_bits(int(text), text)
    if _PREFIXED.fullmatch(text):
        return _within_64_bits(int(text, 0), text)
    _refuse_ambiguous(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise Ambiguous(f"{text[:20]} is too large for a number", "the largest is about 1.8e308", 0.0)
        return number
    return text


def _refuse_ambiguous(text: str) -> None:
    lowered = text.lower()
    if lowered in _OLD_BOOLEANS and text in (lowered, lowered.upper(), lowered.capitalize()):
        meant = _OLD_BOOLEANS[lowered]
        word = str(meant).lower()
        raise _two_meanings(text, word, meant)
    if _NOT_JSON.fullmatch(text):
        raise Ambiguous(f"{text} has no form in JSON, so no API server can take it", "give a finite number", 0.0)
    if _LEADING_ZERO.fullmatch(text):
        decimal = int(text)
        raise Ambiguous(
            f"{text} is {_as_kubectl(text)} to kubectl (YAML 1.1) and {decimal} in YAML 1.2",
            f"write {decimal}",
            decimal,
        )
    bare = text.replace("_", "")
    if text[:1] in _NUMBER_STARTS and (bare != text or _OLD_PREFIXED.fullmatch(bare)):
        number = _as_kubectl(bare)
        if number is not None:
            raise _two_meanings(text, str(number), number)


def _two_meanings(text: str, kubectls: str, meant: bool | float) -> Ambiguous:
    said = f"{text} is {kubectls} to kubectl (YAML 1.1) and text in YAML 1.2"
    return Ambiguous(said, f'write {kubectls}, or "{text}" where text is meant', meant)


def _as_kubectl(bare: str) -> int | float | None:
    """The number that a YAML 1.1 parser makes of it, underscores taken out; None if it stays text."""
    if _LEADING_ZERO.fullmatch(bare) and re.fullmatch(r"[-+]?[0-7]+", bare):
        return int(bare, 8)
    if _OLD_PREFIXED.fullmatch(bare):
        try:
            return int(bare, 0)
        except ValueError:
            return None
    if _DECIMAL.fullmatch(bare):
        return int(bare)
    return float(bare) if _FLOAT.fullmatch(bare) else None


def _within_64_bits(number: int, text: str) -> int:
    if not -(2**63) <= number < 2**63:
        raise _too_large(text)
    return number


def _too_large(text: str) -> Ambiguous:
    return Ambiguous(f"{text} doesn't fit into 64 bits", "write it with a point or an exponent", 0)
