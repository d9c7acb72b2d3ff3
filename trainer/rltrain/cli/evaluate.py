"""`rltrain evaluate`: how good a trained agent is."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rltrain import user_code
from rltrain.cli.options import Json
from rltrain.cli.output import last_line, lasting_output
from rltrain.cli.playing import playing
from rltrain.cli.run import missing_extra

if TYPE_CHECKING:
    from rltrain.runtime.evaluation import Evaluated


def evaluate(
    path: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run directory, or one of its checkpoints.", show_default=False),
    ],
    episodes: Annotated[int, typer.Option(min=1, help="Episodes to play.")] = 100,
    best: Annotated[bool, typer.Option("--best", help="The run's best checkpoint, not its newest.")] = False,
    video: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Film the first episode, as .mp4 or .gif.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the episodes; none was trained on.")] = 0,
    output: Json = None,
    json_: Annotated[bool, typer.Option("--json", help="The same as -o json.")] = False,
) -> None:
    """Play episodes with a trained agent, always taking its best action."""
    from rltrain.runtime.session import prepare_environment

    prepare_environment()
    try:
        from rltrain.runtime.evaluation import evaluate_checkpoint
        from rltrain.runtime.rundir import code_of
    except ModuleNotFoundError as error:
        raise missing_extra(error) from error
    user_code.reach(Path(), *code_of(path))
    with lasting_output() as printed, playing(episodes) as watch:
        evaluated = evaluate_checkpoint(path, episodes, seed, watch, best=best, video=video)
        told = json.dumps(evaluated.to_json()) if json_ or output == "json" else _sentence(evaluated)
        last_line(printed, told)


def _sentence(evaluated: "Evaluated") -> str:
    scores = evaluated.scores
    return (
        f"return {scores.episode_return_mean:.2f} ± {scores.episode_return_std:.2f} "
        f"(min {scores.episode_return_min:.2f}, max {scores.episode_return_max:.2f}) over {scores.episodes} "
        f"episode{'s' * (scores.episodes > 1)} of {evaluated.env} with {evaluated.checkpoint}"
    )
