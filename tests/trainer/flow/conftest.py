"""What the flow's tests share."""

from collections.abc import Iterator

import pytest

from trainer.flow.backends import RayTeams


@pytest.fixture(scope="module")
def ray_teams(ray_session: None) -> Iterator[RayTeams]:
    teams = RayTeams()
    yield teams
    for actor in list(teams.actors):
        teams.kill(actor)
