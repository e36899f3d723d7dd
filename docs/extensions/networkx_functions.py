"""The directive `{networkx-functions}`: what the NetworkX backend serves, from its own list."""

from __future__ import annotations

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class NetworkXFunctions(SphinxDirective):
    def run(self) -> list[nodes.Node]:
        from algorithms.networkx.info import SERVED

        rows = [
            f"| `{name}` | {served.note.replace('|', chr(92) + '|')} |"
            for name, served in SERVED.items()
        ]
        text = ["| function | |", "| --- | --- |", *rows]
        holder = nodes.Element()
        self.state.nested_parse(StringList(text, source="algorithms/networkx"), 0, holder)
        return holder.children


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("networkx-functions", NetworkXFunctions)
    return {"parallel_read_safe": True}
