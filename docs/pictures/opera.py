"""A mixed batch in two passes: queries over updates that lie beside the stored edge, then those."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import lpma
from pictures.ink import Ink, canvas

# What happens to the edge 1→2, which is stored with weight 1, at each place of the batch.
BATCH = ("insert +2", "edge?", "delete", "edge?", "insert +5", "edge?")


def answers() -> list[float | None]:
    """What the store answers at each query: the weight, or None."""
    g = lpma.Graph(device="cpu")
    g.insert(1, 2, weight=1.0)
    batch = lpma.Batch()
    asked = []
    for operation in BATCH:
        if operation == "edge?":
            asked.append(batch.edge(1, 2))
        elif operation == "delete":
            batch.delete(1, 2)
        else:
            batch.insert(1, 2, float(operation.split("+")[1]))
    found = [g.apply(batch)] * len(asked)
    return [
        float(answer[q].weights[0]) if answer[q].found[0] else None
        for answer, q in zip(found, asked, strict=True)
    ]


def draw(ink: Ink) -> Figure:
    figure, axes = canvas(7.6, 3.1)
    told = iter(answers())
    axes.text(0, -0.7, "The batch, in order", weight="bold")
    axes.text(0, 3.0, "First the updates lie, sorted, beside the stored edge", weight="bold")
    axes.text(0, 6.3, "All queries run in parallel: each takes the updates before its place",
              weight="bold")  # fmt: skip
    box(axes, 0, 3.5, "stored\n1→2, weight 1", ink.held, ink)
    for i, operation in enumerate(BATCH):
        x = 3.4 + 3.4 * i
        query = operation == "edge?"
        box(axes, x, -0.2, f"{i + 1}: {operation}", ink.empty if query else ink.new, ink)
        if query:
            weight = next(told)
            said = "no edge" if weight is None else f"weight {weight:g}"
            box(axes, x, 7.8, said, ink.empty, ink)
            axes.plot([1.4, x + 1.4], [6.8, 6.8], color=ink.faint, linewidth=1)
            axes.annotate("", (x + 1.4, 7.7), (x + 1.4, 6.7),
                          arrowprops={"arrowstyle": "-|>", "color": ink.faint})  # fmt: skip
        else:
            box(axes, x, 3.5, f"place {i + 1}\n{operation}", ink.new, ink)
    axes.set_xlim(-0.2, 3.4 * (len(BATCH) + 1))
    axes.set_ylim(9.7, -1.4)
    return figure


def box(axes: Axes, x: float, y: float, text: str, fill: str, ink: Ink) -> None:
    axes.add_patch(Rectangle((x, y), 2.8, 1.7, facecolor=fill, edgecolor=ink.text, linewidth=1))
    colour = ink.text if fill == ink.empty else ink.on_fill
    axes.text(x + 1.4, y + 0.85, text, ha="center", va="center", fontsize=8.5, color=colour)
