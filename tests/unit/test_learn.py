"""`make learn`: what is chosen, kept, compared and told. Nothing is trained here."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from learn import report
from learn.curves import thinned
from learn.join import join
from learn.results import Kept, Outcome, Score, recipe_of
from learn.rows import ROOT, ROWS, SEEDS, Choice, Want, choose
from learn.training import is_trained, points, run_command

from rltrain.api.load import load_job


def outcome(row: str, seed: int, *means: float) -> Outcome:
    scores = [Score(want.steps, mean, 1.0) for want, mean in zip(ROWS[row].wants, means, strict=False)]
    return Outcome(row, seed, recipe_of(ROWS[row]), tuple(scores), ((100, 1.0), (200, 2.0)))


def line(outcomes: list[Outcome], row: str, steps: int | None = None) -> report.Line:
    return next(each for each in report.lines_of(outcomes) if each.row == row and steps in (None, each.want.steps))


def test_a_row_is_all_its_seeds_and_runs_go_in_the_rows_order_once_each() -> None:
    chosen = choose(["sac:7", "dqn", "dqn:2"])
    assert chosen == [*(Choice("dqn", seed) for seed in SEEDS), Choice("sac", 7)]
    assert choose([]) == [Choice(row, seed) for row in ROWS for seed in SEEDS]


@pytest.mark.parametrize(("word", "told"), [("ppo", "no such row: ppo"), ("dqn:", "seed"), ("dqn:x", "seed")])
def test_what_is_no_row_or_seed_is_refused(word: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        choose([word])


def test_every_example_is_a_row_as_it_stands() -> None:
    unchanged = {row.manifest for row in ROWS.values() if not row.changes}
    assert unchanged >= {str(path.relative_to(ROOT)) for path in (ROOT / "examples").glob("*.yaml")}


@pytest.mark.parametrize("name", ROWS)
def test_a_run_ends_by_its_budget_alone_with_its_seed(name: str) -> None:
    row, want = ROWS[name], ROWS[name].wants[-1]
    arguments = run_command(row, 5, want, Path("somewhere"))
    changes = [value for at, value in pairwise(arguments) if at == "--set"]
    spec = load_job(ROOT / row.manifest, changes).spec
    assert spec.seed == 5
    criteria = {name: value for name, value in spec.stop.model_dump(by_alias=True).items() if value is not None}
    assert criteria == {row.counted: want.steps}


def test_a_run_that_came_to_its_budget_is_not_run_again(tmp_path: Path) -> None:
    assert not is_trained(tmp_path, Want(100))
    for state, sampled, trained, ends in (
        ("Succeeded", 100, 900, True),
        ("Succeeded", 0, 100, True),
        ("Succeeded", 99, 900, False),
        ("Failed", 100, 900, False),
    ):
        told = {"state": state, "env_steps": sampled, "trained_steps": trained}
        (tmp_path / "finished.json").write_text(json.dumps(told))
        assert is_trained(tmp_path, Want(100)) is ends


def test_the_median_needs_all_seeds_before_it_holds() -> None:
    found = [outcome("dqn", 1, 500.0), outcome("dqn", 2, 449.0)]
    assert (line(found, "dqn").median, line(found, "dqn").holds) == (474.5, None)
    assert line([*found, outcome("dqn", 3, 450.0)], "dqn").holds is True
    assert line([*found, outcome("dqn", 3, 449.9)], "dqn").holds is False
    assert line([], "dqn").median is None


def test_other_seeds_are_not_in_the_table() -> None:
    assert line([outcome("dqn", 4, 500.0)], "dqn").returns == {}


def test_a_budget_that_is_not_reached_yet_has_no_return() -> None:
    found = [outcome("apex", seed, 200.0) for seed in SEEDS]
    assert line(found, "apex", 100_000).holds is True
    assert line(found, "apex", 250_000).returns == {}


def test_an_agent_that_is_meant_to_fail_must_fail() -> None:
    for mean, holds in ((149.0, True), (150.0, False)):
        assert line([outcome("r2d2-feedforward", seed, mean) for seed in SEEDS], "r2d2-feedforward").holds is holds


def test_what_must_be_worse_is_compared_with_the_median_of_its_rival() -> None:
    worse = [outcome("cql-imitating", seed, -200.0) for seed in SEEDS]
    assert line(worse, "cql-imitating").holds is None, "the rival hasn't run"
    for mean, holds in ((-150.0, True), (-200.0, False)):
        rival = [outcome("cql", seed, mean) for seed in SEEDS]
        assert line([*worse, *rival], "cql-imitating").holds is holds


def test_the_table_tells_of_what_has_not_run() -> None:
    told = report.table(report.lines_of([outcome("dqn", 1, 1234.56)])).splitlines()
    dqn, sac = (f"[{ROWS[name].about}](../{ROWS[name].manifest})" for name in ("dqn", "sac"))
    assert f"| {dqn} | 50,000 | ≥ 450 | 1,234.6 | 1,234.6 | - | - | not all run | `make learn ARGS=dqn` |" in told
    assert f"| {sac} | 10,000 | ≥ -160 | - | - | - | - | not run | `make learn ARGS=sac` |" in told
    assert "`config.min_q_weight=0` | 2,560,000 trained | < `cql`'s |" in "".join(told)
    assert len(told) == 2 + sum(len(row.wants) for row in ROWS.values())
    assert report.wanted(Want(1, worse_than="cql")) == "< `cql`'s"


def test_comparisons_of_ranks_are_added_up() -> None:
    ranks = [replace(outcome("ddppo", seed, 500.0), comparisons=(10, 10 + seed)) for seed in SEEDS]
    (sentence,) = report.compared([*ranks, outcome("dqn", 1, 500.0)])
    assert "`ddppo`" in sentence
    assert "after 30 of 36 reports" in sentence


def test_what_was_kept_is_found_again_until_its_recipe_changes(tmp_path: Path) -> None:
    kept, choice = Kept(tmp_path), Choice("dqn", 2)
    assert kept.get(choice) is None
    kept.put(choice, outcome("dqn", 2, 400.0))
    assert kept.get(choice) == outcome("dqn", 2, 400.0)
    assert kept.all(SEEDS) == [outcome("dqn", 2, 400.0)]
    kept.put(choice, replace(outcome("dqn", 2, 400.0), recipe="another"))
    assert kept.get(choice) is None


def test_a_recipe_is_of_manifest_changes_and_dataset_but_of_no_remark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("learn.results.ROOT", tmp_path)
    text = (ROOT / "examples/pendulum-cql.yaml").read_text()
    data = tmp_path / "examples/data/pendulum-sac.npz"
    data.parent.mkdir(parents=True)

    def recipe(manifest: str, dataset: bytes = b"rows", *changes: str) -> str:
        (tmp_path / "examples/pendulum-cql.yaml").write_text(manifest)
        data.write_bytes(dataset)
        return recipe_of(replace(ROWS["cql"], changes=changes))

    found = recipe(text)
    assert recipe(f"# a remark\n{text}") == found
    assert recipe(text.replace("bc_iters: 0", "bc_iters: 1")) != found
    assert recipe(text, b"others") != found
    assert recipe(text, b"rows", "config.bc_iters=1") != found


def test_a_curve_is_of_reports_or_of_evaluations_where_nothing_is_sampled() -> None:
    sampled = {"env_steps": 10, "trained_steps": 5, "episode_return_mean": 1.0, "info": {}}
    offline = {**sampled, "env_steps": 0, "episode_return_mean": None}
    assert list(points([{**sampled, "episode_return_mean": None}, sampled])) == [(10, 1.0)]
    evaluation = {"env_steps": 0, "trained_steps": 4, "episode_return_mean": 2.0}
    assert list(points([offline, {**offline, "evaluation": evaluation}])) == [(4, 2.0)]


def test_a_curve_of_many_points_is_thinned_to_means() -> None:
    assert thinned([(step, float(step)) for step in range(1, 7)], points=3) == [(2, 1.5), (4, 3.5), (6, 5.5)]
    assert thinned([(1, 1.0)], points=3) == [(1, 1.0)]


def test_only_the_marked_part_of_the_document_is_written() -> None:
    document = f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n"
    assert report.with_block(document, "new") == f"before\n{report.BEGIN}\nnew\n{report.END}\nafter\n"
    with pytest.raises(ValueError, match="no part between"):
        report.with_block("nothing", "new")
    assert report.BEGIN in (ROOT / "docs/learning.md").read_text()


def test_datasets_are_joined_row_after_row(tmp_path: Path) -> None:
    for name, rows in (("one", [1, 2]), ("two", [3])):
        np.savez(tmp_path / f"{name}.npz", obs=np.array(rows, np.float32), eps_id=np.zeros(len(rows), np.int64))
    join([tmp_path / "one.npz", tmp_path / "two.npz"], tmp_path / "out.npz")
    with np.load(tmp_path / "out.npz") as out:
        assert out["obs"].tolist() == [1, 2, 3]
        assert (out["obs"].dtype, len(out["eps_id"])) == (np.float32, 3)
