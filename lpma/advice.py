"""What to do where a column that is to hold integers does not: by what it is for, and its dtype."""

from __future__ import annotations

_VERTICES = {
    "f": ": convert whole numbers first, with .astype('int64') for one; a missing one has no place",
    "M": ": these are times",
    "m": ": these are spans of time, not times",
    "U": ": vertices go by numbers, unless the graph is made with names=True",
    "T": ": vertices go by numbers, unless the graph is made with names=True",
    "O": ": convert its values to one type of integers first, or make the graph with names=True",
}


def advice(name: str, kind: str) -> str:
    """The end of a message on the column `name` of a dtype of this kind."""
    if name == "kind":
        return ": one of lpma.Kind, such as lpma.Kind.APPEND, or a number for each row"
    if name == "time" and kind in "UTSO":
        what = "a value of another type" if kind == "O" else "text"
        return f": {what} is no time here: give datetimes, or milliseconds, in each row"
    return _VERTICES.get(kind, "")
