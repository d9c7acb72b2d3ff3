"""A finished job goes by itself when it is to, and its checkpoints stay."""

import pytest

from e2e.installation import Images
from e2e.kube import JOB_LABEL, Kube
from e2e.standin import standin

pytestmark = pytest.mark.cluster


def test_a_finished_job_is_deleted_after_its_time_but_for_its_claim(kube: Kube, images: Images) -> None:
    kube.apply(standin("brief", images.trainer, life=1, runPolicy={"ttlSecondsAfterFinished": 5}))
    kube.wait("it is finished", lambda: kube.job("brief").get("status", {}).get("completionTime"), 90)
    kube.wait_gone("rltj", "brief", 60)
    kube.wait("all that it made goes with it", lambda: not kube.select("jobs,pods", **{JOB_LABEL: "brief"}), 60)
    assert kube.get("pvc", "brief-checkpoints") is not None
