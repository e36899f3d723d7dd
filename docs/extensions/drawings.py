"""Draws the pages' pictures before they are read, and puts them where `{picture}` names them.

A module in `pictures/` that is a picture has a function `draw(ink)`, which returns a matplotlib
figure in the colours of `pictures.ink`. It is called twice, for light pages and for dark ones. A
page writes

    ```{picture} levels
    :alt: what a reader who cannot see it should know
    ```
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

HERE = Path(__file__).parents[1]
DRAWN = HERE / "_build" / "pictures"


def draw_all(app: Sphinx) -> None:
    from pictures import ink

    DRAWN.mkdir(parents=True, exist_ok=True)
    for path in sorted((HERE / "pictures").glob("*.py")):
        module = importlib.import_module(f"pictures.{path.stem}")
        if hasattr(module, "draw"):
            for colours in (ink.LIGHT, ink.DARK):
                ink.save(module.draw, colours, DRAWN / f"{path.stem}-{colours.name}.svg")


class Picture(SphinxDirective):
    """A picture in its two versions, of which the theme shows one."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        up = "../" * self.env.docname.count("/")
        images = [
            nodes.image(
                uri=f"{up}_build/pictures/{self.arguments[0]}-{name}.svg",
                alt=self.options["alt"],
                classes=[f"only-{name}"],
            )
            for name in ("light", "dark")
        ]
        return [nodes.container("", *images, classes=["picture"])]  # scrolls on narrow screens


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", draw_all)
    app.add_directive("picture", Picture)
    return {"parallel_read_safe": True}
