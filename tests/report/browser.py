"""A headless Chromium, driven by its command line alone: what a page looks like, what it asks for, what it prints."""

import html
import json
import re
import shutil
import subprocess
from dataclasses import dataclass

import pytest

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), ""
)
needs_chromium = pytest.mark.skipif(not CHROMIUM, reason="no Chromium on this machine: pages are not looked at")

# runs beside the page, not in it: the page itself has no script
LOOK = """
const frames = [...document.querySelectorAll("iframe")];
const errors = [];
window.addEventListener("error", (event) => errors.push(String(event.message)));
function seen(frame) {
  const page = frame.contentDocument, root = page.documentElement;
  const pictures = [...page.querySelectorAll("img")].map((p) => ({
    loaded: p.complete && p.naturalWidth > 0 && p.naturalHeight > 0,
    width: p.getBoundingClientRect().width, height: p.getBoundingClientRect().height, alt: p.alt,
    right: p.getBoundingClientRect().right}));
  const marks = [...page.querySelectorAll("svg")].map((p) => p.getBoundingClientRect().width);
  const links = [...page.querySelectorAll("a[href]")].map((a) => a.getAttribute("href"));
  const outside = [...page.querySelectorAll("p, h1, h2, h3, li, figcaption, .wide, pre, figure")]
    .filter((e) => e.getBoundingClientRect().right > frame.clientWidth + 1)
    .map((e) => e.tagName + " " + e.textContent.slice(0, 40));
  const lost = [...page.querySelectorAll(".wide")].filter((box) => {
    box.scrollLeft = box.scrollWidth;  // to the last column
    const caption = box.querySelector("caption"), place = caption.getBoundingClientRect();
    return place.left < -1 || place.right > frame.clientWidth + 1 || caption.scrollWidth > caption.clientWidth + 1;
  }).map((box) => box.querySelector("caption").textContent.slice(0, 40));
  const scrolled = [...page.querySelectorAll(".wide")].filter((box) => box.scrollLeft > 0).length;
  const small = [...page.querySelectorAll("p, li, td")]
    .filter((e) => parseFloat(getComputedStyle(e).fontSize) < 12).length;
  return {asked: frame.clientWidth, width: root.scrollWidth, height: root.scrollHeight, pictures, marks, links,
    outside, small, lost, scrolled,
    broken: links.filter((l) => !l.startsWith("#") || !page.getElementById(l.slice(1))),
    requests: frame.contentWindow.performance.getEntriesByType("resource").map((r) => r.name)
      .filter((name) => !name.startsWith("data:")),
    headings: [...page.querySelectorAll("h2")].map((h) => h.textContent), scripts: page.scripts.length};
}
const ready = (f) => f.contentDocument && f.contentDocument.URL === "about:srcdoc" &&
  f.contentDocument.readyState === "complete";
function tell() {
  if (!frames.every(ready)) { setTimeout(tell, 20); return; }
  const out = document.createElement("pre");
  out.id = "found";
  out.textContent = JSON.stringify({errors, pages: frames.map(seen)});
  document.body.append(out);
}
tell();
"""


@dataclass(frozen=True)
class Look:
    """What a page is at one width."""

    found: dict
    console: list  # lines that the browser wrote as errors

    def __getattr__(self, name):
        return self.found[name]


def run(folder, *arguments):
    """One run of the browser; network addresses do not resolve."""
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
    command += ["--disable-extensions", "--disable-background-networking", "--disable-component-update"]
    command += [f"--user-data-dir={folder / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND"]
    command += ["--enable-logging=stderr", "--v=0", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def look(path, folder, widths=(360, 1200)):
    """The page in a frame of each width, and what the browser complained of."""
    page = html.escape(path.read_text(encoding="utf-8"))
    frames = "".join(f'<iframe style="width:{w}px;height:900px;border:0" srcdoc="{page}"></iframe>' for w in widths)
    beside = folder / "beside.html"
    beside.write_text(f"<!DOCTYPE html><body>{frames}<script>{LOOK}</script>", encoding="utf-8")
    done = run(folder, "--window-size=1400,1000", "--virtual-time-budget=5000", "--dump-dom", beside.as_uri())
    told = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    assert told, f"the browser did not get to the end of the page: {done.stderr[-2000:]}"
    found = json.loads(html.unescape(told[1]))
    complaints = re.findall(r".*(?:CONSOLE|Refused to|net::ERR).*", done.stderr)
    return [Look(one, [*found["errors"], *complaints]) for one in found["pages"]]


def printed(path, folder):
    """The page as PDF."""
    out = folder / "page.pdf"
    run(folder, f"--print-to-pdf={out}", "--no-pdf-header-footer", path.as_uri())
    return out.read_bytes()


def photographed(path, folder, width=1200, height=900, *more):
    """The beginning of the page as PNG."""
    out = folder / "page.png"
    run(folder, f"--window-size={width},{height}", f"--screenshot={out}", *more, path.as_uri())
    return out


def check(path, folder):
    """All that any page must do; returns what was seen at 360 and at 1200 px."""
    assert path.stat().st_size < 3_000_000
    pages = look(path, folder)
    for page in pages:
        assert page.console == [] and page.requests == [] and page.scripts == 0 and page.broken == []
        assert page.width <= page.asked, f"{page.width} px wide in a window of {page.asked}"
        assert page.outside == [] and page.small == 0 and page.lost == []
        assert len(page.links) == len(page.headings) > 1
        for picture in page.pictures:
            assert picture["loaded"] and picture["width"] > 100 and picture["height"] > 20 and picture["alt"]
            assert picture["right"] <= page.asked + 1
        assert all(width > 10 for width in page.marks)
    return pages
