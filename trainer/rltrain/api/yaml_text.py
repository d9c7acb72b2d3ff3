"""YAML 1.2 with places: what was written, where, and what kubectl's YAML 1.1 would read differently."""

import re
from dataclasses import dataclass, field
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from rltrain.api.errors import Problem

Path = tuple[str | int, ...]

_YAML_1_1_WORDS: Final = re.compile(r"(?i:y|yes|on|n|no|off)")
_LEADING_ZERO: Final = re.compile(r"[-+]?0[0-9_]+")
_OTHER_NUMBERS: Final = re.compile(r"[-+]?(0[bBoOxX][0-9a-fA-F_]+|[0-9]+(_[0-9]+)+|[0-9]+(:[0-5]?[0-9])+)")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt ].*)?")
_TAG: Final = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Document:
    """One YAML document.

    Attributes:
        data: what it says.
        places: 1-based line and column of each key and list item, by its path.
        problems: what can't be meant, or would be read differently by kubectl.
    """

    data: Any
    places: dict[Path, tuple[int, int]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def parse(text: str) -> list[Document]:
    """All documents of a text; a syntax error is the only problem of its document."""
    try:
        nodes = list(_reader().compose_all(text))
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = str(error.problem or error.context or "not YAML").strip()
        hint = (
            "indent with spaces, not tabs"
            if "\\t" in said or "\t" in said
            else "check the indentation and quotes there"
        )
        return [Document(None, problems=(_at(mark, "", f"not valid YAML: {said}", hint),))]
    except YAMLError as error:
        return [Document(None, problems=(Problem("", f"not valid YAML: {error}"),))]
    return [_document(node) for node in nodes if node is not None]


def parse_value(text: str) -> Any:
    """One value as `--set` gives it. Raises ValueError saying what is wrong with it."""
    documents = parse(text)
    if not documents:
        return None
    if documents[0].problems:
        problem = documents[0].problems[0]
        raise ValueError(f"{problem.message} ({problem.hint})" if problem.hint else problem.message)
    return documents[0].data


def _reader() -> YAML:
    reader = YAML(typ="safe", pure=True)
    reader.allow_duplicate_keys = True
    return reader


def _document(node: Node) -> Document:
    places: dict[Path, tuple[int, int]] = {}
    problems: list[Problem] = []
    _walk(node, (), places, problems, set())
    if problems:
        # A tag that no safe constructor knows would raise below; the places of the rest aren't lost by that.
        problems = list(dict.fromkeys(problems))
    try:
        reader = _reader()
        data = reader.constructor.construct_document(node)
    except (DuplicateKeyError, YAMLError, ValueError, TypeError) as error:
        mark = getattr(error, "problem_mark", None) or node.start_mark
        said = getattr(error, "problem", None) or str(error)
        return Document(None, places, (*problems, _at(mark, "", f"not valid YAML: {said}")))
    return Document(data, places, tuple(problems))


def _walk(
    node: Node, path: Path, places: dict[Path, tuple[int, int]], problems: list[Problem], open_: set[int]
) -> None:
    if id(node) in open_:
        problems.append(_at(node.start_mark, dotted(path), "refers to itself", "write it out"))
        return
    open_.add(id(node))
    places.setdefault(path, (node.start_mark.line + 1, node.start_mark.column + 1))
    if isinstance(node, MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            here = (*path, name)
            if key.tag == f"{_TAG}merge":
                _walk(value, path, places, problems, open_)
                continue
            if name in seen:
                first = places[here]
                problems.append(
                    _at(key.start_mark, dotted(here), f"given twice, first in line {first[0]}", "keep one of the two")
                )
            else:
                places[here] = (key.start_mark.line + 1, key.start_mark.column + 1)
            seen.add(name)
            if isinstance(key, ScalarNode):
                _check_scalar(key, here, problems)
            _walk(value, here, places, problems, open_)
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            _walk(item, (*path, index), places, problems, open_)
    elif isinstance(node, ScalarNode):
        _check_scalar(node, path, problems)
    open_.discard(id(node))


def _check_scalar(node: ScalarNode, path: Path, problems: list[Problem]) -> None:
    """Plain words that YAML 1.1, which kubectl reads, takes for something else."""
    if node.style is not None:
        return
    text = node.value

    def refuse(what: str, remedy: str) -> None:
        problems.append(_at(node.start_mark, dotted(path), f"{text} {what}", remedy))

    if _YAML_1_1_WORDS.fullmatch(text):
        meant = "true" if text[0] in "yYoO" and text.lower() not in ("off",) else "false"
        refuse("is a word here but true or false to kubectl", f'write {meant}, or "{text}" for the word')
    elif _LEADING_ZERO.fullmatch(text):
        refuse(
            "is decimal here but octal to kubectl",
            f"write {text.lstrip('+-').lstrip('0_') or '0'} without leading zeros",
        )
    elif _OTHER_NUMBERS.fullmatch(text):
        refuse(
            "is read as different values by different YAML readers", f'write a plain number, or "{text}" for the text'
        )
    elif _DATE.fullmatch(text):
        refuse("is a date", f'write "{text}" for the text')


def dotted(path: Path) -> str:
    """``("spec", "stop", 0)`` -> ``spec.stop[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _at(mark: Any, path: str, message: str, hint: str | None = None) -> Problem:
    if mark is None:
        return Problem(path, message, hint)
    return Problem(path, message, hint, mark.line + 1, mark.column + 1)
