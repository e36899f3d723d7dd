"""What stands between the fields of a file's lines."""

from __future__ import annotations

import csv
import re
from collections import Counter

from ...errors import SourceError
from .reading import Asked, are_numbers

_CANDIDATES = {"csv": ",;\t|", "tsv": "\t,;|", "text": "\t,;|"}
_QUOTED = re.compile(r'(^| )"[^"]*"( |$)')
_THREE_DIGITS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
_WITH_COMMA = re.compile(r"[-+]?[\d.]*\d,\d[\d,.]*")
_ENGLISH = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
_CONTINENTAL = re.compile(r"[-+]?\d{1,3}(\.\d{3})*(,\d*)?")

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
    if any("," in line for line in lines) and (found := _beside_decimal_commas(lines)):
        return found[0]
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


def are_quoted_between_blanks(lines: list[str]) -> bool:
    """Whether single blanks separate fields of which some are quoted, as R writes tables."""
    if not any(_QUOTED.search(line) for line in lines) or any("  " in line for line in lines):
        return False
    rows = split(lines, " ")
    return _evenness(rows[1:] or rows) > 0.9


def _beside_decimal_commas(lines: list[str]) -> tuple[str | None] | None:
    """What separates the fields if all commas are within numbers, as in `ann;bob;3,5`."""
    for candidate in ("\t", ";", "|", None):
        try:
            rows = split(lines, candidate)
        except SourceError:
            continue
        fields = [field.strip() for row in rows for field in row if "," in field]
        plain = all(sum("," not in field for field in row) > 1 for row in rows)
        if plain and _evenness(rows) > 0.9 and all(map(_WITH_COMMA.fullmatch, fields)):
            return (candidate,)
    return None


def _evenness(rows: Rows) -> float:
    """The share of rows that have the commonest number of fields, if that is at least two."""
    counts = Counter(map(len, rows))
    width, count = counts.most_common(1)[0] if counts else (0, 0)
    return count / len(rows) if width > 1 else 0.0


def marks_of(path: object, column: str, weights: list[str], asked: Asked) -> tuple[str, str]:
    """The mark of decimals in weights, and that of thousands, "" for none. Raises SourceError where
    a comma may be either."""
    if asked.decimal is not None or asked.thousands is not None:
        other = "," if asked.thousands == "." else "."
        return asked.decimal or other, asked.thousands or ""
    commas = [weight.strip() for weight in weights if "," in weight]
    if not commas:
        return ".", ""
    both = [weight for weight in commas if "." in weight]
    if both and all(_ENGLISH.fullmatch(weight) for weight in commas):
        return ".", ","
    if both and all(_CONTINENTAL.fullmatch(weight) for weight in commas):
        return ",", "."
    if all(_THREE_DIGITS.fullmatch(weight) for weight in commas):
        raise SourceError(
            f"{path}: {column} {commas[0]!r} may be {commas[0].replace(',', '.', 1)} or "
            f"{commas[0].replace(',', '')}: say --decimal , or --thousands , (decimal=, thousands=)"
        )
    plain = are_numbers(weight.replace(",", ".") for weight in weights if weight.strip())
    return ("," if plain and not any("." in weight for weight in weights) else "."), ""
