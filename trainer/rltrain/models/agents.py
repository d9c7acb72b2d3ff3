"""An environment's agents: their spaces, and which policy each of them has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gymnasium import spaces

from rltrain.api.config import PlanConfig
from rltrain.api.config.multi_agent import DEFAULT_POLICY, MultiAgentConfig
from rltrain.api.errors import InvalidManifest, Problem
from rltrain.api.nearest import did_you_mean
from rltrain.models.packing import Space

_BLOCK = "spec.config.multiagent"


class AgentSpaces(spaces.Dict):
    """The spaces of an environment's agents, by agent: what an environment with several has in place of a space."""


@dataclass(frozen=True)
class Roster:
    """Who acts by which policy.

    Attributes:
        agents: of each policy, by its name; the names in order.
        to_train: the policies that learn, in order.
        obs_spaces, action_spaces: of each policy.
    """

    agents: Mapping[str, Sequence[str]]
    to_train: Sequence[str]
    obs_spaces: Mapping[str, Space]
    action_spaces: Mapping[str, Space]


def make_roster(config: PlanConfig, obs: AgentSpaces, actions: AgentSpaces) -> Roster:
    """Give each agent its policy.

    Raises:
        InvalidManifest: an agent has no policy or more than one, or a policy has no agent, or agents with different
            spaces.
    """
    options = config.multiagent or MultiAgentConfig()
    mapping = assign(options.policy_mapping or {"*": DEFAULT_POLICY}, list(obs.spaces))
    agents = {
        policy: tuple(agent for agent, its in mapping.items() if its == policy)
        for policy in sorted({*mapping.values()})
    }
    for policy, members in agents.items():
        for one in members[1:]:
            _require_alike(policy, members[0], one, obs, actions)
    return Roster(
        agents,
        tuple(policy for policy in agents if options.policies_to_train is None or policy in options.policies_to_train),
        {policy: obs[members[0]] for policy, members in agents.items()},
        {policy: actions[members[0]] for policy, members in agents.items()},
    )


def each_its_own(obs: AgentSpaces, actions: AgentSpaces) -> Roster:
    """The roster where every agent has a policy of its own, by the agent's name."""
    return Roster({agent: (agent,) for agent in obs}, tuple(obs), dict(obs.spaces), dict(actions.spaces))


def assign(mapping: Mapping[str, str], agents: Sequence[str]) -> dict[str, str]:
    """The policy of each agent.

    Args:
        mapping: from agents, or patterns with `*`, to policies. An agent itself counts before any pattern, and a
            pattern before those with fewer characters beside `*`; not the first one, for clusters keep no order.

    Raises:
        InvalidManifest: an agent has no policy or more than one, or a key means no agent.
    """
    problems: list[Problem] = []
    found: dict[str, str] = {}
    for agent in agents:
        keys = [agent] if agent in mapping else [key for key in mapping if _means(key, agent)]
        best = max((_length(key) for key in keys), default=0)
        names = sorted({mapping[key] for key in keys if _length(key) == best})
        if len(names) == 1:
            found[agent] = names[0]
            continue
        what = f"gives agent {agent!r} both {' and '.join(names)}" if names else f"has no policy for agent {agent!r}"
        line = f"{agent}: {names[0] if names else agent}"
        problems.append(Problem(f"{_BLOCK}.policy_mapping", what, f"add a line such as {line}"))
    for key in mapping:
        if not any(key == agent or _means(key, agent) for agent in agents):
            near = did_you_mean(key, agents) or f"; there are {', '.join(agents)}"
            problems.append(Problem(f"{_BLOCK}.policy_mapping.{key}", f"the environment has no agent {key!r}{near}"))
    if problems:
        raise InvalidManifest(problems)
    return found


def refuse_block(config: PlanConfig) -> None:
    """For environments with one agent. Raises InvalidManifest where the config speaks of several."""
    if config.multiagent is not None:
        message = "the environment has one agent"
        hint = "leave it out, or give an env.id whose environment is a pettingzoo.ParallelEnv"
        raise InvalidManifest([Problem(_BLOCK, message, hint)])


def _means(pattern: str, agent: str) -> bool:
    """Whether a pattern with `*` fits; without a regular expression, which some patterns keep busy for hours."""
    if "*" not in pattern:
        return False
    first, *between, last = pattern.split("*")
    at, end = len(first), len(agent) - len(last)
    if at > end or not (agent.startswith(first) and agent.endswith(last)):
        return False
    for part in between:
        found = agent.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _length(pattern: str) -> int:
    return len(pattern.replace("*", ""))


def _require_alike(policy: str, one: str, other: str, obs: AgentSpaces, actions: AgentSpaces) -> None:
    for kind, of_agents in (("observation", obs), ("action", actions)):
        if of_agents[one] != of_agents[other]:
            message = (
                f"policy {policy!r} is to be shared by agents {one!r} and {other!r}, whose {kind} spaces differ: "
                f"{of_agents[one]} and {of_agents[other]}"
            )
            hint = "give each its own policy, or make the spaces alike with a wrapper"
            raise InvalidManifest([Problem(f"{_BLOCK}.policy_mapping", message, hint)])
