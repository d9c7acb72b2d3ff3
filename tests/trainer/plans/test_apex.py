"""The Ape-X plan from a manifest."""

from pathlib import Path

from trainer.runtime.runs import APEX, job, results, run_serially


def test_the_target_is_updated_each_so_many_trained_steps(tmp_path: Path) -> None:
    run_serially(job(APEX, stop={"envSteps": 500}), tmp_path / "run")
    last = results(tmp_path / "run")[-1]
    trained, updates = last["trained_steps"], last["counters"]["num_target_updates"]
    assert trained > 2 * last["env_steps"], "too close to tell one from the other"
    every, batch = APEX["config"]["target_network_update_freq"], APEX["config"]["train_batch_size"]
    assert trained // (every + batch) <= updates <= trained // every
