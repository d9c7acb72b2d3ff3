"""A stand-in for the official Python image where no registry can be reached: Debian with its own Python."""

import hashlib
import shutil
import tempfile
from pathlib import Path

from .layout import CACHE, LOGS
from .shell import TestbedError, run, step, stream

BASE = "docker.io/library/python:3.11-slim-bookworm"
SUITE = "bookworm"
PACKAGES = "python3,python3-pip,python3-venv,ca-certificates"
# The official image's Python is in /usr/local and is called both python and python3.
LINKS = {"python": "python3", "python3": "python3", "pip": "pip3"}
RECIPE = hashlib.sha256(f"{SUITE} {PACKAGES} {LINKS}".encode()).hexdigest()[:16]
CONTAINERFILE = f"""\
FROM scratch
ADD root.tar /
ENV PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8
LABEL rltrain.testbed.recipe={RECIPE}
CMD ["python3"]
"""


def ensure_base() -> None:
    """Make the stand-in under the official image's name, unless buildah's storage has it."""
    from .images import buildah

    label = run(
        *buildah("inspect", "--type=image", '--format={{index .OCIv1.Config.Labels "rltrain.testbed.recipe"}}', BASE),
        check=False,
    )
    if label.strip() == RECIPE:
        return
    with step(f"stand-in for {BASE}"), tempfile.TemporaryDirectory(dir=CACHE) as folder:
        root, context = Path(folder) / "root", Path(folder) / "context"
        context.mkdir()
        stream(
            *("unshare", "--mount", "--pid", "--fork", "debootstrap", "--variant=minbase"),
            *(f"--include={PACKAGES}", SUITE, root, mirror()),
            log=LOGS / "debootstrap.log",
        )
        for name, target in LINKS.items():
            (root / "usr/local/bin" / name).symlink_to(f"/usr/bin/{target}")
        shutil.rmtree(root / "var/cache/apt", ignore_errors=True)
        shutil.rmtree(root / "var/lib/apt/lists", ignore_errors=True)
        # The builder writes these for itself; the machine's must not be in the image.
        for name in ("etc/resolv.conf", "etc/hostname"):
            (root / name).unlink(missing_ok=True)
        run("tar", "--create", "--numeric-owner", "--file", context / "root.tar", "--directory", root, ".")
        (context / "Containerfile").write_text(CONTAINERFILE)
        stream(
            *buildah("build", "--isolation=chroot", f"--file={context / 'Containerfile'}", f"--tag={BASE}", context),
            log=LOGS / "build-base.log",
        )


def mirror() -> str:
    """The package mirror that this machine's apt uses."""
    listing = ("apt-get", "indextargets", "--format", "$(SITE) $(COMPONENT)", "Created-By: Packages")
    for line in run(*listing).splitlines():
        site, component = line.split()
        if component == "main" and "security" not in site:
            return site
    raise TestbedError("apt knows no package mirror")
