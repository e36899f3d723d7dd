"""Small tables and bar charts as HTML, for notebooks. Everything is escaped, and drawn in the
notebook's own colours, so that light and dark themes both show it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

BAR_WIDTH, BAR_GAP, HEIGHT, LABEL_HEIGHT = 18, 4, 60, 14


def page(title: str, rows: Sequence[tuple[str, str]], charts: Sequence[str]) -> str:
    """A title, a table of two columns, and beside it what `chart` drew, if there is room."""
    lines = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    shown = "".join(f"<div>{drawn}</div>" for drawn in charts if drawn)
    return (
        f"<div><strong>{escape(title)}</strong>"
        '<div style="display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start">'
        f"<table>{lines}</table>{shown}</div></div>"
    )


def chart(title: str, bars: Sequence[tuple[str, float, str]]) -> str:
    """Bars as an inline SVG, "" if there are none. bars: (label, height from 0 to 1, hint)."""
    if not bars:
        return ""
    step = BAR_WIDTH + BAR_GAP
    width = max(step * len(bars), 160)
    drawn = []
    for i, (label, height, told) in enumerate(bars):
        pixels = max(HEIGHT * height, 1.0 if height > 0 else 0.0)
        x, y = i * step, LABEL_HEIGHT + HEIGHT - pixels
        drawn.append(
            f'<rect x="{x}" y="{y:.1f}" width="{BAR_WIDTH}" height="{pixels:.1f}" '
            f'fill="currentColor" fill-opacity="0.55"><title>{escape(told)}</title></rect>'
            f'<text x="{x + BAR_WIDTH / 2:g}" y="{LABEL_HEIGHT + HEIGHT + 11}" font-size="9" '
            f'text-anchor="middle" fill="currentColor">{escape(label)}</text>'
        )
    total = HEIGHT + 2 * LABEL_HEIGHT
    base = LABEL_HEIGHT + HEIGHT
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{total}" '
        f'viewBox="0 0 {width} {total}" role="img" aria-label="{escape(title)}">'
        f'<text x="0" y="10" font-size="10" fill="currentColor">{escape(title)}</text>'
        f"{''.join(drawn)}"
        f'<line x1="0" y1="{base}" x2="{width}" y2="{base}" stroke="currentColor" '
        'stroke-opacity="0.4"/></svg>'
    )
