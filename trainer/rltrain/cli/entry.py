"""Entry point of `rltrain`: signals are looked after first, for the modules behind the command take time to load."""

from rltrain.runtime.interrupts import Interrupts


def main() -> None:
    """Run the command line and exit with its code."""
    with Interrupts() as interrupts:
        from rltrain.cli.main import main as run

        run(interrupts)
