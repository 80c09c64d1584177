"""How Sphinx builds the site: `make docs`."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import extremal  # noqa: E402

project = "extremal"
author = "The extremal developers"
copyright = f"2024-2026, {author}"
version = release = extremal.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "reference",  # pages of the reference, from the stub files
    "set_pictures",  # pictures of the sets, and their cards
    "error_list",  # the messages of all errors
    "plain_docstrings",  # formulas and bars of docstrings, as reStructuredText
]
exclude_patterns = ["_build", "_ext", "_templates", "auto_examples/*.py", "auto_examples/*.ipynb", "auto_examples/*.md5"]
templates_path = ["_templates"]
default_role = "code"
nitpicky = False
suppress_warnings = ["config.cache"]

# the guides
myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3

# the reference
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_validation_checks = set()

# the gallery
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["auto_examples"],
    "filename_pattern": r"/plot_",
    "backreferences_dir": "reference/used",
    "doc_module": ("extremal",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "show_memory": False,
    "write_computation_times": False,  # the page needs the network
    "subsection_order": [f"../examples/{name}" for name in ("start", "weights", "signs", "structure", "research")],
    "within_subsection_order": "FileNameSortKey",
    "parallel": 2,
}

# the look
html_theme = "pydata_sphinx_theme"
html_title = "extremal"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"start": []}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,  # all pages of the top bar
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
