"""Flags win over the environment, and what can't be meant is refused."""

import pytest

from rltrain_operator.runtime.settings import parse


def test_flags_win_over_the_environment_and_the_environment_over_defaults() -> None:
    environ = {
        "RLTRAIN_TRAINER_IMAGE": "env:1",
        "RLTRAIN_WORKERS": "3",
        "RLTRAIN_NAMESPACES": "a, b,",
        "RLTRAIN_TRAINER_IMAGE_PULL_SECRETS": "mirror",
        "POD_NAME": "me",
    }

    found = parse(["--trainer-image", "flag:1"], environ)

    assert found.config.trainer_image == "flag:1"
    assert found.config.image_pull_policy is None
    assert found.config.image_pull_secrets == ("mirror",)
    assert found.workers == 3
    assert found.namespaces == ("a", "b")
    assert found.resync_seconds == 300
    assert found.identity == "me"


@pytest.mark.parametrize(
    ("argv", "environ"),
    [
        ([], {}),
        (["--trainer-image", "x", "--trainer-image-pull-policy", "Sometimes"], {}),
        (["--trainer-image", "x", "--log-format", "xml"], {}),
        (["--trainer-image", "x"], {"RLTRAIN_WORKERS": "many"}),
        (["--trainer-image", "x", "--worker", "2"], {}),
        (["--trainer-image", "x", "--leader-election", "yes"], {"POD_NAMESPACE": "system"}),
        (["--trainer-image", "x", "--leader-election", "true"], {}),
        (["--trainer-image", "x", "--lease-seconds", "2"], {}),
        (["--trainer-image", "x", "--job-egress", "10.0.0.0/8"], {}),
        (["--trainer-image", "x", "--job-egress", '["10.0.0.0/8"]'], {}),
    ],
)
def test_what_can_not_be_meant_ends_with_exit_code_2(argv: list[str], environ: dict[str, str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(argv, environ)

    assert ended.value.code == 2


def test_no_rules_restrict_nothing_and_an_empty_list_of_them_everything() -> None:
    rules = '[{"to": [{"podSelector": {}}]}]'

    assert parse([], {"RLTRAIN_TRAINER_IMAGE": "x"}).config.egress is None
    assert parse([], {"RLTRAIN_TRAINER_IMAGE": "x", "RLTRAIN_JOB_EGRESS": "[]"}).config.egress == ()
    assert parse(["--trainer-image=x", "--job-egress", rules], {}).config.egress == ({"to": [{"podSelector": {}}]},)


def test_lease_is_one_of_the_pods_namespace_and_held_only_where_that_is_wanted() -> None:
    environ = {"RLTRAIN_TRAINER_IMAGE": "x", "POD_NAMESPACE": "system", "RLTRAIN_LEASE_NAME": "mine"}

    assert parse([], environ).lease is None
    assert parse(["--leader-election=true"], environ).lease == ("system", "mine")
    assert parse(["--leader-election=true", "--lease-namespace=other"], environ).lease == ("other", "mine")
