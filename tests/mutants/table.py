"""The mutants, from the TOML files beside this one."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Mutant:
    """One breakage.

    Attributes:
        name: of its file and its place there.
        meaning: what holds, in the field's words, and doesn't any more.
        file: what is changed, from the root of the project.
        old: a text that occurs there exactly once.
        new: what it is replaced by.
        test: a pytest id that passes without the change and fails with it.
    """

    name: str
    meaning: str
    file: str
    old: str
    new: str
    test: str


def load() -> Iterator[Mutant]:
    """All mutants. Raises ValueError naming one that lacks a field or has another."""
    wanted = {field.name for field in fields(Mutant)} - {"name"}
    for path in sorted(HERE.glob("*.toml")):
        for number, given in enumerate(tomllib.loads(path.read_text())["mutant"], 1):
            if given.keys() != wanted:
                raise ValueError(f"{path.name}, mutant {number}: fields {sorted(given)}, expected {sorted(wanted)}")
            yield Mutant(name=f"{path.stem}-{number}", **given)
