"""`rltrain collect`: a dataset to learn from offline."""

from pathlib import Path
from typing import Annotated

import typer

from rltrain import user_code
from rltrain.api.errors import InvalidInput
from rltrain.cli.run import missing_extra


def collect(
    out: Annotated[Path, typer.Option(metavar="FILE", help="The .npz file to write.", show_default=False)],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="Run directories or checkpoints, played in turn.", show_default=False),
    ] = None,
    env: Annotated[
        str | None, typer.Option(metavar="ID", help="Environment for random actions, where no run is given.")
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Least steps; episodes are played to their ends.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes; neither training nor evaluation has them.")] = 0,
    explore: Annotated[bool, typer.Option("--explore", help="Act as in training, not with the best action.")] = False,
) -> None:
    """Record the episodes of trained agents, or of random actions, as a dataset for plan CQL."""
    from rltrain.runtime.session import prepare_environment

    prepare_environment()
    try:
        from rltrain.api.env import EnvSpec
        from rltrain.runtime.collecting import collect as record
        from rltrain.runtime.rundir import code_of
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error
    user_code.reach(Path(), *(folder for path in paths or [] for folder in code_of(path)))
    if paths and env is not None:
        raise InvalidInput("give runs or --env, not both")
    spec = None if env is None else EnvSpec(id=env)
    if out.exists() and out.suffix != ".npz":
        raise InvalidInput(f"{out} is there already and is no .npz file: give another with --out")
    summary = record(paths or [], spec, out, steps=steps, seed=seed, explore=explore)
    typer.echo(f"{out}: {summary}")
