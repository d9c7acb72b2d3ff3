"""`rltrain evaluate`: how good a trained agent is."""

import json
from pathlib import Path
from typing import Annotated

import typer

from rltrain.cli.run import missing_extra


def evaluate(
    path: Annotated[Path, typer.Argument(help="A run directory or a checkpoint.", show_default=False)],
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to play.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes; none was trained on.")] = 0,
    json_: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Play episodes with a trained agent, always taking its best action."""
    from rltrain.runtime.session import prepare_environment

    prepare_environment()
    try:
        from rltrain.runtime.evaluation import evaluate_checkpoint
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error
    scores = evaluate_checkpoint(path, episodes, seed)
    if json_:
        typer.echo(json.dumps(scores.to_json()))
    else:
        typer.echo(
            f"return {scores.mean:.2f} ± {scores.std:.2f} (min {scores.min:.2f}, max {scores.max:.2f}) "
            f"over {scores.episodes} episodes of {scores.env} with {scores.checkpoint}"
        )
