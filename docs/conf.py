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
    "sphinx_design",
    "commands",  # these four are in extensions/
    "docstrings",
    "drawings",
    "networkx_functions",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = True
# Signatures name types of NumPy and the standard library, and modules of ours that are not public.
# What pages refer to themselves is checked.
nitpick_ignore_regex = [("py:(class|obj|data|exc)", r"(?!(lpma|algorithms|ingest)\.\w+$).*")]
# Examples of records are pairs of a value and its meaning, which no lexer knows.
suppress_warnings = ["misc.highlighting_failure"]

autosummary_generate = False
autodoc_member_order = "groupwise"
autodoc_preserve_defaults = True
autodoc_typehints = "signature"
autodoc_type_aliases = {"Array": "Array"}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False
toc_object_entries_show_parents = "hide"
default_role = "code"

html_theme = "pydata_sphinx_theme"
html_title = f"lpma {release}"
html_static_path = ["static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
