"""Runs a page of Markdown as its reader would: its blocks in order, in one folder, line by line.

    ```python   all of a page in one namespace; what stands behind `# →` on the last line of an
                expression is compared with its value
    ```sh       all in one shell, which ends where a command fails
    ```text     directly below one of these: what that prints; "..." stands for anything

A comment directly above a block, which readers do not see, says what else is to be known of it:

    <!-- needs: kafka, serve -->      extras, libraries, gpu, a dataset: run where they are there,
                                      and where no other extra and none of these libraries is
    <!-- not run: the reason -->

Blocks indented by four spaces are refused, since their language is not said.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import os
import queue
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from markdown_it import MarkdownIt

from tests.support.hidden import VARIABLE, hidden, without, write_hook

ROOT = Path(__file__).parents[2]
RUN = ("python", "sh")
BROKER = "localhost:9092"  # as pages call it
TIMEOUT_S = 300
_COMMENT = re.compile(r"<!-- (needs|not run): (.+?) -->\s*", re.DOTALL)
_VALUE = re.compile(r"#\s*→\s*(.*)$")
_OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
_DONE = "the block is done"


@dataclass
class Block:
    """A block that is run, or that says why not."""

    language: str
    text: str
    line: int  # of its text, from 1 on
    needs: frozenset[str] = frozenset()
    not_run: str | None = None
    prints: str | None = None


def blocks(text: str) -> list[Block]:
    """The Python and shell blocks of a page, in order. Raises AssertionError on a comment that
    belongs to none, and on indented blocks."""
    found: list[Block] = []
    comment: re.Match[str] | None = None
    follows = False  # whether the token before was a block of ours
    for token in MarkdownIt().parse(text):
        line = token.map[0] + 1 if token.map else 0
        assert token.type != "code_block", f"line {line}: an indented block; fence it"
        if token.type == "html_block" and (match := _COMMENT.fullmatch(token.content)):
            assert comment is None, f"line {line}: two comments above one block"
            comment = match
            follows = False
            continue
        language = (token.info.split() or [""])[0] if token.type == "fence" else ""
        if language in RUN:
            block = Block(language, token.content, line + 1)
            if comment:
                said = " ".join(comment[2].split())
                if comment[1] == "needs":
                    block.needs = frozenset(said.split(", "))
                else:
                    block.not_run = said
            found.append(block)
        else:
            assert comment is None, f"line {line}: the comment above is of no block that is run"
            if language == "text" and follows:
                found[-1].prints = token.content
        comment, follows = None, language in RUN
    return found


def agrees(expected: str, found: str) -> bool:
    return doctest.OutputChecker().check_output(
        expected.strip() + "\n", found.strip() + "\n", _OPTIONS
    )


class Reader:
    """Reads a page: a namespace and a shell, in `folder`. A context manager, which ends the shell
    and whatever still runs in it."""

    def __init__(self, page: Path, folder: Path, broker: str = BROKER) -> None:
        self.page, self.folder, self.broker = page, folder, broker
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self._shell: subprocess.Popen[str] | None = None
        self._lines: queue.Queue[str | None] = queue.Queue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self._shell is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._shell.pid, signal.SIGKILL)
            self._shell.wait()

    def run(self, block: Block) -> None:
        """Raises whatever the block raises, and AssertionError where it does not do as it says."""
        text = block.text.replace(BROKER, self.broker)
        absent = without(block.needs)
        if block.language == "python":
            with hidden(absent):
                printed = self._python(text, block)
        else:
            printed = self._sh(f"export {VARIABLE}='{' '.join(sorted(absent))}'\n{text}", block)
        if block.prints is not None:
            assert agrees(block.prints, printed), (
                f"{self.page.name}:{block.line}: it prints\n{printed}\nand not\n{block.prints}"
            )

    def _python(self, text: str, block: Block) -> str:
        printed = io.StringIO()
        shifted = "\n" * (block.line - 1) + text  # so that tracebacks have the page's lines
        lines = shifted.split("\n")
        with contextlib.redirect_stdout(printed):
            for node in ast.parse(shifted).body:
                told = _VALUE.search(lines[(node.end_lineno or 0) - 1])
                where = f"{self.page.name}:{node.lineno}"
                if not isinstance(node, ast.Expr):
                    assert told is None, f"{where}: an arrow behind what has no value"
                    exec(compile(ast.Module([node], []), self.page, "exec"), self.names)
                    continue
                value = eval(compile(ast.Expression(node.value), self.page, "eval"), self.names)
                if told is not None:
                    assert agrees(told[1], repr(value)), f"{where}: it is {value!r}"
        return printed.getvalue()

    def _sh(self, text: str, block: Block) -> str:
        shell = self._shell or self._start()
        script = self.folder / ".block"
        script.write_text(text)
        assert shell.stdin is not None
        shell.stdin.write(f". ./.block < /dev/null; printf '\\n{_DONE}\\n'\n")
        shell.stdin.flush()
        printed = ""
        while True:
            line = self._lines.get(timeout=TIMEOUT_S)
            assert line is not None, f"{self.page.name}:{block.line} failed:\n{printed}"
            if line == f"{_DONE}\n":
                return printed
            printed += line

    def _start(self) -> subprocess.Popen[str]:
        """A shell in which `lpma` and `python` are those of this checkout."""
        tools = self.folder / ".bin"
        tools.mkdir()
        write_hook(tools)
        for name, call in (("python", ""), ("lpma", " -c 'from ingest.cli import main; main()'")):
            tool = tools / name
            tool.write_text(f'#!/bin/sh\nexec "{sys.executable}"{call} "$@"\n')
            tool.chmod(0o755)
        environment = os.environ | {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": f"{tools}{os.pathsep}{ROOT}",
            "COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1",
        }  # fmt: skip
        self._shell = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-e"], cwd=self.folder, env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            start_new_session=True,
        )  # fmt: skip
        threading.Thread(target=self._read, args=(self._shell,), daemon=True).start()
        return self._shell

    def _read(self, shell: subprocess.Popen[str]) -> None:
        for line in self._output(shell):
            self._lines.put(line)
        self._lines.put(None)

    @staticmethod
    def _output(shell: subprocess.Popen[str]) -> Iterator[str]:
        assert shell.stdout is not None
        yield from shell.stdout
