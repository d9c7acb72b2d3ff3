"""python -m testbed up|images|down|volumes"""

import argparse
import json
import sys
from collections.abc import Callable

from . import images
from .cluster import alone, choose
from .layout import IMAGES_JSON, KUBECONFIG
from .shell import TestbedError


def up() -> None:
    """Bring the test cluster up (does nothing when it is)."""
    with alone():
        choose().up()
    print(f"export KUBECONFIG={KUBECONFIG}")


def build_images() -> None:
    """Build both images and make them available in the cluster."""
    with alone():
        references = choose().images(images.tags())
    IMAGES_JSON.write_text(json.dumps(references, indent=1) + "\n")
    print(IMAGES_JSON.read_text(), end="")


def down() -> None:
    """Remove the test cluster."""
    with alone():
        choose().down()


def volumes() -> None:
    """Make volumes whose claims are gone claimable again."""
    choose().volumes()


COMMANDS: dict[str, Callable[[], None]] = {"up": up, "images": build_images, "down": down, "volumes": volumes}


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m testbed", description="The cluster that the tests run on.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, function in COMMANDS.items():
        commands.add_parser(name, help=function.__doc__)
    try:
        COMMANDS[parser.parse_args().command]()
    except TestbedError as error:
        print(f"testbed: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
