"""The Debian packages that the one-node cluster needs: all of them are named here."""

import os

from .shell import TestbedError, run, step, words

NODE_PACKAGES = (
    "runc",
    "containernetworking-plugins",
    "iptables",
    "ipset",  # kube-router's sets of addresses
    "conntrack",
    "ethtool",
    "socat",
    "iproute2",
    "openssl",
    "procps",
)
IMAGE_PACKAGES = ("buildah", "debootstrap", "ca-certificates")


def missing(packages: tuple[str, ...]) -> list[str]:
    """Those of the packages that aren't installed."""
    report = run("dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n", *packages, check=False)
    installed = {line.split()[1] for line in report.splitlines() if line.startswith("installed ")}
    return [package for package in packages if package not in installed]


def install(packages: tuple[str, ...]) -> None:
    """Install what is missing with apt-get."""
    wanted = missing(packages)
    if not wanted:
        return
    if os.geteuid() != 0:
        raise TestbedError(f"not root, and not installed: {words(wanted)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    with step(f"install {words(wanted)}"):
        run("apt-get", "update", "-qq", env=quiet)
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted, env=quiet)
