"""How Sphinx builds the documentation."""

import tomllib
from pathlib import Path

core = tomllib.loads((Path(__file__).parent.parent / "packages/core/pyproject.toml").read_text("utf-8"))

project = "haiku-rag"
author = "haiku-rag developers"
project_copyright = "2026, haiku-rag developers"
release = core["project"]["version"]

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3
nitpicky = True

html_theme = "alabaster"
html_theme_options = {"description": core["project"]["description"], "page_width": "60rem"}
