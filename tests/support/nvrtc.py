"""CUDA's runtime compiler, which needs no device: it compiles kernels to what a device would load,
as CuPy does where there is a device."""

from __future__ import annotations

import importlib
import os
import re
import warnings
from pathlib import Path
from typing import Any

OLDEST = 70  # compute capability 7.0
# NVRTC warns of the oldest architectures that it still supports, whatever the source is.
_OLD_ARCHITECTURE = re.compile(r"nvrtc: warning: Architectures prior to .* are deprecated.*\n")
_ENTRY = re.compile(rb"\0\.text\.(\w+)(?=\0)")


class Unavailable(Exception):
    """CuPy or NVRTC is not installed."""


class BrokenSource(Exception):
    """The source does not compile; the message is the compiler's."""


class Compiler:
    """CuPy's binding of NVRTC. Raises Unavailable."""

    def __init__(self) -> None:
        try:
            self._library = importlib.import_module("cupy_backends.cuda.libs.nvrtc")
            version = self._library.getVersion()
            known = [n for n in self._library.getSupportedArchs() if n >= OLDEST]
        except (ImportError, RuntimeError) as error:
            raise Unavailable(f"no CuPy with NVRTC: {error}") from error
        self.version = ".".join(map(str, version))
        # Options with which nothing is optimised; the same code is wrong, or too large.
        self.hurry = ("--Ofast-compile=max",) if version >= (12, 9) else ()
        self.architectures = sorted({min(known), 80, 90})  # those of devices in use
        self._headers = [f"-I{place}" for place in _headers()]

    def compile(
        self,
        code: str,
        options: tuple[str, ...],
        architecture: int,
        instances: tuple[str, ...] = (),
    ) -> set[str]:
        """The names of the kernels in `code`, with the template instances that `instances` asks for
        by their C++ names. The compiler's warnings become Python's. Raises BrokenSource."""
        nvrtc, asked = self._library, f"--gpu-architecture=sm_{architecture}"
        program = nvrtc.createProgram(code, "kernel.cu", [], [])
        try:
            for name in instances:
                nvrtc.addNameExpression(program, name)
            try:
                nvrtc.compileProgram(program, [*options, asked, *self._headers])
            except nvrtc.NVRTCError as error:
                raise BrokenSource(f"{error}\n{nvrtc.getProgramLog(program)}") from None
            said = _OLD_ARCHITECTURE.sub("", nvrtc.getProgramLog(program)).strip("\0\n ")
            if said:
                warnings.warn(f"sm_{architecture}, {' '.join(options)}: {said}", stacklevel=2)
            found = {entry.decode() for entry in _ENTRY.findall(nvrtc.getCUBIN(program))}
            lowered = {nvrtc.getLoweredName(program, name): name for name in instances}
            return {lowered.get(name, name) for name in found}
        finally:
            nvrtc.destroyProgram(program)


def _headers() -> list[Path]:
    """The folders that may hold CUDA's own headers, cooperative groups among them: CuPy's, that of
    the runtime's wheel, and that of an installed toolkit."""
    cupy: Any = importlib.import_module("cupy")
    own = Path(str(cupy.__file__)).parent
    homes = [cupy.cuda.get_cuda_path(), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    places = [
        own / "_core" / "include",
        own / "_core" / "include" / "cupy" / "_cccl" / "libcudacxx",
        own.parent / "nvidia" / "cuda_runtime" / "include",
        *(Path(home) / "include" for home in homes if home),
    ]
    return [place for place in places if place.is_dir()]
