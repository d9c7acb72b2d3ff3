"""The compiling process: reads a `Work` from stdin, and writes a file of native code for each of its requests."""

import ctypes
import os
import pickle
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from rltrain.compiled.build import Request, Work
from rltrain.compiled.function import Function, given
from rltrain.compiled.rewriting import REWRITTEN
from rltrain.compiled.store import folder
from rltrain.compiled.tracing import traced

_PR_SET_PDEATHSIG: Final = 1
_OPTIONS: Final[dict[str, Any]] = {
    "compile_threads": 1,
    "aot_inductor.precompile_headers": False,  # hundreds of MB, for the few functions that there are
}


def main() -> None:
    """Compile what is asked for."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # What it finds out about the processor, by compiling, is kept as well.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(folder() / "inductor")
    work: Work = pickle.load(sys.stdin.buffer)
    os.nice(work.nice)
    torch.set_num_threads(work.threads)
    functions: dict[str, Function] = work.make().functions
    for request in work.requests:
        if not request.path.exists():
            _compile(functions[request.name], request)


def _compile(function: Function, request: Request) -> None:
    arguments = [None if each is None else torch.zeros(each[0], dtype=each[1]) for each in request.signature]
    tensors = given(arguments)

    def call(*present: torch.Tensor) -> tuple[torch.Tensor, ...]:
        following = iter(present)
        return function.function(*[None if each is None else next(following) for each in arguments])

    with traced():  # backward passes are recorded as well, which no other way into the compiler can do
        graph = make_fx(call, decomposition_table=REWRITTEN)(*tensors)
    program = torch.export.export(graph, tuple(tensors))
    with tempfile.TemporaryDirectory(dir=request.path.parent) as scratch:
        package = Path(scratch) / request.path.name
        torch._inductor.aoti_compile_and_package(program, package_path=str(package), inductor_configs=_OPTIONS)
        package.replace(request.path)


if __name__ == "__main__":
    main()
