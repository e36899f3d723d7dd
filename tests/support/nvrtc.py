"""CUDA's compiler, which needs no device: kernels compiled to what a device would load, as CuPy
has it done where there is one."""

from __future__ import annotations

import importlib
import os
import re
import warnings
from pathlib import Path
from typing import Any

OLDEST = 70  # compute capability 7.0
# NVRTC has a word on the oldest that it still knows, which is no matter of the source's.
_NO_MATTER = re.compile(r"nvrtc: warning: Architectures prior to .* are deprecated.*\n")
_ENTRY = re.compile(rb"\0\.text\.(\w+)(?=\0)")


class Unavailable(Exception):
    """There is no CuPy here, or no NVRTC."""


class BrokenSource(Exception):
    """What the compiler says of it."""


class Compiler:
    """CuPy's binding of NVRTC. Raises Unavailable."""

    def __init__(self) -> None:
        try:
            self._library = importlib.import_module("cupy_backends.cuda.libs.nvrtc")
            self.version = ".".join(map(str, self._library.getVersion()))
            known = [n for n in self._library.getSupportedArchs() if n >= OLDEST]
        except (ImportError, RuntimeError) as error:
            raise Unavailable(f"no CuPy with NVRTC: {error}") from error
        self.architectures = sorted({min(known), 80, 90})  # of devices that are in use
        self._headers = [f"-I{place}" for place in _headers()]

    def compile(
        self,
        code: str,
        options: tuple[str, ...],
        architecture: int,
        instances: tuple[str, ...] = (),
    ) -> set[str]:
        """The kernels found, those of `instances` by their C++ names: templates are not compiled
        unasked. Warnings are warned of. Raises BrokenSource."""
        nvrtc, asked = self._library, f"--gpu-architecture=sm_{architecture}"
        program = nvrtc.createProgram(code, "kernel.cu", [], [])
        try:
            for name in instances:
                nvrtc.addNameExpression(program, name)
            try:
                nvrtc.compileProgram(program, [*options, asked, *self._headers])
            except nvrtc.NVRTCError as error:
                raise BrokenSource(f"{error}\n{nvrtc.getProgramLog(program)}") from None
            said = _NO_MATTER.sub("", nvrtc.getProgramLog(program)).strip("\0\n ")
            if said:
                warnings.warn(f"sm_{architecture}, {' '.join(options)}: {said}", stacklevel=2)
            found = {entry.decode() for entry in _ENTRY.findall(nvrtc.getCUBIN(program))}
            lowered = {nvrtc.getLoweredName(program, name): name for name in instances}
            return {lowered.get(name, name) for name in found}
        finally:
            nvrtc.destroyProgram(program)


def _headers() -> list[Path]:
    """Where CUDA's own headers may lie, cooperative groups among them: beside CuPy, in a wheel of
    the runtime's, in an installed toolkit."""
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
