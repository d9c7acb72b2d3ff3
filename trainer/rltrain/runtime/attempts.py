"""Attempts: who starts a run, and whose directory it is."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

from rltrain.runtime.state_files import flush, flush_folder


def _attempt_numbers(folder: Path) -> Iterator[int]:
    for path in folder.glob("[0-9]*.json"):
        if path.stem.isdigit():
            yield int(path.stem)


class Attempts:
    """Numbered records of driver starts: the newest one owns the run directory.

    Args:
        folder: of the records.
        owner: who starts, e.g. a pod's UID.
    """

    def __init__(self, folder: Path, owner: str) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        record = json.dumps({"owner": owner, "started_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())})
        self.number = max(_attempt_numbers(folder), default=0)
        while True:
            self.number += 1
            try:
                with (folder / f"{self.number:04d}.json").open("x") as file:
                    file.write(record)
                    flush(file)
                break
            except FileExistsError:
                continue
        flush_folder(folder)

    @property
    def superseded(self) -> bool:
        """Whether a newer attempt has begun."""
        return max(_attempt_numbers(self._folder), default=0) > self.number
