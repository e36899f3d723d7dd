"""Notes the calls of a function, in the order in which they begin beside what else a test notes."""

from __future__ import annotations

from typing import Any

import pytest


def note_calls(monkeypatch: pytest.MonkeyPatch, happened: list[str], owner: Any, name: str) -> None:
    """Append the name of this attribute of `owner` to `happened` at each call of it."""
    function = getattr(owner, name)

    def noted(*given: Any) -> Any:
        happened.append(name)
        return function(*given)

    monkeypatch.setattr(owner, name, noted)
