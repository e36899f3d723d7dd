"""Names a second and bytes a name: a column of names becomes ids, beside what others do with one.

Each program numbers the values of one column in the order of their first appearance, from nothing:
the graph's dictionary, pandas' `factorize`, Arrow's `dictionary_encode` (which has no integers to
read from Python's objects), and a loop over a dict. Their numbers must be equal. The columns hold
integers of 64 bits, or text of 11 letters: Python's strings, an Arrow column, or one of pandas'
categories; the names are all different, or each comes ten times on average.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np

from lpma.names import Names, column_of

from ..report import Report, Setting, beside
from ..stopwatch import WrongAnswer, race

PEERS = ("pandas", "arrow", "dict")

_DICT_BYTES = """
import sys, tracemalloc
tracemalloc.start()
made = {}
for i in range(int(sys.argv[1])):
    made.setdefault(f"user{i:07d}", len(made))
print(tracemalloc.get_traced_memory()[0] / len(made))
"""


def names(setting: Setting) -> Report:
    n = 50_000 if setting.quick else 1_000_000
    report = Report("names", f"ids for {n:,} names, ms")
    rng = np.random.default_rng(0)
    for repeats in (1, 10):
        numbers = rng.permutation(n) if repeats == 1 else rng.integers(0, n // repeats, n)
        for form, column in _forms(numbers).items():
            report.add(_row(setting, form, repeats, column))
    ids = Names()
    ids.assign(column_of([f"user{i:07d}" for i in range(n)], "names"))
    image = ids.image()
    kept = sum(array.nbytes for array in image.columns().values()) / n
    found = subprocess.run([sys.executable, "-c", _DICT_BYTES, str(n)], capture_output=True,
                           text=True, check=True)  # fmt: skip
    report.notes.append(
        f"A name of 11 letters takes {ids.nbytes / n:.0f} bytes in memory and {kept:.0f} in a "
        f"file; in a dict of Python's {float(found.stdout):.0f}."
    )
    return report


def _forms(numbers: Any) -> dict[str, Any]:
    import pandas
    import pyarrow

    texts = [f"user{i:07d}" for i in numbers.tolist()]
    arrow = pyarrow.array(texts)
    return {
        "integers": numbers * 7919 + 2**40,
        "strings": np.array(texts, object),
        "Arrow": arrow,
        "categories": pandas.Series(arrow.to_pandas()).astype("category"),
    }


def _row(setting: Setting, form: str, repeats: int, column: Any) -> dict[str, object]:
    import pandas
    import pyarrow

    arrow = pyarrow.array(column)
    if isinstance(arrow.type, pyarrow.DictionaryType):
        arrow = arrow.dictionary_decode()
    plain = arrow.to_pylist()
    given = column.to_pandas() if isinstance(column, pyarrow.Array) else column
    actions: dict[str, Any] = {
        "lpma": lambda: Names().assign(column_of(column, "names")),
        "pandas": lambda: pandas.factorize(given)[0],
        "arrow": lambda: pyarrow.array(column).dictionary_encode(),
        "dict": lambda: _by_dict(plain),
    }
    if form == "categories":
        del actions["arrow"]  # it would only count what it was given
    actions = {name: action for name, action in actions.items() if setting.wants(name)}
    expected = _by_dict(plain)

    def check(name: str, answer: Any) -> None:
        ids = answer.indices if name == "arrow" else answer
        if not np.array_equal(np.asarray(ids), expected):
            raise WrongAnswer(f"{name}: {form}")

    timings = race(actions, check, rounds=3 if setting.quick else 7)
    row = beside(timings, PEERS, 1e3)
    ours = timings.get("lpma")
    rate = len(plain) / ours.median / 1e6 if ours else None
    return {"names": form, "each": repeats, **row, "million names / s": rate}


def _by_dict(values: list[Any]) -> Any:
    known: dict[Any, int] = {}
    return np.array([known.setdefault(value, len(known)) for value in values])
