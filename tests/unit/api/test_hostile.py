"""Whatever a manifest holds, it is read or refused in a sentence: quickly, and without running any of it."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltrain.api.errors import InvalidInput
from rltrain.api.load import load_text
from unit.api.conftest import manifest

TEXT = manifest("config: {lr: 1e-4, model: {fcnet_hiddens: [8]}}\nhead: {sharedMemorySize: 1Gi}")
NINES = "9" * 5000


def _laughs() -> str:
    levels = "".join(
        f"  {below}: &{below} [{', '.join([f'*{above}'] * 10)}]\n"
        for above, below in zip("abcdefg", "bcdefgh", strict=True)
    )
    return f"x:\n  a: &a [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n{levels}"


@pytest.mark.parametrize(
    "text",
    [
        manifest("seed: " + "[" * 3000),
        manifest("seed: " + "{a: " * 3000),
        _laughs(),
        "&x {a: *x}",
        "a: &a\n  <<: *a\n",
        manifest(f"seed: {NINES}"),
        manifest(f"seed: 0x{NINES}"),
        manifest(f"seed: 0{NINES}"),
        manifest(f"seed: 1_{NINES}"),
        manifest(f"config: {{lr: {NINES}.0}}"),
        manifest("seed: !!python/object/apply:os.system ['exit 1']"),
        "!!python/name:os.system ''",
        "? [a, b]\n: c\n",
        "? {a: b}\n: c\n",
        "~: 1\n",
        manifest().replace("DQN", "[DQN]"),
        manifest().replace("DQN", "{DQN: DQN}"),
        manifest().replace("{name: cartpole}", "[cartpole]"),
        manifest().replace("{name: cartpole}", "{name: [cartpole]}"),
        "apiVersion:\nkind:\nmetadata:\nspec:\n",
        "apiVersion: rltrain.dev/v1alpha1\nkind: RLTrainingJob\nmetadata:\nspec:\n  plan:\n  env:\n  stop:\n",
        "---\n...\n---\n",
        "[" + "1," * 30_000 + "1]",
        "a: \x01\n",
        "%FOO bar\n---\na: 1\n",
    ],
)  # fmt: skip
def test_what_is_no_manifest_is_refused_in_short_sentences(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_text(text)

    assert max(map(len, str(refused.value).splitlines())) < 400


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(TEXT)), st.integers(0, 12), st.text(max_size=6))
def test_any_edit_leaves_a_manifest_or_a_refusal(position: int, cut: int, put: str) -> None:
    with contextlib.suppress(InvalidInput):
        load_text(TEXT[:position] + put + TEXT[position + cut :])
