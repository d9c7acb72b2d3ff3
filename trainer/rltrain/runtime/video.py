"""Films on disk: .mp4 or .gif, which appear whole or not at all."""

import contextlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol

from rltrain.api.errors import InvalidInput
from rltrain.state import Array

SUFFIXES: Final = (".mp4", ".gif")


class _Writer(Protocol):
    def append(self, frame: Array) -> None: ...
    def finish(self) -> None: ...


class Film:
    """A context in which frames are added; leaving it by an error leaves nothing behind.

    Args:
        path: of the file, replaced where there is one.

    Raises:
        InvalidInput: the path has another suffix or can't be written, or what writes it isn't installed.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        if path.suffix.lower() not in SUFFIXES:
            raise InvalidInput(f"{path} is no video: its name must end in {' or '.join(SUFFIXES)}")
        try:
            self._make: Callable[[Path, float], _Writer] = _mp4() if path.suffix.lower() == ".mp4" else _gif()
        except ImportError as error:
            raise InvalidInput(
                f"videos need {error.name}, which isn't installed: pip install 'rltrain[video]'"
            ) from error
        try:
            if path.is_dir():
                raise IsADirectoryError(0, "it is a folder")
            self._folder = Path(tempfile.mkdtemp(prefix=f".{path.stem}-", dir=path.absolute().parent))
        except OSError as error:
            raise InvalidInput(f"{path} can't be written: {error.strerror}") from error
        self._temporary = self._folder / f"film{path.suffix.lower()}"
        self._writer: _Writer | None = None

    def begin(self, fps: float) -> None:
        """From now on frames can be added."""
        self._writer = self._make(self._temporary, fps)

    def add(self, frame: Array) -> None:
        """The next frame, uint8 (height, width, 3)."""
        assert self._writer is not None
        self._writer.append(frame)

    def __enter__(self) -> "Film":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._writer is not None:
                with contextlib.suppress(Exception) if kind is not None else contextlib.nullcontext():
                    self._writer.finish()
                    if kind is None:
                        self._temporary.replace(self._path)
        except OSError as wrong:
            raise InvalidInput(f"{self._path} can't be written: {wrong.strerror or wrong}") from wrong
        finally:
            self._temporary.unlink(missing_ok=True)
            self._folder.rmdir()


def _mp4() -> Callable[[Path, float], _Writer]:
    import imageio.v2
    import imageio_ffmpeg  # type: ignore[import-untyped]  # noqa: F401 - by which imageio writes it

    class Mp4:
        def __init__(self, path: Path, fps: float) -> None:
            # Players want even sides; by default imageio makes them multiples of 16.
            self._writer: Any = imageio.v2.get_writer(path, fps=fps, macro_block_size=2, ffmpeg_log_level="error")

        def append(self, frame: Array) -> None:
            self._writer.append_data(frame)

        def finish(self) -> None:
            self._writer.close()

    return Mp4


def _gif() -> Callable[[Path, float], _Writer]:
    from PIL import Image

    class Gif:
        def __init__(self, path: Path, fps: float) -> None:
            self._path, self._duration_ms = path, max(20, round(1000 / fps))  # shorter ones are slowed down by viewers
            self._frames: list[Image.Image] = []

        def append(self, frame: Array) -> None:
            self._frames.append(Image.fromarray(frame).quantize(256))  # a third of the memory, and what a GIF has

        def finish(self) -> None:
            if self._frames:
                first, *others = self._frames
                first.save(self._path, save_all=True, append_images=others, duration=self._duration_ms, loop=0)

    return Gif
