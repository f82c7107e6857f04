"""The documentation site is complete, linked and current; the slow test builds it and looks for what it loads."""

import importlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
GUIDES = (
    "mixtures",
    "discriminative",
    "maxent",
    "discrimination",
    "trees",
    "novelty",
    "sequences",
    "ensembles",
    "fusion",
)
TESTS = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py") if path.name != Path(__file__).name)


def entries(text):
    """Documents named in the toctrees of a page, in Markdown or reStructuredText."""
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.DOTALL)
    blocks += re.findall(r"^\.\. toctree::\n((?:(?: +.*)?\n)+)", text + "\n", flags=re.MULTILINE)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    return [re.sub(r".*<(.*)>", r"\1", line) for line in lines if line and not line.startswith(":")]


def reference():
    """Names of the API pages: module.name."""
    names = []
    for page in sorted((DOCS / "api").glob("*.rst")):
        module = None
        for line in page.read_text().splitlines():
            if named := re.match(r"\.\. currentmodule:: (\S+)", line):
                module = named[1]
            elif module and (named := re.fullmatch(r"   (\w+)", line)):
                names.append(f"{module}.{named[1]}")
    return names


def test_every_page_is_in_a_toctree():
    listed = entries((DOCS / "index.md").read_text())
    assert len(listed) == len(set(listed))
    made = {"gallery/index", "api/index"}
    assert set(listed) - made == {page.stem for page in PAGES} - {"index"} and made <= set(listed)
    inner = entries((DOCS / "api" / "index.rst").read_text())
    assert sorted(inner) == sorted({page.stem for page in (DOCS / "api").glob("*.rst")} - {"index"})


def test_the_reference_is_current():
    spec = importlib.util.spec_from_file_location("api_pages", DOCS / "api_pages.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    pages = {page.name: page.read_text() for page in (DOCS / "api").glob("*.rst")}
    assert pages == made.pages(), "run: python docs/api_pages.py"


def test_every_public_name_is_in_the_reference():
    homes = {name.rsplit(".", 1)[1] for name in reference()}
    import mixent

    assert not [name for name in mixent.__all__ if name not in homes and name != "__version__"]


def test_the_reference_has_no_name_twice_and_none_that_does_not_exist():
    names = reference()
    assert len(names) == len(set(names)) > 100
    for name in names:
        module, _, last = name.rpartition(".")
        assert hasattr(importlib.import_module(module), last), name
        assert last in importlib.import_module(module).__all__, f"{name} is not public"


def slug(heading):
    """The anchor of a heading, as repository browsers and the site make it."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name
)
def test_every_relative_link_leads_somewhere(page):
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)", prose)
    for link in links:
        if link.startswith(("https:", "http:", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        if anchor:
            assert anchor in {slug(h) for h in re.findall(r"^#+ (.*)$", target.read_text(), flags=re.MULTILINE)}, link


def test_the_code_of_every_page_is_run_by_a_test():
    """Tests run the Python blocks of a page by `run` or `python_blocks`; for commands see test_docs_commands.py."""
    pages = {page.name: page.read_text() for page in PAGES}
    run = set(re.findall(r"(?:run|python_blocks)\(\s*\"(?:docs/)?([\w-]+\.md)\"", TESTS))
    assert {name for name, text in pages.items() if "```python\n" in text} - run == set(), "no test runs their code"


def test_every_term_of_the_glossary_is_defined_where_it_says():
    """The last column names a module, in which the names of the third column occur."""
    rows = re.findall(r"^\| (?!Term)(.*) \|$", (DOCS / "glossary.md").read_text(), flags=re.MULTILINE)
    terms = []
    for row in rows:
        term, _, names, meaning, where = (cell.strip() for cell in row.split("|"))
        (module,) = re.findall(r"`([\w/]+\.py)`", where)
        assert re.search(r"\]\([\w-]+\.md\)", where) and meaning, term
        source = (ROOT / "src" / "mixent" / module).read_text()
        for name in re.findall(r"`([^`]+)`", names):
            assert re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source), f"{module} does not have {name} ({term})"
        terms.append(term)
    assert len(terms) > 60


def test_the_page_on_the_command_line_is_current():
    spec = importlib.util.spec_from_file_location("cli_page", DOCS / "cli_page.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.text(), "run: python docs/cli_page.py"


def test_every_guide_leads_to_the_mathematics_and_places_in_the_code_exist():
    for name in GUIDES:
        assert "](mathematics.md" in (DOCS / f"{name}.md").read_text(), name
    places = re.findall(r"`([a-z]+/[a-z_/]*(?:\.py)?)`", (DOCS / "mathematics.md").read_text())
    assert len(places) > 30
    for place in places:
        assert (ROOT / "src" / "mixent" / place).exists() or (ROOT / place).exists(), place


class Loads(HTMLParser):
    """What a browser fetches by itself for a page: scripts, styles, pictures, fonts, frames; not links to click."""

    BY = {
        "script": "src",
        "img": "src",
        "iframe": "src",
        "source": "src",
        "video": "src",
        "audio": "src",
        "embed": "src",
    }

    def __init__(self):
        super().__init__()
        self.addresses = []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in self.BY:
            self.addresses += [given.get(self.BY[tag]) or "", *(given.get("srcset") or "").split(",")]
        elif tag == "link" and given.get("rel") not in ("canonical", "next", "prev", "index", "search", "author"):
            self.addresses.append(given.get("href") or "")
        self.addresses += re.findall(r"url\(([^)]*)\)", given.get("style") or "")


OUTSIDE = re.compile(r"^\s*['\"]?(https?:)?//")


def loaded_from_elsewhere(site):
    """(file, address) of everything that is not in the folder itself."""
    outside = []
    for page in site.rglob("*.html"):
        loads = Loads()
        loads.feed(page.read_text(encoding="utf-8"))
        outside += [(page.name, address) for address in loads.addresses if OUTSIDE.match(address)]
    for sheet in site.rglob("*.css"):
        addresses = re.findall(r"url\(([^)]*)\)|@import\s+([^;]+);", sheet.read_text(encoding="utf-8"))
        outside += [(sheet.name, a or b) for a, b in addresses if OUTSIDE.match(a or b)]
    return outside


@pytest.mark.parametrize(
    ("name", "text", "count"),
    [
        ("a.html", '<script src="https://cdn.example/x.js"></script><img src="//example/x.png">', 2),
        ("a.html", '<a href="https://example.org">a link to click</a><script src="_static/x.js"></script>', 0),
        ("a.html", '<link rel="stylesheet" href="http://fonts.example/css"><p style="background: url(//e/x.png)">', 2),
        ("a.css", "@import 'https://e/x.css'; p { background: url(\"https://e/x.png\") } b { src: url(x.woff2) }", 2),
    ],
)
def test_what_is_loaded_from_elsewhere_is_seen(tmp_path, name, text, count):
    (tmp_path / name).write_text(text)
    assert len(loaded_from_elsewhere(tmp_path)) == count


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    for needed in ("sphinx", "myst_parser", "furo", "sphinx_gallery"):
        pytest.importorskip(needed, reason="`make docs` and `make test-slow` install what the site needs")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "--fail-on-warning",
        "--keep-going",
        str(DOCS),
        str(tmp_path / "site"),
    ]
    shutil.rmtree(DOCS / "api" / "generated", ignore_errors=True)  # a name that is gone would leave its page behind
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    site = tmp_path / "site"
    assert all((site / f"{page.stem}.html").exists() for page in PAGES)
    assert all((site / "api" / "generated" / f"{name}.html").exists() for name in reference())
    examples = [page.stem for page in (ROOT / "examples").glob("*.py")]
    shown = [name for name in examples if (site / "gallery" / f"{name}.html").exists()]
    assert shown == examples and len(shown) >= 12
    assert "sphx-glr-single-img" in (site / "gallery" / f"{shown[0]}.html").read_text()
    assert loaded_from_elsewhere(site) == []
