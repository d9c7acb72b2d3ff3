"""An installed operator, and namespaces for tests; what a failure needs to be understood is printed with it."""

import json
from collections.abc import Iterator

import pytest

from e2e.installation import NAMESPACE, RELEASE, Images, Operator, helm
from e2e.kube import ROOT, Kube
from e2e.namespaces import Namespaces
from testbed.cluster import choose

_NAMESPACES = pytest.StashKey[Namespaces]()


@pytest.fixture(scope="session")
def images() -> Images:
    return Images(**json.loads((ROOT / ".cluster/images.json").read_text()))


@pytest.fixture(scope="session")
def operator(images: Images) -> Iterator[Operator]:
    """The chart installed with the images under test, as the README says; uninstalled at the end."""
    helm(
        *("upgrade", "--install", RELEASE, str(ROOT / "charts/rltrain"), "--namespace", NAMESPACE),
        *("--create-namespace", "--wait", "--timeout", "180s"),
        *("--set", f"image.reference={images.operator},trainerImage.reference={images.trainer}"),
    )
    yield Operator(Kube(NAMESPACE))
    helm("uninstall", RELEASE, "--namespace", NAMESPACE, "--wait")


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
