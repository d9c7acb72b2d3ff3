"""The mutants in tests/mutants, which `make mutants` tries: that each can be."""

import pytest

from mutants.table import HERE, Mutant, load

ROOT = HERE.parents[1]


@pytest.mark.parametrize("mutant", list(load()), ids=lambda mutant: mutant.name)
def test_what_it_breaks_stands_there_once_and_its_test_exists(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text().count(mutant.old) == 1, f"{mutant.file} has changed: write the text anew"
    path, *parts = mutant.test.split("::")
    text = (ROOT / path).read_text()
    for part in parts:
        assert f"{part.partition('[')[0]}(" in text or f"class {part}" in text, f"there is no {mutant.test}"
