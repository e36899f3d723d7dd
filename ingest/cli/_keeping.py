"""The options of `lpma ingest` about its checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ._options import given
from ._running import FROM_STORE

CHECKPOINTS = "Checkpoints"


def _option(*names: str, **more: Any) -> Any:
    return typer.Option(*names, rich_help_panel=CHECKPOINTS, show_default=False, **more)


@dataclass(frozen=True)
class Keeping:
    """Where checkpoints are kept, and how often one is taken; None: as it is without being told."""

    checkpoint: Annotated[
        Path | None,
        _option("--checkpoint", "-c", help="A directory for them; resumed where it has one."),
    ] = None
    checkpoint_interval: Annotated[
        float | None,
        _option(
            "--checkpoint-interval",
            metavar="SECONDS",
            min=0.0,
            help="Take one so long after the last, where anything came. (default: 60)",
        ),
    ] = None
    checkpoint_operations: Annotated[
        int | None,
        _option(
            "--checkpoint-operations",
            metavar="N",
            min=1,
            help="Take one after so many operations. (default: 5,000,000)",
        ),
    ] = None
    from_store: Annotated[
        Path | None,
        _option(
            FROM_STORE,
            metavar="STORE",
            help="Begin with this saved store, instead of an empty graph. The stream is read from "
            "its earliest record on, unless --from-offsets says where.",
        ),
    ] = None
    accept_gap: Annotated[
        bool,
        _option(
            "--accept-gap",
            help="Go on from a checkpoint though retention has dropped records that were still to "
            "be read; they are counted.",
        ),
    ] = False
    accept_journal_loss: Annotated[
        bool,
        _option(
            "--accept-journal-loss",
            help="Where the journal is missing or damaged, resume from the checkpoint and the log. "
            "No update is lost; stamps are new, and replies that are repeated may differ.",
        ),
    ] = False

    def settings(self) -> dict[str, Any]:
        """The settings of a pipeline that were given. Raises typer.BadParameter where there is no
        directory for them."""
        found = given(
            {
                "checkpoint_interval": self.checkpoint_interval,
                "checkpoint_operations": self.checkpoint_operations,
            }
        )
        lost = self.accept_gap or self.accept_journal_loss
        if self.checkpoint is None and (found or lost):
            raise typer.BadParameter(
                "needed by --checkpoint-interval, --checkpoint-operations, --accept-gap and "
                "--accept-journal-loss", param_hint="--checkpoint",
            )  # fmt: skip
        return found
