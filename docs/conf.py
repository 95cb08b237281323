# Copyright The Chunkwise Contributors. SPDX-License-Identifier: Apache-2.0
"""Settings of the site (Sphinx with MyST). scripts/build_docs.sh builds it.

Pages are plain Markdown that also reads well in the repository. Two things are done to them here: a page that stands for a file
outside docs gets that file's text, and links that leave docs lead to such a page or become plain text.
"""
import os
import pathlib
import re
import sys

from latex2mathml.converter import convert

DOCS = pathlib.Path(__file__).resolve().parent
ROOT = DOCS.parent

sys.path.insert(0, str(ROOT / "scripts"))
import make_classes  # noqa: E402

project = "Chunkwise"
author = "The Chunkwise Contributors"
project_copyright = author
version = release = re.search(r"VERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text())[1]

extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["build", "_build"]
html_theme = "furo"
html_title = "Chunkwise"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_math_renderer = "mathml"
pygments_style = "friendly"
pygments_dark_style = "monokai"

# Page: the file outside docs that it shows.
SHOWN = {
    "python": "python/README.md",
    "napari": "python/napari-chunkwise/README.md",
    "slicer-module": "slicer/README.md",
    "example-network": "examples/network/README.md",
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
}
PAGE_OF = {(ROOT / file).resolve(): page for page, file in SHOWN.items()}
PAGE_OF[ROOT / "README.md"] = "index"
# Pages of docs itself that reference/index.md does not list as families.
OTHERS = {"index", "start", "building", "gallery", "performance", "benchmarks", "design", "glossary", "filters", "program", *SHOWN}


def turn_link(match, folder, page):
    """A link of a page whose file lies in folder, for the site."""
    mark, text, target = match[1], match[2], match[3]
    if re.match(r"[a-z]+:|#", target):
        return match[0]
    path, _, anchor = target.partition("#")
    file = (folder / path).resolve()
    anchor = "#" + anchor if anchor else ""
    if file.is_dir() and (file / "README.md").exists():
        file /= "README.md"
    if mark:
        return f"![{text}]({os.path.relpath(file, (DOCS / page).parent)})"
    if file in PAGE_OF:
        return f"[{text}](/{PAGE_OF[file]}.md{anchor})"
    if file.is_relative_to(DOCS) and file.suffix == ".md":
        return f"[{text}](/{file.relative_to(DOCS)}{anchor})"
    if not file.exists():
        raise FileNotFoundError(f"{page}: the link to {target} leads to {file}, which is not there")
    plain = text.strip("`")
    name = str(file.relative_to(ROOT))
    return f"`{name}`" if plain in name else f"{text} (`{name}`)"


def read_page(app, page, content):
    folder = (DOCS / page).parent
    if page in SHOWN:
        file = ROOT / SHOWN[page]
        content[0], folder = file.read_text(), file.parent
    if page == "reference/classes":
        content[0] = make_classes.make_page()
    # Code is left alone.
    pieces = re.split(r"(?ms)(^ *```.*?^ *```$|`[^`\n]+`(?!\]))", content[0])
    pieces[::2] = [re.sub(r"(!?)\[([^\]\n]*(?:\n[^\]\n]*)?)\]\(([^)\s]+)\)", lambda match: turn_link(match, folder, page), piece)
                   for piece in pieces[::2]]
    content[0] = "".join(pieces)
    if page == "reference/index":
        families = sorted(each.stem for each in DOCS.glob("*.md") if each.stem not in OTHERS)
        content[0] += "\n```{toctree}\n:caption: Families\n:maxdepth: 1\n" + "".join(f"/{each}\n" for each in families) + "```\n"
    if page == "notes/README":
        notes = sorted(each.stem for each in (DOCS / "notes").glob("*.md") if each.stem != "README")
        content[0] += "\n```{toctree}\n:hidden:\n" + "".join(f"{each}\n" for each in notes) + "```\n"


def show_math(self, node):
    self.body.append(convert(node.astext()))
    raise_skip()


def show_math_block(self, node):
    self.body.append('<div class="math">' + convert(node.astext(), display="block") + "</div>\n")
    raise_skip()


def raise_skip():
    from docutils.nodes import SkipNode
    raise SkipNode


def setup(app):
    app.connect("source-read", read_page)
    app.add_html_math_renderer("mathml", (show_math, None), (show_math_block, None))
