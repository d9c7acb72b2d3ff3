"""What a run's budget of env steps is too small for, as far as the manifest alone can tell. Pure."""

from collections.abc import Iterator

from rltrain.api.config import ApexClassicConfig, OnlineReplayConfig, R2D2Config
from rltrain.api.config.base import SamplingConfig
from rltrain.api.job import RLTrainingJob


def shortages(job: RLTrainingJob) -> Iterator[str]:
    """Sentences to warn with; none about plans of the user's own, which may learn from whatever they like."""
    config, stop = job.spec.config, job.spec.stop
    if stop.env_steps is None or job.spec.base_plan is not None or not isinstance(config, SamplingConfig):
        return
    sample = _steps_of_a_sample(job, config)
    if isinstance(config, OnlineReplayConfig):
        steps, why = _first_update(job, config, sample)
        if steps >= stop.env_steps:
            yield (
                f"nothing will be learnt: the first update is made after {steps:,} steps ({why}), when stop.envSteps "
                f"({stop.env_steps:,}) has ended the run; set it higher"
            )
    window, end = config.metrics_num_episodes_for_smoothing, _up_to(stop.env_steps, sample)
    if stop.episode_return_mean is not None and end < window:
        yield (
            f"stop.episodeReturnMean can't end the run: it counts once {window:,} episodes have ended "
            f"(config.metrics_num_episodes_for_smoothing), and stop.envSteps allows for {end:,} steps"
        )


def _steps_of_a_sample(job: RLTrainingJob, config: SamplingConfig) -> int:
    """Env steps that are counted at once; the budget is looked at in between."""
    fragment = config.rollout_fragment_length * config.num_envs_per_worker
    if isinstance(config, ApexClassicConfig):
        return fragment  # each comes by itself
    role = getattr(job.spec, "workers", None) or getattr(job.spec, "rollouts", None)
    return fragment * max(getattr(role, "replicas", 0), 1)


def _first_update(job: RLTrainingJob, config: OnlineReplayConfig, sample: int) -> tuple[int, str]:
    """The fewest steps after which there can be an update, and what makes them so many."""
    optimizer = config.optimizer if isinstance(config, ApexClassicConfig) else None
    sharded = optimizer is not None
    # Shards are sampled from once the driver knows of so many env steps in one, and all may have come to the same one.
    starts = config.learning_starts // (optimizer.num_replay_buffer_shards if optimizer else 1)
    rows = config.train_batch_size if sharded or _has_one_agent(job) else 1
    if isinstance(config, R2D2Config):
        rows = min(rows, config.sequences_per_batch)  # an episode's last sequence may have but one step
    warm = _up_to(max(starts, rows if sharded else 1), sample)
    # Credit for training is earned from the sample on that makes the buffer warm.
    intensity = config.training_intensity
    paid = warm if intensity is None else warm - sample + _up_to(config.train_batch_size / intensity, sample)
    reasons = {
        f"a sample has {sample:,}, in fragments of rollout_fragment_length x num_envs_per_worker": sample,
        f"config.learning_starts is {config.learning_starts:,}": _up_to(starts, sample),
        f"config.train_batch_size is {config.train_batch_size:,}": _up_to(rows, sample),
        f"config.training_intensity is {intensity}, and each update learns from {config.train_batch_size:,}": paid,
    }
    why = max(reasons, key=lambda reason: reasons[reason])
    return reasons[why], why


def _has_one_agent(job: RLTrainingJob) -> bool:
    """Whether that is certain: several agents bring several rows a step, and only gymnasium's ids never have them."""
    return ":" not in job.spec.env.id and job.spec.config.multiagent is None


def _up_to(steps: float, sample: int) -> int:
    """The first multiple of a sample that has so many steps."""
    return max(-int(-steps // sample), 1) * sample
