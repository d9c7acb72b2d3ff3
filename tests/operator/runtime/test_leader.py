"""Who may lead: never two at once, whatever their clocks and the Lease say."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltrain_operator.runtime.leader import Candidate, Holding, Terms

CLOCK = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
TERMS = Terms(15)
OTHER = Holding("other", 15, "then", "then", 3)


def me() -> Candidate:
    return Candidate("me", TERMS)


def leader(at: float) -> Candidate:
    candidate = me()
    return candidate.took(candidate.wish(CLOCK), at)


def test_a_lease_that_was_never_there_is_free_and_a_released_one_too() -> None:
    assert me().saw(None, 0).may_take(0)
    assert me().saw(replace(OTHER, holder=""), 0).may_take(0)
    assert me().wish(CLOCK).transitions == 0
    assert me().saw(replace(OTHER, holder=""), 0).wish(CLOCK).transitions == 4


def test_anothers_lease_is_free_once_it_was_seen_unchanged_for_as_long_as_it_lasts() -> None:
    candidate = me().saw(OTHER, 100)

    assert not candidate.may_take(114.9)
    assert candidate.may_take(115)
    renewed = candidate.saw(replace(OTHER, renewed="later"), 110).saw(replace(OTHER, renewed="later"), 114)
    assert not renewed.may_take(124.9)
    assert renewed.may_take(125)
    assert candidate.wish(CLOCK) == Holding("me", 15, "2026-11-30T12:00:00.000000Z", "2026-11-30T12:00:00.000000Z", 4)


def test_the_holders_own_duration_counts_and_a_nonsensical_one_does_not() -> None:
    assert not me().saw(replace(OTHER, seconds=60), 0).may_take(59)
    assert not me().saw(replace(OTHER, seconds=0), 0).may_take(14)
    assert me().saw(replace(OTHER, seconds=0), 0).may_take(15)


def test_times_written_in_the_lease_mean_nothing() -> None:
    for renewed in ("1970-01-01T00:00:00.000000Z", "9999-01-01T00:00:00.000000Z", ""):
        assert not me().saw(replace(OTHER, renewed=renewed), 0).may_take(14.9)
        assert me().saw(replace(OTHER, renewed=renewed), 0).may_take(15)


def test_a_leader_acts_until_its_deadline_which_is_before_the_lease_ends() -> None:
    leads = leader(100)

    assert leads.leads(109.9)
    assert not leads.leads(110)
    assert TERMS.renew < TERMS.deadline < TERMS.seconds
    assert not me().leads(0)


def test_a_leader_keeps_its_time_when_it_renews_and_its_transitions_stay() -> None:
    first = leader(100)
    again = first.wish(CLOCK + timedelta(seconds=2))

    assert again.acquired == first.seen.acquired  # type: ignore[union-attr]
    assert again.renewed > again.acquired
    assert again.transitions == 0
    assert first.took(again, 105).leads(114)


def test_a_leader_that_sees_another_in_its_lease_leads_no_more() -> None:
    assert not leader(100).saw(OTHER, 101).leads(101)


def test_a_deleted_lease_is_taken_by_nobody_but_its_holder_until_it_would_have_ended() -> None:
    assert not me().saw(OTHER, 100).saw(None, 110).may_take(114)
    assert me().saw(OTHER, 100).saw(None, 110).may_take(115)
    holder = leader(100).saw(None, 101)
    assert holder.leads(101)
    assert holder.may_take(101)


def test_a_farewell_frees_the_lease_at_once_and_keeps_the_count() -> None:
    candidate = me().saw(OTHER, 0)
    holding = candidate.took(candidate.wish(CLOCK), 20).farewell(CLOCK)

    assert holding.holder == ""
    assert holding.transitions == 4
    assert Candidate("next", TERMS).saw(holding, 0).may_take(0)


@pytest.mark.parametrize("spec", [{}, {"holderIdentity": None, "leaseDurationSeconds": None, "renewTime": None}])
def test_a_lease_may_say_nothing(spec: dict[str, object]) -> None:
    assert Holding.read(spec) == Holding()


def test_what_is_written_is_what_is_read() -> None:
    assert Holding.read(OTHER.spec()) == OTHER


Step = tuple[int, str, float]
steps = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["turn", "turn", "deaf", "lose", "die"]), st.floats(0, 12)),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(steps)
def test_never_two_lead_at_once(story: list[Step]) -> None:
    """Three candidates look and write in any order; writes land unheard, the Lease vanishes, processes die.

    What no rule can keep is left out: a process that starts after the Lease was deleted can't know that there was one.
    """
    candidates = [Candidate(f"p{n}", TERMS) for n in range(3)]
    lease: Holding | None = None
    last: Holding | None = None
    now = 0.0
    for which, what, pause in story:
        now += pause
        candidate = candidates[which]
        match what:
            case "lose":
                candidates = [each.saw(lease, now) for each in candidates]
                lease = None
            case "die":
                candidates[which] = Candidate(f"{candidate.identity}'", TERMS).saw(last, now)
            case _:
                candidate = candidate.saw(lease, now)
                if candidate.may_take(now):
                    last = lease = candidate.wish(CLOCK + timedelta(seconds=now))
                    if what == "turn":
                        candidate = candidate.took(lease, now)
                candidates[which] = candidate
        assert sum(each.leads(now) for each in candidates) <= 1
