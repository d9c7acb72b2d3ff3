"""The cluster's certificates and kubeconfigs."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path

from .layout import API_SERVER, KUBERNETES_ADDRESS, NODE, NODE_ADDRESS
from .shell import run

# file name -> (subject, alternative names); the groups are those that Kubernetes' own roles are bound to.
CERTIFICATES = {
    "apiserver": (
        "/CN=kube-apiserver",
        "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:localhost"
        f",IP:127.0.0.1,IP:{KUBERNETES_ADDRESS},IP:{NODE_ADDRESS}",
    ),
    "admin": ("/O=system:masters/CN=admin", "DNS:admin"),
    "infrastructure": ("/O=system:masters/CN=testbed-infrastructure", "DNS:infrastructure"),
    "controller-manager": ("/CN=system:kube-controller-manager", "DNS:controller-manager"),
    "scheduler": ("/CN=system:kube-scheduler", "DNS:scheduler"),
    "kubelet": (f"/O=system:nodes/CN=system:node:{NODE}", f"DNS:{NODE},IP:{NODE_ADDRESS}"),
    "proxy": ("/CN=system:kube-proxy", "DNS:proxy"),
}


def _key(path: Path) -> None:
    run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)


def make(folder: Path, certificates: Mapping[str, tuple[str, str]] = CERTIFICATES) -> None:
    """Write ca, sa and all certificates with their keys, and a kubeconfig for each, into a new folder."""
    folder.mkdir(parents=True, mode=0o700)
    _key(folder / "ca.key")
    ca = ("-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-CAcreateserial")
    run(*("openssl", "req", "-x509", "-new", "-key", folder / "ca.key", "-subj", "/CN=testbed-ca"),
        *("-days", "365", "-out", folder / "ca.crt"))  # fmt: skip
    _key(folder / "sa.key")
    run("openssl", "pkey", "-in", folder / "sa.key", "-pubout", "-out", folder / "sa.pub")
    for name, (subject, names) in certificates.items():
        key, extensions = folder / f"{name}.key", folder / f"{name}.ext"
        _key(key)
        extensions.write_text(f"subjectAltName={names}\nextendedKeyUsage=serverAuth,clientAuth\n")
        request = run("openssl", "req", "-new", "-key", key, "-subj", subject)
        run(
            *("openssl", "x509", "-req", *ca, "-days", "365"),
            *("-extfile", extensions, "-out", folder / f"{name}.crt"),
            input=request,
        )
        write_kubeconfig(folder, name, folder / f"{name}.kubeconfig")


def write_kubeconfig(folder: Path, name: str, target: Path) -> None:
    """Write a kubeconfig, readable by its owner alone, that holds the named certificate itself."""

    def data(file: str) -> str:
        return base64.b64encode((folder / file).read_bytes()).decode()

    server = {"server": API_SERVER, "certificate-authority-data": data("ca.crt")}
    user = {"client-certificate-data": data(f"{name}.crt"), "client-key-data": data(f"{name}.key")}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "testbed", "cluster": server}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": "testbed", "context": {"cluster": "testbed", "user": name}}],
        "current-context": "testbed",
    }
    target.touch(mode=0o600)
    target.write_text(json.dumps(config, indent=1))
