"""``--set path=value``: single values laid over a manifest."""

import re
from collections.abc import Sequence
from typing import Final

from rltrain.api.document import Document, Entry, Mark, Node, dotted, parse, problem
from rltrain.api.errors import Problem

_TOP: Final = ("apiVersion", "kind", "metadata", "spec")
_STEP: Final = re.compile(r'"([^"]*)"|([^."]+)')


def apply_overrides(root: Node, overrides: Sequence[str]) -> tuple[Node, list[Problem]]:
    """The document with each ``path=value`` laid over it, the last one winning.

    Args:
        root: the document.
        overrides: dotted paths, ``spec.`` being optional, and YAML values; a step with dots in it stands in quotes.
    """
    problems: list[Problem] = []
    for override in overrides:
        flag = f"--set {override}"
        path, equals, text = override.partition("=")
        steps = _steps(path.strip())
        if not equals or not steps:
            problems.append(Problem("", f"{flag}: must have the form path=value, e.g. --set stop.envSteps=1000"))
            continue
        found = parse(text, flag)
        if len(found.whole) > 1 or found.broken:
            problems.append(problem(tuple(steps), Mark(flag=flag), f"the value {text!r} isn't one YAML value"))
            continue
        value = found.whole[0] if found.whole else Document(Node(None, Mark(flag=flag)))
        problems += [
            problem(tuple(steps), Mark(flag=flag), p.message, p.hint) for p in _unflagged(value.problems, flag)
        ]
        try:
            root = _put(root, steps, value.root, flag, ())
        except _NotAnObject as error:
            problems.append(problem(tuple(steps), Mark(flag=flag), f"{error} isn't an object that has keys"))
    return root, problems


class _NotAnObject(Exception):
    """A step of the path leads into a scalar or a list."""


def _steps(path: str) -> list[str]:
    steps, position = [], 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            return []
        steps.append(match[1] if match[1] is not None else match[2])
        position = match.end()
        if position < len(path):
            if path[position] != "." or position + 1 == len(path):
                return []
            position += 1
    return steps if not steps or steps[0] in _TOP else ["spec", *steps]


def _put(node: Node, steps: Sequence[str], value: Node, flag: str, done: tuple[str, ...]) -> Node:
    if not steps:
        return value
    if node.value is None:
        node = Node({}, node.mark)
    if not isinstance(node.value, dict):
        raise _NotAnObject(dotted(done))
    step = steps[0]
    below = node.value[step].node if step in node.value else Node({}, Mark(flag=flag))
    inner = _put(below, steps[1:], value, flag, (*done, step))
    mark = Mark(flag=flag) if len(steps) == 1 or step not in node.value else node.value[step].mark
    return Node({**node.value, step: Entry(mark, inner)}, node.mark)


def _unflagged(problems: Sequence[Problem], flag: str) -> list[Problem]:
    """Problems of the value's own text, without the flag that their place already names."""
    return [Problem(p.path, p.message.removesuffix(f" [{flag}]"), p.hint) for p in problems]
