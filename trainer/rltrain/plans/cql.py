"""CQL: a dataset is put into the replay buffer once, and learnt from; nothing is sampled.

dataset ──> buffer
replay ──> before_learn ──> train ──> priorities ──> target ──> report
"""

from rltrain.api.config import CQLConfig
from rltrain.flow import LocalIterator
from rltrain.offline.fill import fill_from_dataset
from rltrain.ops import (
    BeforeLearnOnBatch,
    PlanContext,
    Replay,
    Result,
    StandardMetricsReporting,
    TrainOneStep,
    UpdatePriorities,
    UpdateTargetNetwork,
)


def cql(context: PlanContext[CQLConfig]) -> LocalIterator[Result]:
    """CQL's dataflow; it counts trained steps, for there are no others.

    Raises:
        ValueError: no buffer was handed in.
        InvalidManifest: the dataset can't be learnt from.
    """
    config, workers, buffer = context.config, context.workers, context.replay
    if buffer is None:
        raise ValueError("the CQL plan needs a replay buffer to be handed in")
    fill_from_dataset(buffer, workers.local, config)

    train_op = (
        Replay(buffer, config.train_batch_size)
        .for_each(BeforeLearnOnBatch(config.before_learn_on_batch))
        .for_each(TrainOneStep(workers))
        .for_each(UpdatePriorities(buffer))
        .for_each(UpdateTargetNetwork(workers, config.target_network_update_freq, by_steps_trained=True))
    )
    return StandardMetricsReporting(train_op, workers, config, by_steps_trained=True)
