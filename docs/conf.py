"""How Sphinx builds the site: `make docs`. Nothing is fetched, neither while building nor while reading."""

import os
import re
import tomllib
import warnings
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

ROOT = Path(__file__).parent.parent
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")  # before numpy is imported: small examples are quicker on one thread

project = "mixent"
release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
version = release
author = "the authors of mixent"
copyright = author

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [
    (r"py:(class|obj)", r".*"),  # types are written in words ("(n, C) array"), backticks mark code of every kind
]
suppress_warnings = ["config.cache"]  # functions in the gallery's settings cannot be pickled; nothing is lost

# pages: Markdown that also reads well where the repository is browsed
myst_heading_anchors = 3
myst_enable_extensions = []
highlight_language = "none"  # indented blocks are formulas and output; code blocks name their language

# reference: from docstrings in numpydoc style, where single backticks mean code
default_role = "py:obj"
add_module_names = False
autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"  # the Parameters section has the types
autodoc_member_order = "groupwise"
python_display_short_literal_types = True
napoleon_google_docstring = False
napoleon_use_param = False  # "tol, max_iter : see ..." stays one line
napoleon_use_rtype = False
napoleon_custom_sections = [("Attributes", "params_style")]
smartquotes = False  # "auto" is a value and --help an option: they stay as they are typed

# gallery: examples/*.py are run while the site is built
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"__init__\.py",
    "image_scrapers": ("matplotlib",),
    "thumbnail_size": (400, 280),
    "image_srcset": [],
    "min_reported_time": 5,
    "show_memory": False,
    "write_computation_times": False,
    "backreferences_dir": None,
    "show_signature": False,
    "download_all_examples": False,
    "abort_on_example_error": False,
    "only_warn_on_example_error": False,
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "plot_gallery": True,
}
warnings.filterwarnings("ignore", category=UserWarning, message=".*non-interactive.*")  # plt.show() without a screen

html_math_renderer = "mathml"  # below: browsers draw it by themselves, where MathJax would be fetched
html_theme = "furo"
html_title = f"mixent {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}


def skip_foreign(_app, _what, name, obj, _skip, _options):
    """Leave out what scikit-learn gives every estimator; its own pages describe it."""
    home = getattr(getattr(obj, "fget", obj), "__module__", None) or ""
    foreign = name.startswith("_") or name.endswith("_request") or home.startswith(("sklearn", "builtins"))
    return True if foreign else None


CODE = re.compile(r"(`+[^`]*`+)")
LOOSE = re.compile(r"(?<!\\)\||(?<=\w)_(?=$|[\s,.;:)\]])")  # |x| and fitted_: text to us, markup to reStructuredText


def keep_bars(_app, _what, _name, _obj, _options, lines):
    """Docstrings write mathematics plainly, for people who read the source; escape what is markup only by chance."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "..")):  # neither examples nor directives
            parts = CODE.split(line)
            parts[::2] = [LOOSE.sub(lambda match: "\\" + match[0], part) for part in parts[::2]]
            lines[i] = "".join(parts).replace(" -- ", " – ")  # napoleon's, between a name and what it is


def link_names(app, doctree, docname):
    """Make `MixtureClassifier` in running text a link to its page in the reference."""
    homes = {name.rsplit(".", 1)[-1]: entry for name, entry in app.env.get_domain("py").objects.items()}
    for code in list(doctree.findall(nodes.literal)):
        name = code.astext().removeprefix("mixent.").removeprefix("evaluate.").split("(")[0]
        entry = homes.get(name)
        inside = isinstance(code.parent, nodes.reference | nodes.title)
        if entry is None or inside or entry.objtype in ("method", "attribute") or entry.docname == docname:
            continue
        link = nodes.reference("", "", internal=True)
        link["refuri"] = app.builder.get_relative_uri(docname, entry.docname) + f"#{entry.node_id}"
        code.replace_self(link)
        link += code


def write_formula(self, node):
    """LaTeX as MathML, by docutils."""
    block = isinstance(node, nodes.math_block)
    self.body.append(tex2mathml(node.astext()).replace("<math ", '<math display="block" ' if block else "<math ", 1))
    raise nodes.SkipNode


def setup(app):
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (write_formula, None), (write_formula, None))
    app.connect("doctree-resolved", link_names)
    app.connect("autodoc-process-docstring", keep_bars, priority=900)  # after napoleon
    app.connect("autodoc-skip-member", skip_foreign)
