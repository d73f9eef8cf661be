"""Sphinx configuration: `make docs` builds strictly, and the pages ask nothing of any other server."""

import sys
from importlib import metadata
from pathlib import Path

import ganns

sys.path.insert(0, str(Path(__file__).parent))

project = "ganns"
version = release = metadata.version("ganns")
extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb", "mathml"]
exclude_patterns = ["_build", "generated"]

nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

default_role = "py:obj"
html_math_renderer = "mathml"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
maximum_signature_line_length = 88

html_theme = "pydata_sphinx_theme"
html_title = "ganns"
html_static_path = ["_static"]
html_css_files = ["ganns.css"]
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {"**": []}
html_theme_options = {
    "logo": {"text": "ganns"},
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "article_header_start": [],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copyright = "the ganns contributors, MIT licence"

_FIELD = type(vars(ganns.Trace)["output"])


def _skip(app, what, name, obj, skip, options):
    """Leave out the fields of named tuples, whose docstring is "Alias for field number 0"."""
    return True if type(obj) is _FIELD else None


def setup(app):
    app.connect("autodoc-skip-member", _skip)
