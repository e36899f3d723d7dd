"""What pages, docstrings and comments refer to is there: files by their names, modules and names of
ours by their dotted ones, targets of `make`, and links."""

from __future__ import annotations

import ast
import builtins
import importlib
import io
import re
import subprocess
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.util import find_spec

from .sources import ROOT, source

ROOMS = ("lpma", "algorithms", "ingest", "benchmarks", "tests")
ENDINGS = ("py", "cu", "cuh", "md", "toml", "xml", "yaml", "c")
# Files that a user or a command makes, patterns of names, words of a grammar, and a logger.
NOT_OURS = {"own.py", "stream.toml", "bench.json", "NAME.cu", "NAME.py", "lpma.ingest"}
NOT_OURS |= {"NAME_file", "name_number", "column_crc", "lpma.x.y"}
# Names of other projects and tools.
NOT_OURS |= {"MADV_POPULATE_WRITE", "copytruncate", "memcheck", "plotly.min.js", "racecheck"}
NOT_OURS |= {"sha256sum"}
# What a cache holds and a user's file is called, and the keys of an archive's metadata.
NOT_OURS |= {"lpma/kafka-VERSION", "lpma.names.csv"}
NOT_OURS |= {f"lpma.{key}" for key in ("cursor", "directed", "rows", "vertices", "version", "time")}
NOT_OURS |= {"networkx.backend_info", "numba.core.compiler_lock"}
_FILE = re.compile(rf"(?<![\w*.{{}}<>-])((?:[\w-]+/)*[\w-]+\.(?:{'|'.join(ENDINGS)}))(?![\w/(-])")
_QUOTED = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)*)(?:\(.*?\))?`")
_DOTTED = re.compile(r"(?:lpma|algorithms|ingest|benchmarks)(?:\.\w+)+")
_FOLDER = re.compile(rf"(?<![\w*/.-])((?:{'|'.join(ROOMS)})(?:/[\w-]+)+)/?(?![\w*/{{<-]|\.\w)")
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_TARGET = re.compile(r"`make ([\w-]+)")
_WORD = re.compile(r"[A-Za-z_]\w*")


@cache
def files() -> frozenset[str]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    ).stdout.split()  # fmt: skip
    found = listed or [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
    return frozenset(name for name in found if (ROOT / name).is_file())


@cache
def tails() -> frozenset[str]:
    """Every file by each tail of its path."""
    paths = (name.split("/") for name in files())
    return frozenset("/".join(path[i:]) for path in paths for i in range(len(path)))


def sources() -> list[str]:
    return sorted(
        n for n in files() if n.split("/")[0] in ROOMS and n.endswith((".py", ".cu", ".cuh"))
    )


def pages() -> list[str]:
    return sorted(name for name in files() if name.endswith(".md"))


@cache
def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@cache
def tokens(name: str) -> list[tokenize.TokenInfo]:
    """The comments, names and strings of a source."""
    kept = tokenize.COMMENT, tokenize.NAME, tokenize.STRING
    found = tokenize.generate_tokens(io.StringIO(text_of(name)).readline)
    return [token for token in found if token.type in kept]


@cache
def prose(name: str) -> list[tuple[int, str]]:
    """(line, text) of what a reader reads: a page, or the docstrings and comments of a source."""
    return list(_prose(name))


def _prose(name: str) -> Iterator[tuple[int, str]]:
    text = text_of(name)
    if name.endswith(".md"):
        yield from enumerate(text.splitlines(), 1)
    elif name.endswith(".py"):
        for node in statements(source(name).tree):
            if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Constant):
                continue
            if isinstance(node.value.value, str):
                yield from enumerate(node.value.value.splitlines(), node.lineno)
        for token in tokens(name):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
    else:
        for number, line in enumerate(text.splitlines(), 1):
            if "//" in line:
                yield number, line[line.index("//") :]


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """All statements of a tree; looking into expressions would take twice the time."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, field, ()):
            if isinstance(node, ast.stmt):
                yield node
            yield from statements(node)


def is_there(reference: str, name: str) -> bool:
    """Whether a file that `name` refers to exists: beside it, in a folder above, or anywhere by a
    tail of its path."""
    return reference in tails() or (ROOT / name).parent.joinpath(reference).is_file()


def mentions(pattern: re.Pattern[str], names: Iterable[str]) -> Iterator[tuple[str, int, str]]:
    """(file, line, what is mentioned there), for each match of a pattern in prose."""
    for name in names:
        for line, text in prose(name):
            for found in pattern.findall(text):
                if found not in NOT_OURS:
                    yield name, line, found


@cache
def resolves(dotted: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one, of a class's too. What needs CuPy
    or Kafka to be imported counts where its module's file is there."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        try:
            if find_spec(module) is None:
                continue
        except ModuleNotFoundError:
            continue
        try:
            value: object = importlib.import_module(module)
        except Exception:  # noqa: BLE001  (without CuPy or kafka-python)
            return True
        for attribute in parts[length:]:
            annotated = getattr(value, "__annotations__", {})
            if not hasattr(value, attribute) and attribute not in annotated:
                return False
            value = getattr(value, attribute, None)
        return True
    return False


@cache
def words_of_code() -> frozenset[str]:
    """Every word of the code: names, and words within strings that are no docstrings."""
    words: set[str] = set(dir(builtins))
    for name in sources():
        text = text_of(name)
        read = {line for line, _ in prose(name)}
        if not name.endswith(".py"):
            words.update(_WORD.findall(re.sub(r"//.*", "", text)))
            continue
        words.update(part for part in name.removesuffix(".py").split("/"))
        for token in tokens(name):
            if token.type == tokenize.NAME:
                words.add(token.string)
            elif token.type == tokenize.STRING and token.start[0] not in read:
                words.update(_WORD.findall(token.string))
                words.add(token.string.strip("\"'"))
    for name in files():
        if name.endswith((".toml", "Makefile", ".yaml")):
            words.update(_WORD.findall((ROOT / name).read_text(encoding="utf-8")))
    return frozenset(words)


def names(asked: list[str]) -> Iterator[str]:
    """`lpma.x.y` resolves, quoted or not; of any other `name`, each part is a word of the code."""
    for name, line, dotted in mentions(_DOTTED, asked):
        if not resolves(dotted) and not is_there(dotted, name):  # ingest.py is a file
            yield f"{name}:{line}: there is no {dotted}"
    for name, line, quoted in mentions(_QUOTED, asked):
        if _DOTTED.fullmatch(quoted) or quoted in words_of_code() or is_there(quoted, name):
            continue
        if not all(part in words_of_code() or part.isdigit() for part in quoted.split(".")):
            yield f"{name}:{line}: there is no `{quoted}`"


def paths(asked: list[str]) -> Iterator[str]:
    """Files and folders that are named exist, but for pages that are made when they are built."""
    for name, line, file in mentions(_FILE, asked):
        if not (is_there(file, name) or file.startswith("generated/")):
            yield f"{name}:{line}: there is no file {file}"
    for name, line, folder in mentions(_FOLDER, asked):
        if not (ROOT / folder).exists() and not is_there(folder, name):
            yield f"{name}:{line}: there is no folder {folder}"


def links(asked: list[str]) -> Iterator[str]:
    """What is linked to exists, and so does each target of `make`."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    for name, line, target in mentions(_TARGET, asked):
        if target not in targets:
            yield f"{name}:{line}: there is no target {target} to make"
    for name, line, link in mentions(_LINK, [name for name in asked if name.endswith(".md")]):
        is_ours = not link.startswith(("http://", "https://"))
        if is_ours and not (ROOT / name).parent.joinpath(link).exists():
            yield f"{name}:{line}: the link {link} leads nowhere"


def problems() -> Iterator[str]:
    """Of all pages and sources. Names may be gone that the changelog tells of."""
    asked = [*pages(), *sources()]
    yield from paths(asked)
    yield from names([name for name in asked if name != "CHANGELOG.md"])
    yield from links(asked)
