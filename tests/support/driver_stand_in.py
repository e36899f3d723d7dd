"""A library with the functions of CUDA's driver that lpma calls. They note what they are given."""

from __future__ import annotations

import ctypes
from typing import Any

from lpma.cuda.library import FUNCTIONS


class Library:
    """Its functions return `status`, those that query `query_status`; `on_query` is called first,
    with the number of the query."""

    def __init__(self) -> None:
        self.noted: list[tuple[Any, ...]] = []
        self.status = self.query_status = self.queries = 0
        self.on_query: Any = lambda number: None
        for name, types in FUNCTIONS.items():
            setattr(self, name, ctypes.PYFUNCTYPE(ctypes.c_int, *types)(self._noting(name)))

    def _noting(self, name: str) -> Any:
        def noting(*given: Any) -> int:
            self.noted.append((name, *given))
            if not name.endswith("Query"):
                return self.status
            self.queries += 1
            self.on_query(self.queries)
            return self.query_status

        return noting
