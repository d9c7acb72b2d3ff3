"""The chaos run's ledger: a start that goes on from less than what was saved is found, and no other."""

from typing import Any

from chaos.ledger import Ledger


def job(attempt: int, *, resumed: int | None = None, saved: int | None = None) -> dict[str, Any]:
    checkpoint = None if saved is None else {"envSteps": saved}
    progress = {"attempt": attempt, "resumedFromSteps": resumed}
    return {"metadata": {"name": "apex"}, "status": {"progress": progress, "checkpoint": checkpoint}}


def test_a_start_from_an_older_checkpoint_than_the_job_had_told_of_is_found_once() -> None:
    ledger = Ledger()
    ledger.see([job(1, saved=100)])
    ledger.see([job(1, saved=200)])
    for _ in range(2):
        ledger.see([job(2, resumed=100, saved=200)])

    assert ledger.fell_back == ["apex's attempt 2 went on from 100 of 200 saved steps"]
    assert ledger.starts == {("apex", 2)}


def test_what_the_new_start_saves_itself_is_no_measure_of_where_it_began() -> None:
    ledger = Ledger()
    ledger.see([{"metadata": {"name": "apex"}}, job(1, saved=200)])
    ledger.see([job(2, resumed=200, saved=500)])
    ledger.see([job(3, resumed=500, saved=500)])

    assert ledger.fell_back == []
    assert ledger.starts == {("apex", 2), ("apex", 3)}
