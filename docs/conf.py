"""How Sphinx builds these pages: `make docs`.

Pages are Markdown (MyST). Before they are read, the programs in `pictures/` draw their pictures
into `_build/pictures`, so that no picture but the README's is kept in the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE), str(HERE.parent)]

import lpma  # noqa: E402  (from this checkout)

project = "lpma"
author = "the lpma authors"
project_copyright = "the lpma authors, Apache-2.0"
version = release = lpma.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "commands",  # these five are in extensions/
    "docstrings",
    "drawings",
    "networkx_functions",
    "signatures",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
smartquotes = False  # two hyphens of an option would become a dash
copybutton_prompt_text = ">>> "
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}  # pages that autosummary makes
# What pages include is no page.
exclude_patterns = ["_build", "templates", "reference/generated/*.md"]
templates_path = ["templates"]
nitpicky = True
# Signatures name types of NumPy and the standard library, and modules of ours that are not public.
# What pages refer to themselves is checked.
nitpick_ignore_regex = [("py:(class|obj|data|exc)", r"(?!(lpma|algorithms|ingest)\.\w+$).*")]
# Examples of records are pairs of a value and its meaning, which no lexer knows.
# Names are given in full in the listings, since their modules are not all public.
suppress_warnings = ["misc.highlighting_failure", "autosummary.import_cycle"]

# A page for every function and class, made by templates/autosummary in reference/generated.
autosummary_generate_overwrite = True
autosummary_context = {
    "returned": {  # nobody calls their constructors
        "lpma.names.Names", "lpma.names.FrozenNames", "lpma.Edge", "lpma.Edges", "lpma.Neighbors",
        "lpma.Changes", "lpma.Stats", "lpma.Unchanged", "lpma.Snapshot", "algorithms.Truss",
        "algorithms.Support", "algorithms.PathTree", "algorithms.Similar", "algorithms.Diverse",
        "algorithms.Biclique", "algorithms.ShardedSnapshot", "ingest.pipeline.stats.PipelineStats",
        "ingest.SettingsDict", "ingest.BatchStats", "ingest.settings.CheckpointFigures",
        "ingest.queries.http_client.HttpClient", "ingest.cluster.client.ClusterClient",
        "ingest.cluster.coordinator.Epoch", "ingest.sources.files.edges.EdgeFile",
        "ingest.cluster.repartition.Repartitioned", "ingest.Source",
    },
    "shown": {
        "lpma.Graph": [
            ":members:", ":inherited-members:", ":special-members: __len__, __contains__, __iter__"
        ],
        "lpma.names.Names": [":members: find, of"],
        "lpma.names.FrozenNames": [":members: find, of, row"],
        "lpma.Batch": [":members:"],
        "lpma.Columns": [":members:", ":exclude-members: edges, moved, validated"],
        "lpma.Kind": [":members:", ":member-order: bysource"],
        "lpma.Answers": [":members:"],
        "lpma.Stats": [":members:"],
        "lpma.Snapshot": [":members:", ":inherited-members:"],
        "algorithms.ShardedSnapshot": [
            ":members: of, present, num_vertices, degrees, hops, gather, write_parquet"
        ],
        "algorithms.Tracker": [":members:"],
        "ingest.Pipeline": [":members:"],
        "ingest.pipeline.stats.PipelineStats": [":members:", ":exclude-members: count"],
        "ingest.Settings": [":members:"],
        "ingest.BatchStats": [":members:"],
        "ingest.settings.CheckpointFigures": [":members:"],
        "ingest.Client": [":members:", ":inherited-members:"],
        "ingest.Cluster": [":members:"],
        "ingest.cluster.coordinator.Epoch": [":members:"],
        "ingest.SqliteLog": [":members:"],
        "ingest.KafkaSink": [":members:"],
        "ingest.PartitionedSink": [":members:"],
        "ingest.Repartition": [":members:"],
        "ingest.Source": [":members:"],
        "ingest.sources.Identity": [":members:"],
        "ingest.Result": [":members:"],
    },
}  # fmt: skip
autodoc_member_order = "groupwise"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_type_aliases = {"Array": "Array"}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = True  # a page's title is the name alone, as it is in the menu
toc_object_entries_show_parents = "hide"
default_role = "code"

html_theme = "pydata_sphinx_theme"
html_title = f"lpma {release}"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_sidebars = {name: [] for name in ("install", "tutorial", "performance")}
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 8,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
