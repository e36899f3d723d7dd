"""Kernels compiled beforehand: one file of binaries, which an installation may have or not.

`python -m lpma.backend.cuda.launch.build` makes it, and a wheel built after that ships it. A binary
is found by a hash of all that it was compiled from: the source, the headers and the options. So one
that is older than the sources is not found, and the kernel is compiled as if there were no archive.

It is a zip archive of binaries, named by their numbers, and of an index, in JSON:

    {"compiler": "12.9", "modules": {KEY: {"file", "options", "binaries": [
        {"architecture": 90, "is_ptx": false, "member": "7", "names": {INSTANCE: SYMBOL}}]}}}

A *capability* is a device's compute capability without its point: 90 is 9.0. A binary for 80 runs
on 80, 86 and 89, and not on 90; PTX for 90 is compiled by the driver for 90 and all that is newer.

Requires nothing but the standard library: no CuPy and no device.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
import struct
import warnings
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .sources import ROOT, Options, given, instances

PATH = Path(__file__).with_name("kernels.bin")
INDEX = "index"
COMPILED_WITH = ("-ftz=true",)  # as CuPy compiles: the results are the same to the last bit
DAMAGE = (
    zipfile.BadZipFile, OSError, EOFError, lzma.LZMAError, ValueError, KeyError, TypeError,
    RuntimeError, struct.error,
)  # fmt: skip


@dataclass(frozen=True)
class Binary:
    """What a device loads. symbols: what the instances of templates are called in it."""

    architecture: int
    is_ptx: bool
    image: bytes
    symbols: Mapping[str, str] = field(default_factory=dict)


def key_of(file: str, options: Options) -> str:
    """The hash of all that the kernels of a file are compiled from, wherever the file lies."""
    code, _ = given(file, options)
    parts = (file, code, *options, *COMPILED_WITH, *instances(file))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Archive:
    """The binaries in a file; none if there is no file, or if it is damaged, which is warned of
    once. Threads may share it."""

    def __init__(self, path: Path = PATH) -> None:
        self._path = path
        self.compiler: str | None = None
        self._modules: dict[str, Any] = {}
        if not path.is_file():
            return
        try:
            index = json.loads(self._read(INDEX))
            self.compiler, self._modules = str(index["compiler"]), dict(index["modules"])
        except DAMAGE as error:
            self._warn(error)

    def _read(self, member: str) -> bytes:
        """Raises one of DAMAGE."""
        with zipfile.ZipFile(self._path) as archive:
            return archive.read(member)

    def find(self, file: str, options: Options, capability: int) -> Binary | None:
        """The kernels of a file for a device; None if they are not here or not readable."""
        module = self._modules.get(key_of(file, options)) if self._modules else None
        if module is None:
            return None
        try:
            fitting = [
                entry
                for entry in module["binaries"]
                if _runs_on(entry["architecture"], entry["is_ptx"], capability)
            ]
            if not fitting:
                return None
            best = max(fitting, key=lambda entry: (not entry["is_ptx"], entry["architecture"]))
            image = self._read(best["member"])
            return Binary(best["architecture"], best["is_ptx"], image, best["names"])
        except DAMAGE as error:
            self._warn(error)
            return None

    def facts(self) -> dict[str, Any]:
        """What is in it: `modules`, each the kernels of a file with one choice of options; how many
        of them are `current`, of today's sources; `architectures`; `compiler`; `bytes`."""
        binaries = [entry for module in self._modules.values() for entry in module["binaries"]]
        targets = sorted({(b["architecture"], b["is_ptx"]) for b in binaries})
        return {
            "path": str(self._path),
            "modules": len(self._modules),
            "current": sum(map(_is_current, self._modules, self._modules.values())),
            "architectures": [f"{'compute' if ptx else 'sm'}_{n}" for n, ptx in targets],
            "compiler": self.compiler,
            "bytes": self._path.stat().st_size if self._modules else 0,
        }

    def _warn(self, error: Exception) -> None:
        """Once, since nothing is read any more: the kernels are compiled instead, which takes
        longer and is as good."""
        self._modules = {}
        warnings.warn(
            f"{self._path} is damaged ({error}); kernels are compiled when they are needed",
            RuntimeWarning,
            stacklevel=2,
        )


def write(
    path: Path, compiler: str, modules: Iterable[tuple[str, Options, Iterable[Binary]]]
) -> None:
    """Make an archive of (file, options, their binaries), in place of one that may be there."""
    listed: dict[str, Any] = {}
    unfinished = path.with_suffix(".part")
    with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_LZMA) as archive:
        for file, options, binaries in modules:
            entries = []
            for binary in binaries:
                member = str(len(archive.namelist()))
                archive.writestr(member, binary.image)
                entries.append({
                    "architecture": binary.architecture, "is_ptx": binary.is_ptx,
                    "member": member, "names": dict(binary.symbols),
                })  # fmt: skip
            listed[key_of(file, options)] = {"file": file, "options": options, "binaries": entries}
        archive.writestr(INDEX, json.dumps({"compiler": compiler, "modules": listed}))
    os.replace(unfinished, path)


def _runs_on(architecture: int, is_ptx: bool, capability: int) -> bool:
    """PTX runs on what is newer, a binary on what differs in the digit after the point."""
    if is_ptx:
        return capability >= architecture
    return capability // 10 == architecture // 10 and capability >= architecture


def _is_current(key: str, module: Mapping[str, Any]) -> bool:
    file = module["file"]
    return (ROOT / file).is_file() and key_of(file, tuple(module["options"])) == key


def kernel_facts() -> dict[str, Any]:
    """For `lpma doctor`. `shipped`: what the archive of this installation holds, as Archive.facts
    says it; `cache`: where CuPy keeps what was compiled here, its `path`, `files` and `bytes`."""
    path, sizes = cache_path(), []
    for found in path.glob("*") if path.is_dir() else ():
        with suppress(FileNotFoundError):  # another process has just renamed it
            sizes.append(found.stat().st_size)
    cache = {"path": str(path), "files": len(sizes), "bytes": sum(sizes)}
    return {"shipped": Archive().facts(), "cache": cache}


def cache_path() -> Path:
    """Where CuPy keeps what it compiles."""
    return Path(os.environ.get("CUPY_CACHE_DIR") or Path.home() / ".cupy" / "kernel_cache")
