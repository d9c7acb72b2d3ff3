"""An installed operator, and namespaces for tests; what a failure needs to be understood is printed with it."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from e2e.installation import NAMESPACE, RELEASE, Images, Operator, helm, wait_installed
from e2e.kube import ROOT, Kube
from e2e.namespaces import Namespaces
from testbed.cluster import choose

_NAMESPACES = pytest.StashKey[Namespaces]()


@pytest.fixture(scope="session")
def images() -> Images:
    return Images(**json.loads((ROOT / ".cluster/images.json").read_text()))


@pytest.fixture(scope="session")
def began() -> str:
    """When, as the API server's audit log writes times."""
    return datetime.now(UTC).isoformat()


@pytest.fixture(scope="session")
def operator(images: Images, began: str) -> Iterator[Operator]:
    """The chart installed with the images under test; uninstalled at the end."""
    wait_installed(images)
    kube = Kube(NAMESPACE)
    # From now on: tests have its pods made anew often enough.
    kube.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted", "--overwrite")
    yield Operator(kube)
    helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")


@pytest.fixture(scope="module")
def reinstalled(operator: Operator, images: Images) -> Iterator[Operator]:
    """The operator, which the tests of a file may reinstall as they like; as it was afterwards."""
    yield operator
    wait_installed(images)


@pytest.fixture(scope="session")
def namespaces(operator: Operator, request: pytest.FixtureRequest) -> Iterator[Namespaces]:
    """Makes namespaces; all of them must be gone before the operator is."""
    choose().volumes()
    made = request.session.stash[_NAMESPACES] = Namespaces()
    yield made
    made.wait_gone()


@pytest.fixture
def kube(namespaces: Namespaces) -> Iterator[Kube]:
    """A namespace of the test's own."""
    made = namespaces.make()
    yield made
    namespaces.end(made)


@pytest.fixture(scope="module")
def shared(namespaces: Namespaces) -> Iterator[Kube]:
    """A namespace that the tests of one file share."""
    made = namespaces.make()
    yield made
    namespaces.end(made)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What looks back at the run comes last; what needs the whole run is left out where only a part of it runs."""
    items.sort(key=lambda item: item.path.name == "test_rights.py")
    if not {item.path for item in items} >= set(Path(__file__).parent.glob("test_*.py")):
        early = [item for item in items if item.get_closest_marker("whole_run")]
        config.hook.pytest_deselected(items=early)
        items[:] = [item for item in items if item not in early]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):  # type: ignore[no-untyped-def]
    """A failure comes with the story of the jobs that were there."""
    report = yield
    namespaces = item.session.stash.get(_NAMESPACES, None)
    if report.failed and namespaces is not None:
        for kube in namespaces.open:
            report.sections.append((f"namespace {kube.namespace}", kube.story()))
        logs = Kube(NAMESPACE).run("logs", f"deployment/{RELEASE}", "--tail=100").stdout
        report.sections.append(("operator", logs))
    return report
