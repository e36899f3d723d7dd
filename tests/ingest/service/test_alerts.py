"""Rules over a stream's figures: what they say, and when they fire."""

from __future__ import annotations

import pytest

from ingest.errors import PipelineError
from ingest.service.sampling import Alerts, parse_rule


@pytest.mark.parametrize(
    "text, figures, holds",
    [
        ("lag > 1000", {"lag": 1001}, True),
        ("lag > 1000", {"lag": 1000}, False),
        ("lag>=1000", {"lag": 1000}, True),
        (" rate < 0.5 ", {"rate": 0}, True),
        ("dead_letters != 0", {"dead_letters": 0}, False),
        ("lag_growing == true", {"lag_growing": True}, True),
        ("lag_growing == false", {"lag_growing": True}, False),
        ("lag <= 1e3", {"lag": None}, False),
        ("lag != 0", {}, False),
    ],
)
def test_what_a_rule_says(text: str, figures: dict[str, object], holds: bool) -> None:
    assert parse_rule(text).holds(figures) is holds


@pytest.mark.parametrize(
    "text", ["", "lag", "lag >", "lag > much", "lag > nan", "lag > inf", "lag => 3", "Lag > 3",
             "size > 3", "lag > 3 and rate < 1", "3 < lag"],
)  # fmt: skip
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(PipelineError, match="alert"):
        parse_rule(text)


def test_a_figure_that_the_stream_keeps_may_be_named() -> None:
    with pytest.raises(PipelineError, match="names are lag,"):
        parse_rule("triangles > 10")
    assert str(parse_rule("triangles > 10", ["triangles"])) == "triangles > 10"


def test_a_rule_fires_when_it_becomes_true() -> None:
    rule = parse_rule("lag > 10")
    alerts = Alerts([rule])
    fired = [alerts.look({"lag": lag}) for lag in (5, 11, 12, 9, None, 13)]
    assert fired == [[], [rule], [], [], [], [rule]]
    assert alerts.true == ["lag > 10"]
