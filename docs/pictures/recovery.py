"""What a resume begins with: checkpoint, journal and log, and what each of them holds."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pictures.ink import Ink, canvas

BATCHES = 7
CHECKPOINT, READ = 3, 6  # after so many batches


def draw(ink: Ink) -> Figure:
    figure, axes = canvas(7.6, 2.9)
    rows = {"log": 0.0, "journal": 2.2, "checkpoint": 4.4}
    texts = {
        "log": "the records, in Kafka or in a file",
        "journal": "which records each batch had, and when",
        "checkpoint": "graph, positions and names",
    }
    for name, y in rows.items():
        axes.text(-0.3, y + 0.45, name, ha="right", weight="bold")
        axes.text(-0.3, y + 1.1, texts[name], ha="right", fontsize=7.5)
    for i in range(BATCHES):
        read = i < READ
        axes.add_patch(Rectangle((2 * i, 0), 1.9, 1.2, facecolor=ink.held if read else ink.empty,
                                 edgecolor=ink.text))  # fmt: skip
        axes.text(2 * i + 0.95, 0.62, f"batch {i + 1}" if read else "unread", ha="center",
                  va="center", fontsize=8, color=ink.on_fill if read else ink.text)  # fmt: skip
        if CHECKPOINT <= i < READ:
            axes.add_patch(Rectangle((2 * i, 2.2), 1.9, 1.2, facecolor=ink.new, edgecolor=ink.text))
            axes.text(2 * i + 0.95, 2.82, f"cut {i + 1}", ha="center", va="center", fontsize=8,
                      color=ink.on_fill)  # fmt: skip
    axes.add_patch(Rectangle((0, 4.4), 2 * CHECKPOINT - 0.1, 1.2, facecolor=ink.moved,
                             edgecolor=ink.text))  # fmt: skip
    axes.text(CHECKPOINT - 0.05, 5.02, f"the graph after batch {CHECKPOINT}", ha="center",
              va="center", fontsize=8, color=ink.on_fill)  # fmt: skip
    axes.plot([2 * READ - 0.05] * 2, [-0.5, 6], color=ink.text, linestyle="--", linewidth=1.4)
    axes.text(2 * READ - 0.05, -0.75, "killed here", ha="center", va="bottom", fontsize=8.5)
    axes.text(0, 6.9, "Resume: load the checkpoint, apply batches 4 to 6 as the journal has them "
              "cut, then read on.", fontsize=9)  # fmt: skip
    axes.set_xlim(-6.4, 2 * BATCHES)
    axes.set_ylim(7.3, -1.8)
    return figure
