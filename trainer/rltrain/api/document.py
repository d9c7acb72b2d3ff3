"""A YAML document as a tree that knows where each key and value stands. Nothing is constructed but plain values."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)

from rltrain.api import scalars
from rltrain.api.errors import Problem

MAX_VALUES: Final = 20_000
"""Values in a document once its aliases are written out: a few nested ones would otherwise fill the memory."""
MAX_DEPTH: Final = 50

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class Mark:
    """Where something is written: 1-based in the file, or a flag of the command line, or nowhere (line 0)."""

    line: int = 0
    column: int = 0
    flag: str | None = None


@dataclass(frozen=True)
class Node:
    """A value and its place.

    Attributes:
        value: a scalar, a list of nodes or a dict of entries.
        size: values in it, its own included.
    """

    value: "scalars.Value | list[Node] | dict[str, Entry]"
    mark: Mark
    size: int = 1

    def plain(self) -> Any:
        """The tree as Python values."""
        if isinstance(self.value, dict):
            return {key: entry.node.plain() for key, entry in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return self.value

    def find(self, path: Path) -> "tuple[Mark, Node, int]":
        """Mark and node of a path, or of its longest part that is there, and how many steps led to it."""
        mark, node = self.mark, self
        for depth, step in enumerate(path):
            if isinstance(node.value, dict) and step in node.value:
                entry = node.value[str(step)]
                mark, node = entry.mark, entry.node
            elif isinstance(node.value, list) and isinstance(step, int) and step < len(node.value):
                node = node.value[step]
                mark = node.mark
            else:
                return mark, node, depth
        return mark, node, len(path)


@dataclass(frozen=True)
class Entry:
    """A key's place and its value."""

    mark: Mark
    node: Node


@dataclass(frozen=True)
class Document:
    """A document, and what is wrong with it as YAML."""

    root: Node
    problems: tuple[Problem, ...] = ()


@dataclass
class Documents:
    """What a text holds: its documents, as far as a syntax error lets them be read."""

    whole: list[Document] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    """What is wrong with the document that isn't whole, the syntax error included; none if all are."""
    broken: bool = False
    """The text ended in a syntax error."""


def unplaced(value: Any) -> Node:
    """A node of plain values that come from no text, such as an object from the API server."""
    if isinstance(value, Mapping):
        return Node({str(key): Entry(Mark(), unplaced(inner)) for key, inner in value.items()}, Mark())
    if isinstance(value, list | tuple):
        return Node([unplaced(item) for item in value], Mark())
    return Node(value, Mark())


def parse(text: str, flag: str | None = None) -> Documents:
    """Read all documents of a YAML text.

    Args:
        text: YAML 1.2.
        flag: the command-line flag that the text comes from, if it isn't a file's.
    """
    found = Documents()
    try:
        _Parser(text, flag, found).run()
    except MarkedYAMLError as error:
        found.broken = True
        found.problems.append(_syntax(error))
    except (YAMLError, ValueError) as error:
        found.broken = True
        found.problems.append(Problem("", f"not YAML: {str(error).splitlines()[0]}"))
    except RecursionError:
        found.broken = True
        found.problems.append(Problem("", f"nested more than {MAX_DEPTH} levels deep"))
    return found


class _Parser:
    def __init__(self, text: str, flag: str | None, found: Documents) -> None:
        self._events = cast("Iterator[Event]", YAML(typ="safe", pure=True).parse(text))
        self._flag = flag
        self._found = found
        self._anchors: dict[str, Node] = {}
        self._read = 0

    def run(self) -> None:
        for event in self._events:
            if isinstance(event, DocumentStartEvent):
                self._anchors = {}
                root = self._node(next(self._events), ())
                if root.value is not None or self._found.problems:
                    self._found.whole.append(Document(root, tuple(self._found.problems)))
                self._found.problems.clear()
            else:
                assert isinstance(event, StreamStartEvent | StreamEndEvent | DocumentEndEvent), event

    def _mark(self, event: Event) -> Mark:
        return Mark(event.start_mark.line + 1, event.start_mark.column + 1, self._flag)

    def _problem(self, path: Path, mark: Mark, message: str, hint: str | None = None) -> None:
        self._found.problems.append(problem(path, mark, message, hint))

    def _node(self, event: Event, path: Path) -> Node:
        mark = self._mark(event)
        if isinstance(event, AliasEvent):
            if event.anchor not in self._anchors:
                self._problem(path, mark, f"*{event.anchor} stands for nothing: no &{event.anchor} is complete before")
                return Node(None, mark)
            node = self._anchors[event.anchor]
            return Node(node.value, node.mark, node.size)
        if len(path) > MAX_DEPTH:
            raise RecursionError
        self._read += 1
        if self._read > MAX_VALUES:
            raise ValueError(f"more than {MAX_VALUES} values")
        assert isinstance(event, MappingStartEvent | SequenceStartEvent | ScalarEvent), event
        if event.tag is not None:
            self._problem(path, mark, f"the tag {event.tag} isn't taken", "write the value as it is")
        if isinstance(event, MappingStartEvent):
            node = self._mapping(mark, path)
        elif isinstance(event, SequenceStartEvent):
            node = self._sequence(mark, path)
        else:
            node = Node(self._scalar(event, mark, path), mark)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        if node.size > MAX_VALUES:
            raise ValueError(f"more than {MAX_VALUES} values once its aliases are written out")
        return node

    def _sequence(self, mark: Mark, path: Path) -> Node:
        items: list[Node] = []
        while not isinstance(event := next(self._events), SequenceEndEvent):
            items.append(self._node(event, (*path, len(items))))
        return Node(items, mark, 1 + sum(item.size for item in items))

    def _mapping(self, mark: Mark, path: Path) -> Node:
        entries: dict[str, Entry] = {}
        merged: Node | None = None
        while not isinstance(event := next(self._events), MappingEndEvent):
            place = self._mark(event)
            if isinstance(event, ScalarEvent) and event.value == "<<" and event.style is None:
                if merged is not None:
                    self._problem((*path, "<<"), place, "a second merge key", "give a list: <<: [*one, *other]")
                merged = self._node(next(self._events), (*path, "<<"))
                self._check_merge(path, place, merged, entries)
                continue
            key = self._key(event, place, path)
            if key in entries:
                self._problem((*path, key), place, f"given twice, first in line {entries[key].mark.line}")
            entries[key] = Entry(place, self._node(next(self._events), (*path, key)))
        for source in _merge_sources(merged):
            entries = {**cast("dict[str, Entry]", source.value), **entries}
        return Node(entries, mark, 1 + sum(entry.node.size for entry in entries.values()))

    def _check_merge(self, path: Path, place: Mark, merged: Node, before: Mapping[str, Entry]) -> None:
        if not _merge_sources(merged):
            self._problem((*path, "<<"), place, "a merge key takes an alias of an object, or a list of them")
        # kubectl lets a merge replace what was written above it, YAML doesn't.
        keys = {key for source in _merge_sources(merged) for key in cast("dict[str, Entry]", source.value)}
        if clash := sorted(keys & before.keys()):
            self._problem((*path, "<<"), place, f"merged below {', '.join(clash)}", "put << first in its object")

    def _key(self, event: Event, place: Mark, path: Path) -> str:
        if not isinstance(event, ScalarEvent):
            self._problem(path, place, "a key must be text")
            self._node(event, path)
            return "?"
        text: str = event.value
        if event.style is None and event.tag is None:
            try:
                value = scalars.resolve(text)
            except scalars.Ambiguous:
                value = None
            if not isinstance(value, str):
                self._problem((*path, text), place, f"the key {text} isn't text", f'write "{text}"')
        return text

    def _scalar(self, event: ScalarEvent, mark: Mark, path: Path) -> scalars.Value:
        text: str = event.value
        if event.style is not None or event.tag is not None:
            return text
        try:
            return scalars.resolve(text)
        except scalars.Ambiguous as unclear:
            self._problem(path, mark, unclear.message, unclear.hint)
            return unclear.value


def _merge_sources(merged: Node | None) -> list[Node]:
    """Objects to merge in, strongest first."""
    if merged is None:
        return []
    sources = merged.value if isinstance(merged.value, list) else [merged]
    if not all(isinstance(source.value, dict) for source in sources):
        return []
    return sources


def dotted(path: Path) -> str:
    """``spec.env.imports[0]``"""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def problem(path: Path, mark: Mark, message: str, hint: str | None = None) -> Problem:
    """A problem with its place: a line of the file, or the flag, if it has one."""
    if mark.flag is not None:
        return Problem(dotted(path), f"{message} [{mark.flag}]", hint)
    if mark.line == 0:
        return Problem(dotted(path), message, hint)
    return Problem(dotted(path), message, hint, mark.line, mark.column)


def _syntax(error: MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    message = " ".join(part for part in (error.context, error.problem) if part) or "not YAML"
    hint = None
    if "'\\t'" in message:
        message, hint = "a tab can't be used here", "indent with spaces"
    elif "mapping values are not allowed" in message or "expected <block end>" in message:
        hint = "check the indentation of this line and the one above"
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (None, None)
    return Problem("", f"not YAML: {message}", hint, line, column)
