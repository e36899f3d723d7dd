"""What lpma is, in one picture: the README's and the first page's.

`python -m pictures.overview` in docs/ writes the two that the README shows, and a test tells when
they are no longer what this draws.
"""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pictures import ink as inks
from pictures.ink import Ink, canvas
from pictures.small_store import SLOTS

STREAM = ("insert 3→7", "insert 1→4", "neighbours of 1?", "delete 3→7", "insert 2→6")
OUT = (
    ("answers", "each at its place in the stream"),
    ("snapshots", "CSR arrays for algorithms"),
    ("checkpoints", "kill it, and nothing is lost"),
)


def draw(ink: Ink) -> Figure:
    figure, axes = canvas(7.6, 2.4)
    axes.text(4, -0.55, "a stream of operations", ha="center", weight="bold")
    for i, operation in enumerate(STREAM):
        query = operation.endswith("?")
        box(axes, 0, 1.25 * i, 8, operation, ink.empty if query else ink.new, ink)
    arrow(axes, 8.4, 10.6, 2.9, ink)
    store(axes, 11.2, ink)
    for i, (name, said) in enumerate(OUT):
        y = 0.35 + 2.0 * i
        arrow(axes, 28.2, 30.4, y + 0.75, ink)
        axes.text(30.9, y + 0.6, name, weight="bold")
        axes.text(30.9, y + 1.45, said, fontsize=8)
    axes.set_xlim(-0.2, 44)
    axes.set_ylim(6.7, -1.3)
    return figure


def store(axes: Axes, x: float, ink: Ink) -> None:
    axes.text(x + 8.2, -0.55, "a leveled packed-memory array", ha="center", weight="bold")
    for level, filled in enumerate(((3,), (2,), (3, 2), (4, 2, 3, 4))):
        y = 1.5 * level
        for offset, count in enumerate(filled):
            for slot in range(SLOTS):
                place = (x + 0.4 + offset * SLOTS + slot, y)
                fill = ink.held if slot < count else ink.empty
                axes.add_patch(Rectangle(place, 1, 1.15, facecolor=fill, edgecolor=ink.faint,
                                         linewidth=0.5))  # fmt: skip
            axes.add_patch(Rectangle((x + 0.4 + offset * SLOTS, y), SLOTS, 1.15,
                                     facecolor="none", edgecolor=ink.text))  # fmt: skip


def box(axes: Axes, x: float, y: float, width: float, text: str, fill: str, ink: Ink) -> None:
    axes.add_patch(Rectangle((x, y), width, 1.0, facecolor=fill, edgecolor=ink.text, linewidth=0.8))
    colour = ink.text if fill == ink.empty else ink.on_fill
    axes.text(x + width / 2, y + 0.53, text, ha="center", va="center", fontsize=8, color=colour)


def arrow(axes: Axes, start: float, end: float, y: float, ink: Ink) -> None:
    axes.annotate("", (end, y), (start, y), arrowprops={"arrowstyle": "-|>", "color": ink.text})


def write(folder: Path) -> None:
    for ink in (inks.LIGHT, inks.DARK):
        inks.save(draw, ink, folder / f"overview-{ink.name}.svg")


if __name__ == "__main__":
    write(Path(__file__).parents[1])
