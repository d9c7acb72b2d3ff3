"""The programs that a node is made of, built from their Go modules once and kept in a cache."""

import hashlib
import shutil
from dataclasses import dataclass, field
from pathlib import Path

from .layout import CACHE, PARTS
from .shell import run, step, stream

KUBERNETES_VERSION = "1.36.3"  # the same as in parts/kubernetes/go.mod


@dataclass(frozen=True)
class Part:
    """One Go module below parts/ and the programs that are built from it."""

    name: str
    programs: dict[str, str]  # program -> Go package
    variables: dict[str, str] = field(default_factory=dict)  # set at link time


def _kubernetes() -> Part:
    major, minor, _ = KUBERNETES_VERSION.split(".")
    names = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
    version = "k8s.io/component-base/version."
    return Part(
        "kubernetes",
        {name: f"k8s.io/kubernetes/cmd/{name}" for name in names},
        # Built from a module, Kubernetes doesn't know its version and calls itself v0.0.0.
        {
            f"{version}gitVersion": f"v{KUBERNETES_VERSION}",
            f"{version}gitMajor": major,
            f"{version}gitMinor": minor,
        },
    )


# Beside kind, which brings the rest of Kubernetes in its image.
KUBECTL = Part("kubernetes", {"kubectl": "k8s.io/kubernetes/cmd/kubectl"}, _kubernetes().variables)

# Kubernetes first: it takes longest, and CoreDNS shares its compiled packages.
NODE_PARTS = (
    _kubernetes(),
    Part("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
    Part(
        "containerd",
        {
            name: f"github.com/containerd/containerd/v2/cmd/{name}"
            for name in ("containerd", "containerd-shim-runc-v2", "ctr")
        },
    ),
    Part("kube-router", {"kube-router": "github.com/cloudnativelabs/kube-router/v2/cmd/kube-router"}),
    Part("coredns", {"coredns": "."}),
    Part("registry", {"registry": "github.com/distribution/distribution/v3/cmd/registry"}),
)
TINY = Part("tiny", {"pause": "./pause", "probe": "./probe"})
HELM = Part("helm", {"helm": "helm.sh/helm/v3/cmd/helm"})
KIND = Part("kind", {"kind": "sigs.k8s.io/kind"})
# For the bench of the operator: nodes that only seem to run pods, and another operator to measure beside ours.
KWOK = Part("kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"})
KUBERAY = Part("kuberay", {"kuberay-operator": "github.com/ray-project/kuberay/ray-operator"})
# Only where its test runs. Its chart, which is in the module too, calls the program so.
KUEUE = Part("kueue", {"manager": "sigs.k8s.io/kueue/cmd/kueue"})
KUEUE_MODULE = "sigs.k8s.io/kueue"
VOLCANO = Part("volcano", {"vc-scheduler": "volcano.sh/volcano/cmd/scheduler"})
VOLCANO_MODULE = "volcano.sh/volcano"


def fingerprint(part: Part, go_version: str, sources: Path) -> str:
    """A short hash of everything that decides what the part's programs are."""
    digest = hashlib.sha256(f"{go_version}\n{part.programs}\n{part.variables}\n".encode())
    for source in sorted(path for path in sources.rglob("*") if path.is_file()):
        digest.update(f"{source.relative_to(sources)}\n".encode() + source.read_bytes())
    return digest.hexdigest()[:16]


def build(part: Part) -> Path:
    """The folder with the part's programs, built on first use."""
    sources = PARTS / part.name
    home = CACHE / "parts" / f"{part.name}-{fingerprint(part, run('go', 'version'), sources)}"
    if home.exists():
        return home
    with step(f"build {part.name}"):
        # A name of its own until it is whole: a build cut short leaves no folder that looks finished.
        unfinished = home.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        flags = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in part.variables.items())])
        for program, package in part.programs.items():
            stream(
                *("nice", "-n", "10", "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly"),
                *("-ldflags", flags, "-o", unfinished / program, package),
                log=home.with_suffix(".log"),
                env={"CGO_ENABLED": "0", "GOFLAGS": ""},
                cwd=sources,
            )
        unfinished.rename(home)
    return home


def module(part: Part, name: str) -> Path:
    """The folder with the source of a module that a part is built from."""
    return Path(run("go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", name, cwd=PARTS / part.name).strip())


def build_all(parts: tuple[Part, ...]) -> dict[str, Path]:
    """Program name -> path of all parts' programs."""
    return {program: build(part) / program for part in parts for program in part.programs}
