"""A snapshot as a file of matrices: NumPy's archive, which can be read back, and Matrix Market's.

Both writers check the path, its suffix and the free space before they begin, and write through
`lpma.file.atomic.atomic_write`: the file is whole or absent.
"""

from __future__ import annotations

import errno
import lzma
import struct
import zipfile
import zlib
from tokenize import TokenError
from typing import Any

import numpy as np

from ...dependencies import optional_import
from ...errors import BatchError, FormatError
from ...file.atomic import StrPath, atomic_write
from .. import checks
from ..columns import ARRAYS, FACTS, LEFT, REQUIRED, facts_of
from ..csr import Csr
from .edges import to_numpy
from .matrices import to_scipy
from .room import check_target, tell_left

# What a damaged archive makes NumPy and zipfile raise. TypeError: np.load gives a single .npy as an
# array, which is not a context manager.
_DAMAGED = (
    ValueError, EOFError, TypeError, NotImplementedError, RuntimeError, TokenError, KeyError,
    OverflowError, struct.error, zipfile.BadZipFile, zlib.error, lzma.LZMAError,
)  # fmt: skip
MATRIX_MARKET_BYTES_PER_EDGE = 48  # two ids of 10 digits, a weight of 24 characters, blanks


def write_npz(s: Csr, path: StrPath) -> None:
    stored = fields_of(s)
    check_target(path, ".npz", sum(array.nbytes for array in stored.values()) + 4096)
    with atomic_write(path) as file:
        np.savez(file, **stored)


def fields_of(s: Csr) -> dict[str, Any]:
    """The members of the archive that `write_npz` writes, as NumPy's arrays and scalars: the arrays
    of the snapshot (columns.py), without those that it lacks; the names of the rows as
    names/files.py has them; `num_edges`, `version`, `time`, `directed`, and `left` if
    it is said."""
    host: dict[str, Any] = to_numpy(s)
    if s.names is not None:
        host |= _columns_of_names(s.names.of(np.arange(s.num_rows)))
    facts = {name: np.array(value)[()] for name, value in facts_of(s).items() if value is not None}
    return host | facts  # int64 and bool


def _columns_of_names(of_rows: Any) -> dict[str, Any]:
    """The columns of a dictionary that has these names alone, in this order."""
    from ...names import Names, column_of

    names = Names()
    names.assign(column_of(of_rows, "names"))
    return names.image().columns()


def _names_of_columns(path: StrPath, fields: dict[str, Any]) -> Any:
    """The names of the rows. Takes their columns away; raises FormatError."""
    from ...names import Names
    from ...names.files import COLUMNS

    kinds, keys, ends, text = columns = [fields.pop(name) for name in COLUMNS]
    types = (np.uint8, np.uint64, np.uint64, np.uint8)
    good = all(a.ndim == 1 and a.dtype == t for a, t in zip(columns, types, strict=True))
    if not good or len(kinds) != len(fields["indptr"]) - 1:
        raise FormatError(f"{path}: its names are not one for each row")
    return Names.of_columns(kinds, keys, ends, text, str(path)).frozen()


def arrays_of(path: StrPath) -> dict[str, Any]:
    """The arrays of NumPy's archive by name. Raises FormatError on any other file, and OSError."""
    with open(path, "rb") as file:
        try:
            with np.load(file, allow_pickle=False) as archive:
                return {name: archive[name] for name in archive.files}
        except _DAMAGED as error:
            raise FormatError(" ".join(str(error).split()) or type(error).__name__) from error
        except OSError as error:
            if error.errno != errno.EINVAL:  # a place before the file's beginning
                raise
            raise FormatError("it is cut short or damaged") from error


def read_npz(path: StrPath) -> dict[str, Any]:
    """The fields of the snapshot that `write_npz` wrote. Raises FormatError on anything else."""
    from ...names.files import COLUMNS  # not at the top: it brings Numba along

    try:
        fields: dict[str, Any] = arrays_of(path)
    except FormatError as error:
        raise FormatError(f"{path} is not a snapshot written by write_npz ({error})") from error
    needed = {*REQUIRED, *FACTS} - {LEFT}
    unknown = set(fields) - needed - {*ARRAYS, *COLUMNS, LEFT}
    if needed - set(fields) or unknown:
        raise FormatError(f"{path} holds {sorted(fields)}, which are not a snapshot's arrays")
    _check_fields(path, fields)
    if any(name in fields for name in COLUMNS):
        if not set(COLUMNS) <= set(fields):
            raise FormatError(f"{path}: its names are cut short")
        fields["names"] = _names_of_columns(path, fields)
    return {**dict.fromkeys(ARRAYS), **fields}


def _check_fields(path: StrPath, fields: dict[str, Any]) -> None:
    """What every consumer of a CSR relies on. Makes Python's numbers of the scalars."""
    try:
        for name in FACTS if LEFT in fields else FACTS[:-1]:
            if fields[name].shape != ():
                raise BatchError(f"{name}: must be a scalar")
            fields[name] = (bool if name == "directed" else int)(fields[name])
        checks.check_facts(*(fields.get(name) for name in FACTS))
        arrays = {name: fields.get(name) for name in ARRAYS}
        checks.check_types(arrays)
        indptr, indices = fields["indptr"], fields["indices"]
        checks.check_graph(indptr, indices, fields["num_edges"], fields["directed"])
        checks.check_lengths(len(indptr) - 1, len(indices), arrays, None)
    except (BatchError, TypeError, ValueError) as error:
        raise FormatError(
            f"{path}: its arrays do not form a CSR ({error}); write it again with write_npz"
        ) from None


def write_matrix_market(s: Csr, path: StrPath) -> None:
    io = optional_import("scipy.io", "scipy", "write_matrix_market()")
    check_target(path, ".mtx", s.num_edges * MATRIX_MARKET_BYTES_PER_EDGE + 4096)
    tell_left(s, ".mtx")
    with atomic_write(path) as file:
        io.mmwrite(
            file,
            to_scipy(s),
            comment=f"lpma snapshot, version {s.version}, {s.num_edges} edges",
            field="pattern" if s._weights is None else "real",
            symmetry="general" if s.directed else "symmetric",
        )
