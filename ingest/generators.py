"""The former place of `ingest.datasets.generators`, whose names stay importable from here."""

from .datasets.generators import *  # noqa: F403
