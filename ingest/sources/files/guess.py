"""What is plain in a file's first rows: the separator, whether there is a header, which column is
what, whether vertices are numbers, and how times are written. Options override each guess.

The first row is a header if it names the ends of an edge, or a column that the caller asks for, or
if it has text in a column that has numbers in all other rows; so is a comment above the first row
whose fields fit the rows. Columns are found by the header's names; two without known names are
source and target. Without a header, two columns are source and target, a third is a time if it
holds dates or numbers as large as times since 1970 are, else a weight, and four are source, target,
weight and time; each has to fit what the column holds, and more columns are asked about. Where the
caller names a column, weights and times are read only if they are named too. What a row does, its
kind, is never guessed.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from lpma.batch.columns import MAX_VERTEX

from ...errors import SourceError
from ...formats.kinds import FIELDS, UPDATE_KINDS
from ...formats.names import DECIMALS
from ...formats.times import UNITS
from .comments import EXCEL
from .reading import (
    MISSING,
    SKIP,
    VERTEX_IDS,
    Asked,
    Reading,
    Times,
    are_numbers,
    are_whole,
    either_way,
    is_date,
    is_number,
    place_of,
    places_by_alias,
    plain_names,
    whole_text,
)

_ESCAPED = re.compile(r'"[^"]*\\"(?=[^",;\t|])')  # within a quoted field
_CANDIDATES = {"csv": ",;\t|", "tsv": "\t,;|", "text": "\t,;|"}
_QUOTED = re.compile(r'(^| )"[^"]*"( |$)')
_THREE_DIGITS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+")
_WITH_COMMA = re.compile(r"[-+]?[\d.]*\d,\d[\d,.]*")
_ENGLISH = re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?")
_CONTINENTAL = re.compile(r"[-+]?\d{1,3}(\.\d{3})*(,\d*)?")
_ODD = (  # how first fields, or lines, look that are none
    (re.compile(r"[(\[{<][^)\]}>]*"), "fields", "edges in brackets", "write lines without them"),
    (re.compile(r".+:"), "fields", "vertices before colons, as of an adjacency list",
     "write a line for each edge"),
    (re.compile(r"'[^']+'.*"), "lines", "fields in single quotes",
     "write them in double ones, or in none"),
)  # fmt: skip
_KONECT = re.compile(r"%\s*bip\b")  # how its files of two kinds of vertices begin
SAMPLE_ROWS = 1000  # that guesses rest on
TEXT_SHARE = 0.1  # of the ends of edges: fewer that are no integers do not make them names
SINCE_1970 = 10**8  # numbers at least this large may be times, in seconds or finer

Rows = list[list[str]]


def guess_text(
    path: Path, format: str, lines: list[str], asked: Asked, comments: list[str] | None = None
) -> Reading:
    """The reading of lines of text that are neither blank nor comments; `comments` are those above
    the first. Raises SourceError."""
    excel = EXCEL.fullmatch(comments[0].encode()) if comments and format != "text" else None
    separator = asked.separator or (excel and excel[1].decode()) or _separator_of(format, lines)
    if separator in (None, " "):
        separator = " " if _are_quoted_between_blanks(lines) else None
    rows = _split(lines, separator)
    if not rows:
        raise SourceError(f"{path}: nothing was loaded: it holds no edge")
    commented = None
    if asked.header is not False and not _has_header(rows, replace(asked, header=None), None):
        commented = _commented(comments or [], rows, separator, asked)
    if commented is None:
        refuse_other_shapes(path, rows, lines, separator, asked)
        reading = guess_rows(path, format, rows, asked, separator, lines[0])
    else:
        told = replace(asked, header=True)
        reading = guess_rows(path, format, [commented[1], *rows], told, separator, commented[0])
        reading = replace(reading, commented=True)
    if commented is None and _counts(rows):
        reading = replace(reading, more=(
            f"the first line, {lines[0].strip()!r}, may say how many vertices and edges follow: it "
            "is read as an edge; --header leaves it out, --no-header says that it is one",
        ) if asked.header is None else ())  # fmt: skip
    if not asked.by_field() and asked.columns is None and _is_counted(rows, reading):
        reading = replace(reading, more=(*reading.more, (
            "the first column counts the rows: if it names none of the ends, say --source 2 "
            "--target 3"
        )))  # fmt: skip
    if asked.bipartite is None and comments and _KONECT.match(comments[0]):
        reading = replace(reading, bipartite=True)
    body = rows if commented is not None else rows[1:]
    return reading if asked.names is False else with_numbers(reading, body)


def _commented(
    comments: list[str], rows: Rows, separator: str | None, asked: Asked
) -> tuple[str, list[str]] | None:
    """The comment above the rows that names their columns, and its fields."""
    width = Counter(map(len, rows)).most_common(1)[0][0]
    wanted = {str(name).lower() for name in asked.by_field().values()} - {"none"}
    for line in reversed(comments):
        text = line.lstrip(" \t#%").rstrip()
        for each in dict.fromkeys((separator, ",", "\t", None)):
            fields = [field.strip() for row in _split([text], each) for field in row]
            if len(fields) != width or any(map(_is_value, fields)) or not all(fields):
                continue
            known = {"src", "dst"} <= places_by_alias(fields).keys() or either_way(fields)
            asked_for = wanted & {field.lower() for field in fields}
            plain = each is not None and width > 2 and all(len(field) <= 40 for field in fields)
            if known or asked_for or (plain and each == separator and asked.header is None):
                return line.strip(), fields
    return None


def _is_counted(rows: Rows, reading: Reading) -> bool:
    """Whether the first of three columns without a header may be an index beside the ends."""
    if reading.header is not None or len(reading.columns) != 3 or len(rows) < 3:
        return False
    counted = [row[0] for row in rows] in _counted(len(rows))
    return counted and reading.places.get("weight") == 2 and are_whole(row[-1] for row in rows)


def _counted(size: int) -> list[list[str]]:
    """The numbers of so many rows, from 0 and from 1."""
    return [list(map(str, range(first, first + size))) for first in (0, 1)]


def _counts(rows: Rows) -> bool:
    """Whether the first row says how many vertices and edges follow, as far as can be seen."""
    first, rest = rows[0], rows[1:]
    if len(rest) < 3 or len(rest) >= SAMPLE_ROWS - 1 or len(first) < 2 or not are_whole(first):
        return False
    ends = [field for row in rest for field in row[:2]]
    size, count = int(first[0]), int(first[1 if len(first) == 2 else -1])
    return count == len(rest) and are_whole(ends) and all(int(end) <= size for end in ends)


def refuse_other_shapes(
    path: Path, rows: Rows, lines: list[str], separator: str | None, asked: Asked
) -> None:
    """Raise SourceError on rows that are not an edge each, as of an adjacency list or a matrix, and
    on fields that are cut where they should not be."""
    if separator is not None and any(_ESCAPED.search(line) for line in lines):
        raise SourceError(
            f'{path}: quotes within fields are written \\" there: double them, as in "a ""b""", '
            "which pandas.read_csv(…, escapechar='\\\\').to_csv does"
        )
    if asked.by_field() or asked.columns is not None or asked.header is not None:
        return
    first = [row[0] for row in rows]
    if {*first} <= {"a", "e"} and all(len(row) > 2 and are_numbers(row[1:]) for row in rows):
        raise SourceError(
            f"{path}: lines that begin with {first[0]!r}, as DIMACS has edges, but none with 'p "
            "edge' or 'p sp': with --columns '- src dst' (columns=) they are read"
        )
    for pattern, of, what, do in _ODD:
        found = lines if of == "lines" else first
        if sum(pattern.fullmatch(text.strip()) is not None for text in found) > 0.5 * len(found):
            raise SourceError(f"{path}: {what}, as in {lines[-1].strip()[:40]!r}: {do}")
    widths = Counter(map(len, rows))
    numbers = are_numbers(field for row in rows for field in row)
    if separator is None and len(widths) > 2 and widths.most_common(1)[0][1] < 0.9 * len(rows):
        alike = numbers or not any(_is_value(field) for row in rows for field in row)
        if alike:
            raise SourceError(
                f"{path}: lines of {min(widths)} to {max(widths)} fields, as of an adjacency list: "
                "read it in Python (networkx.read_adjlist) and give lpma.from_networkx the graph, "
                "or write a line for each edge"
            )
    size = len(rows)
    if size >= 3 and numbers and set(widths) == {size}:
        matrix = [[float(field) for field in row] for row in rows]
        turned = [list(column) for column in zip(*matrix, strict=True)]
        loops = any(matrix[i][i] for i in range(size))
        if not loops and (matrix == turned or {x for row in matrix for x in row} <= {0.0, 1.0}):
            raise SourceError(
                f"{path}: {size} rows of {size} numbers are an adjacency matrix: give "
                "lpma.from_scipy(scipy.sparse.csr_array(numpy.loadtxt(path, …))) its numbers, or "
                "write a line for each edge"
            )


def with_numbers(reading: Reading, rows: Rows) -> Reading:
    """The reading, and the columns beside the ends that say which names are integers, as exports
    have them: where there are such columns, vertices go by names."""
    beside = {}
    for end in ("src", "dst"):
        name = f"{reading.columns[reading.places[end]]}_number"
        if reading.header is not None and name in reading.columns:
            place = reading.columns.index(name)
            words = {row[place].strip().lower() for row in rows if place < len(row)}
            if words <= {"true", "false"} and place not in reading.places.values():
                beside[end] = name
    if not beside:
        return reading
    why = reading.why or f"as {next(iter(beside.values()))} says"
    return replace(reading, numbers=beside, named=True, why=why if reading.guessed else "")


def guess_rows(
    path: Path, format: str, rows: Rows, asked: Asked, separator: str | None, line: str
) -> Reading:
    """The reading of a file whose first rows, as text, these are; `line` is the first."""
    ordered = asked.in_order()
    header = _has_header(rows, asked, ordered)
    widths = Counter(len(row) for row in rows[header:] if len(row) > 1) or Counter([len(rows[0])])
    width = max(widths.most_common(1)[0][0], len(rows[0]) if header else 0)
    columns = tuple(name.strip() for name in rows[0]) if header else ()
    if len(columns) == width - 1 and _has_row_names(rows, separator):
        columns = ("row", *columns)
    columns += _numbered(width)[len(columns) :]  # features, say, that a header does not name
    names = _without_mark(rows[0]) if header else None  # which a body may have again
    body = [row for row in rows[header:] if len(row) == width and _without_mark(row) != names]
    unfit: dict[str, tuple[str, str]] = {}
    if ordered is not None:
        places = {name: place for place, name in enumerate(ordered) if name != SKIP}
        if max(places.values(), default=0) >= width and rows:
            width = max(places.values()) + 1
            columns += _numbered(width)[len(columns) :]
        _check_fields(path, [name for name in ordered if name != SKIP])
    else:
        places, unfit = _places(path, columns, body, asked, header)
    places = {field: places[field] for field in FIELDS if field in places}
    ends = [row[places[end]] for row in body for end in ("src", "dst") if places[end] < len(row)]
    named, why, whole = _are_names(ends)
    top = [rows[0][places[end]] for end in ("src", "dst") if places[end] < len(rows[0])]
    may_name = not header and asked.header is None
    may_name = may_name and not are_whole(whole_text(end.strip()) for end in top)
    moments = [row[places["time"]] for row in body if "time" in places]
    times, since = _times(moments), _since(moments)
    values = [row[places["weight"]] for row in body if places.get("weight", width) < len(row)]
    point, thousands = _marks_of(path, columns[places["weight"]] if values else "", values, asked)
    return Reading(
        str(path), format, columns, places, separator,
        header=line.strip() if header else None,
        first=line.strip()[:60] if may_name else None,
        named=named if asked.names is None else asked.names,
        why=why if asked.names is None else "",
        guessed=asked.names is None,
        whole=whole,
        times=times,
        since=since,
        unit=_unit(path, asked, times, since) if "time" in places else None,
        unfit=unfit,
        decimal_point=point,
        thousands=thousands,
        kinds=_kinds(path, columns, places, body, asked),
        bipartite=bool(asked.bipartite),
        chosen=len(ordered or ()),
    )  # fmt: skip


def _has_row_names(rows: Rows, separator: str | None) -> bool:
    """Whether each row begins with its name, above which the header has nothing: so R writes
    tables."""
    body = [row for row in rows[1:] if len(row) == len(rows[0]) + 1]
    numbers = [row[0] for row in body]
    is_full = any(row[-1].strip() for row in body)
    return is_full and (separator == " " or (len(body) > 1 and numbers in _counted(len(body))))


def _without_mark(row: list[str]) -> list[str]:
    return [field.strip() for field in [row[0].lstrip(" #%"), *row[1:]]]


def _numbered(width: int) -> tuple[str, ...]:
    return tuple(f"column {place + 1}" for place in range(width))


def _check_fields(path: Path, named: list[str]) -> None:
    for name in named:
        if named.count(name) > 1:
            raise SourceError(f"{path}: columns {', '.join(named)}: only one can be the {name}")
    if not {"src", "dst"} <= set(named) <= set(FIELDS):
        raise SourceError(
            f"{path}: columns {', '.join(named)}: src and dst are needed, others are "
            f"{', '.join(FIELDS[2:])}, and '{SKIP}' skips one: say which they are, as in "
            "columns='src dst weight'"
        )


# -- fields of lines, and of numbers ---------------------------------------------------------------


def _split(lines: list[str], separator: str | None) -> Rows:
    """Lines as fields."""
    if separator is None:
        return [line.split() for line in lines]
    try:
        return [row for row in csv.reader(lines, delimiter=separator, skipinitialspace=True) if row]
    except csv.Error as error:
        raise SourceError(f"a line cannot be cut into fields: {error}") from error


def _separator_of(format: str, lines: list[str]) -> str | None:
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
            rows = _split(lines, candidate)
        except SourceError:
            continue
        evenness, width = _evenness(rows), len(max(rows, key=len, default=[]))
        if width > 1 and evenness > 0.5 and (best is None or evenness > best[0] + 0.1):
            best = evenness, width, candidate
    if best is not None:
        return best[2]
    return None if format == "text" or _evenness(blanks) == 1 else _CANDIDATES[format][0]


def _are_quoted_between_blanks(lines: list[str]) -> bool:
    """Whether single blanks separate fields of which some are quoted, as R writes tables."""
    if not any(_QUOTED.search(line) for line in lines) or any("  " in line for line in lines):
        return False
    rows = _split(lines, " ")
    return _evenness(rows[1:] or rows) > 0.9


def _beside_decimal_commas(lines: list[str]) -> tuple[str | None] | None:
    """What separates the fields if all commas are within numbers, as in `ann;bob;3,5`."""
    for candidate in ("\t", ";", "|", None):
        try:
            rows = _split(lines, candidate)
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


def _marks_of(path: object, column: str, weights: list[str], asked: Asked) -> tuple[str, str]:
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


# -- the header -----------------------------------------------------------------------------------


def _has_header(rows: Rows, asked: Asked, ordered: list[str] | None) -> bool:
    if asked.header is not None:
        return asked.header
    first, rest = rows[0], rows[1:]
    if ordered is None and ({"src", "dst"} <= places_by_alias(first).keys() or either_way(first)):
        return True
    if are_numbers(field for field in first if field.strip()):
        return False
    lowered = {field.strip().lower() for field in first}
    wanted = asked.by_field().values()
    if any(not is_number(name) and str(name).lower() in lowered for name in wanted):
        return True
    if any(map(_is_value, first)):
        return not rest and ordered is not None
    for place, field in enumerate(first):
        below = [row[place] for row in rest if place < len(row)]
        if field.strip() and not _is_value(field) and below:
            values = sum(map(_is_value, below))
            if values > 0.9 * len(below):
                return True
    return not rest and ordered is not None and not are_numbers(first[: len(ordered)])


def _is_value(field: str) -> bool:
    """Whether this is a number or a date, which no column is called."""
    return are_numbers([field.replace(",", ".")]) or is_date(field)


# -- the columns ----------------------------------------------------------------------------------


def _places(
    path: Path, columns: tuple[str, ...], body: Rows, asked: Asked, header: bool
) -> tuple[dict[str, int], dict[str, tuple[str, str]]]:
    """The column of each field, and `Reading.unfit`."""
    wanted = asked.by_field()
    exactly = asked.columns is not None
    by_name = [name for name in wanted.values() if not is_number(name) and name != "none"]
    if by_name and not header:
        raise SourceError(
            f"{path}: has no header that names {by_name[0]!r}: give columns by their number, 1 to "
            f"{len(columns)}; its first row is {', '.join(map(repr, (body or [['']])[0]))}"
        )
    given = {
        field: place_of(path, columns, name, field)
        for field, name in wanted.items()
        if name != "none" or "none" in columns
    }
    guessed: dict[str, int] = {}
    if header and not exactly:
        guessed = places_by_alias(columns)
        pair = either_way(columns)
        free = [i for i in range(len(columns)) if i not in {*guessed.values(), *given.values()}]
        if pair is not None and not {"src", "dst"} <= given.keys():
            raise SourceError(_either_way(path, *pair))
        is_of_vertices = not VERTEX_IDS.isdisjoint(plain_names(columns[:1]))
        if len(free) == 2 and not is_of_vertices and not {"src", "dst"} & {*guessed, *given}:
            guessed |= {"src": free[0], "dst": free[1]}  # the others are known
    elif not exactly:
        guessed = _by_number(body, len(columns))
    if given:  # who names columns says which are read
        guessed = {end: place for end, place in guessed.items() if end in ("src", "dst")}
    for end in ("src", "dst"):
        place = guessed.get(end)
        if place is None or f"{columns[place]}_number" in columns:  # an export's are vertices
            continue
        if not _fit_ends([row[place] for row in body]):
            del guessed[end]
    unfit = {}
    for field in ("weight", "time"):  # a column that holds something else is not what it is called
        place = guessed.get(field)
        if place is not None and not _fits(field, [row[place] for row in body], header):
            del guessed[field]
            values = [row[place] for row in body if row[place].strip()]
            if header and field not in wanted and values:
                unfit[columns[place]] = (field, values[0])
    places = {**guessed}
    for field in given:
        places = {f: place for f, place in places.items() if place != given[field]}
    places |= given
    for field, name in wanted.items():
        if name == "none" and "none" not in columns:
            places.pop(field, None)
    if not {"src", "dst"} <= places.keys():
        raise SourceError(_which(path, columns, header, body))
    if places["src"] == places["dst"]:
        raise SourceError(f"{path}: source and target are one column, {columns[places['src']]!r}")
    return places, unfit


def _which(path: Path, columns: tuple[str, ...], header: bool, body: Rows) -> str:
    if len(columns) < 2:
        return f"{path}: it has one column, and an edge needs two, source and target"
    if header:
        listed = f"the columns are {', '.join(map(repr, columns))}"
    else:
        listed = f"there are {len(columns)} columns and no header, and the first row is "
        listed += ", ".join(repr(field[:40]) for field in (body or [[]])[0])
    return (
        f"{path}: which columns are source and target? Say --source and --target "
        f"(source= and target=), by name or by number; {listed}"
    )


def _either_way(path: Path, one: str, other: str) -> str:
    return (
        f"{path}: which of {one} and {other} is the source? Both orders are in use: say --source "
        f"{one} --target {other}, or --source {other} --target {one} (source= and target=)"
    )


def _by_number(body: Rows, width: int) -> dict[str, int]:
    """The fields by the number of their columns, if each column holds what it would be. Columns
    that are empty are none."""
    columns = [[row[place].strip() for row in body] for place in range(width)]
    used = [place for place in range(width) if any(columns[place])]
    if not 2 <= len(used) <= 4:
        return {}
    places = {"src": used[0], "dst": used[1]}
    more = [columns[place] for place in used[2:]]
    times = [_fits("time", values, False) and _are_times(values) for values in more]
    weights = [_fits("weight", values, False) for values in more]
    if more and _rises_since_1970(columns[used[0]]) and not times[0]:
        return {}  # a time, and then the ends
    if len(more) == 1:
        role = "time" if times[0] else "weight" if weights[0] else None
        return {} if role is None else places | {role: used[2]}
    if len(more) == 2:
        given = [value for value in more[1] if value]
        whole = sum(are_whole([value]) for value in given) >= 0.9 * len(given) or times[1]
        if times[0] and weights[1] and not times[1]:
            return places | {"time": used[2], "weight": used[3]}
        return places | {"weight": used[2], "time": used[3]} if weights[0] and whole else {}
    return places


def _are_times(values: list[str]) -> bool:
    values = [value for value in values if value]
    numbers = [float(value) for value in values if _is_float(value)]
    return _times(values) == "dates" or min(numbers, default=0.0) >= SINCE_1970


def _rises_since_1970(values: list[str]) -> bool:
    """Whether these look like times in order."""
    values = [value for value in values if value]
    if len(values) < 2 or not are_whole(values):
        return False
    times = list(map(int, values))
    return times[0] >= 10 * SINCE_1970 and times == sorted(times) and times[-1] < 1.5 * times[0]


def _fit_ends(values: list[str]) -> bool:
    """Whether these may be vertices: not dates, not fractions, not several numbers."""
    values = [value for value in values if value.strip()]
    other = sum(is_date(v) or (are_numbers(v.split()) and not _is_vertex(v)) for v in values)
    return not values or other < 0.9 * len(values)


def _is_vertex(value: str) -> bool:
    return DECIMALS.fullmatch(whole_text(value.strip())) is not None or are_whole([value])


def _fits(field: str, values: list[str], header: bool) -> bool:
    """Whether a column may be this field: of one that is called so any value may say it, and the
    others are bad lines; else most must. An empty one is nothing."""
    values = [value for value in values if value.strip() not in ("", MISSING)]
    if field == "time":
        fitting = sum(is_date(value) or _is_float(value) for value in values)
    else:
        fitting = sum(_is_float(re.sub("[.,' ]", "", value)) for value in values)
    return bool(values) and (fitting > 0 if header else fitting >= 0.9 * len(values))


def _is_float(value: str) -> bool:
    """Whether this is meant as a number, NaN too."""
    try:
        float(value.replace("_", "?"))
    except ValueError:
        return False
    return True


def _times(values: list[str]) -> Times:
    values = [value for value in values if value.strip()]
    numbers = [value for value in values if _is_float(value)]
    if sum(map(is_date, values)) > len(numbers) or (values and not numbers):
        return "dates"
    return "whole" if are_whole(numbers) else "decimal"


def _since(values: list[str]) -> tuple[str, str] | None:
    """The unit that numbers among these are in, if all may be times since 1970, and the first of
    them."""
    values = [value.strip() for value in values if are_numbers([value])]
    numbers = list(map(float, values))
    for unit, (least, _) in UNITS.items():
        if values and all(least <= number < 1000 * least for number in numbers):
            return unit, values[0]
    return None


def _unit(path: Path, asked: Asked, times: Times, since: tuple[str, str] | None) -> str | None:
    """The unit of times that are numbers, if it was said; "auto": by their size."""
    if asked.fields.time_unit is None or times == "dates":
        return None
    if asked.fields.time_unit != "auto":
        return asked.fields.time_unit
    if since is None:
        raise SourceError(
            f"{path}: the first times are not all since 1970 in one unit, s, ms, us or ns: say "
            "which with --time-unit (time_unit=)"
        )
    return since[0]


# -- kinds ----------------------------------------------------------------------------------------


def _kinds(
    path: Path, columns: tuple[str, ...], places: dict[str, int], body: Rows, asked: Asked
) -> dict[str, int]:
    """What the words of the column of kinds mean. Raises SourceError if they mean nothing."""
    if "kind" not in places:
        return {}
    ours = {**UPDATE_KINDS, "insert": UPDATE_KINDS["append"]}
    numbers = {str(int(kind)): kind for kind in ours.values()}
    known = {word: int(kind) for word, kind in (ours | numbers).items()}
    known |= {word.lower(): known[kind] for word, kind in asked.fields.kinds.items()}
    found = {row[places["kind"]].strip(): None for row in body}
    other = [word for word in found if word and word.lower() not in known]
    if other and len(other) > TEXT_SHARE * len(found):
        raise SourceError(
            f"{path}: column {columns[places['kind']]} has {', '.join(map(repr, other[:5]))}; "
            f"kinds are {', '.join(known)}: say what each means, as in --kind-map "
            f"{other[0]}=insert (kinds=)"
        )
    return known


# -- names ----------------------------------------------------------------------------------------


def _are_names(ends: list[str]) -> tuple[bool, str, bool]:
    """Whether these values of source and target are names, and why; and whether all are whole
    numbers of which some are written as 2.0 or 1e+05. A few that are no integers do not make them
    names: they may be what is wrong with the file. "007" is none: as a number it would be the
    vertex 7."""
    given = [end.strip() for end in ends if end.strip() not in ("", MISSING)]
    ends = [whole_text(end) for end in given]
    texts = [end for end in ends if not DECIMALS.fullmatch(end)]
    if texts and len(texts) >= TEXT_SHARE * len(ends):
        plain = len(texts) > len(ends) / 2 and not _is_float(texts[0])
        return True, "" if plain else f"such as {texts[0][:40]!r}", False
    whole = ends != given
    outside = [end for end in ends if DECIMALS.fullmatch(end) and not 0 <= int(end) <= MAX_VERTEX]
    if outside and len(outside) >= TEXT_SHARE * len(ends):
        return True, f"since {outside[0][:40]} is not a number from 0 to {MAX_VERTEX}", whole
    return False, "", whole
