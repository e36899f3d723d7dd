"""Figures of a graph kept exact from batch to batch: see `tracker`."""

from .tracker import Tracker, Update, UpdatedFigure

__all__ = ["Tracker", "Update", "UpdatedFigure"]
