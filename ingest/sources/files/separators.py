"""What stands between the fields of a file's lines."""

from __future__ import annotations

import csv
from collections import Counter

from ...errors import SourceError
from .reading import are_numbers

_CANDIDATES = {"csv": ",;\t|", "tsv": "\t,;|", "text": "\t,;|"}

Rows = list[list[str]]


def split(lines: list[str], separator: str | None) -> Rows:
    """Lines as fields."""
    if separator is None:
        return [line.split() for line in lines]
    try:
        return [row for row in csv.reader(lines, delimiter=separator, skipinitialspace=True) if row]
    except csv.Error as error:
        raise SourceError(f"a line cannot be cut into fields: {error}") from error


def separator_of(format: str, lines: list[str]) -> str | None:
    """The one that cuts nearly all lines into equally many fields, at least two, and the most; if
    several do, the one that the file's name promises."""
    blanks = [line.split() for line in lines]
    if format == "text" and _evenness(blanks) == 1 and all(are_numbers(row) for row in blanks[1:]):
        return None
    best: tuple[float, int, str] | None = None
    for candidate in _CANDIDATES[format]:
        try:
            rows = split(lines, candidate)
        except SourceError:
            continue
        evenness, width = _evenness(rows), len(max(rows, key=len, default=[]))
        if width > 1 and evenness > 0.5 and (best is None or evenness > best[0] + 0.1):
            best = evenness, width, candidate
    if best is not None:
        return best[2]
    return None if format == "text" or _evenness(blanks) == 1 else _CANDIDATES[format][0]


def _evenness(rows: Rows) -> float:
    """The share of rows that have the commonest number of fields, if that is at least two."""
    counts = Counter(map(len, rows))
    width, count = counts.most_common(1)[0] if counts else (0, 0)
    return count / len(rows) if width > 1 else 0.0


def decimal_point_of(separator: str | None, places: dict[str, int], body: Rows) -> str:
    if separator == "," or "weight" not in places:
        return "."
    weights = [row[places["weight"]] for row in body if places["weight"] < len(row)]
    commas = [weight for weight in weights if "," in weight]
    plain = are_numbers(weight.replace(",", ".") for weight in weights)
    return "," if commas and plain and not any("." in weight for weight in weights) else "."
