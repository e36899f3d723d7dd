"""Kernels compiled beforehand: one file of binaries, which an installation may have or not.

`python -m lpma.backend.cuda.launch.build` makes it, and a wheel built after that ships it. A binary
is found by a hash of all that it was compiled from: the source, the headers and the options. So one
that is older than the sources is not found, and the kernel is compiled as if there were no archive.

Format: MAGIC; u64, the bytes of the index; the index; the binaries. All but the first 24 bytes is
xz, whose checksums say whether it is whole. The index is JSON:

    {"compiler": "12.9", "modules": {KEY: {"file", "options", "binaries": [
        {"architecture": 90, "is_ptx": false, "at", "size", "names": {INSTANCE: SYMBOL}}]}}}

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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .sources import ROOT, Options, given, instances

PATH = Path(__file__).with_name("kernels.bin")
MAGIC = b"lpma kernels 1\n\0"
LENGTH = struct.Struct("<Q")
COMPILED_WITH = ("-ftz=true",)  # as CuPy compiles: the results are the same to the last bit
DAMAGE = (OSError, EOFError, lzma.LZMAError, ValueError, KeyError, TypeError, struct.error)


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
        self._warned = False
        self.compiler: str | None = None
        self._modules: dict[str, Any] = {}
        self._first = 0  # byte of the binaries
        if not path.is_file():
            return
        try:
            with path.open("rb") as file:
                if file.read(len(MAGIC)) != MAGIC:
                    raise ValueError("it does not open as an archive does")
                (size,) = LENGTH.unpack(file.read(LENGTH.size))
                if size > path.stat().st_size:
                    raise ValueError("it is cut short")
                index = json.loads(lzma.decompress(file.read(size), lzma.FORMAT_XZ))
            self._first = len(MAGIC) + LENGTH.size + size
            self.compiler, self._modules = str(index["compiler"]), dict(index["modules"])
        except DAMAGE as error:
            self._warn(error)

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
            with self._path.open("rb") as archive:
                archive.seek(self._first + best["at"])
                image = lzma.decompress(archive.read(best["size"]), lzma.FORMAT_XZ)
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
        """Once: the kernels are compiled instead, which takes longer and is as good."""
        self._modules = {}
        if not self._warned:
            self._warned = True
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
    parts: list[bytes] = []
    at = 0
    for file, options, binaries in modules:
        entries = []
        for binary in binaries:
            part = lzma.compress(binary.image, lzma.FORMAT_XZ, preset=lzma.PRESET_EXTREME)
            entries.append({
                "architecture": binary.architecture, "is_ptx": binary.is_ptx,
                "at": at, "size": len(part), "names": dict(binary.symbols),
            })  # fmt: skip
            parts.append(part)
            at += len(part)
        listed[key_of(file, options)] = {"file": file, "options": options, "binaries": entries}
    index = lzma.compress(json.dumps({"compiler": compiler, "modules": listed}).encode())
    unfinished = path.with_suffix(".part")
    unfinished.write_bytes(b"".join([MAGIC, LENGTH.pack(len(index)), index, *parts]))
    os.replace(unfinished, path)


def _runs_on(architecture: int, is_ptx: bool, capability: int) -> bool:
    """PTX runs on what is newer, a binary on what differs in the digit after the point."""
    if is_ptx:
        return capability >= architecture
    return capability // 10 == architecture // 10 and capability >= architecture


def _is_current(key: str, module: Mapping[str, Any]) -> bool:
    file = module["file"]
    return (ROOT / file).is_file() and key_of(file, tuple(module["options"])) == key
