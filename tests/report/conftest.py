import re
from html.parser import HTMLParser

import matplotlib as mpl
import pytest

mpl.use("Agg")
VOID = {"meta", "img", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Tags must open and close in order; text, ids and attributes are collected."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.ids, self.attributes, self.text = [], [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)

    @property
    def sections(self):
        """Section ids, in their order."""
        return [value for tag, name, value in self.attributes if (tag, name) == ("section", "id")]

    @property
    def words(self):
        return " ".join(self.text)


def read_page(path):
    """A page, checked for what holds of all pages: no script, nothing loaded from elsewhere, no dead link."""
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert len(page.ids) == len(set(page.ids))
    assert "script" not in page.tags and "link" not in page.tags
    assert not re.search(r"https?://", text)
    targets = {value[1:] for tag, name, value in page.attributes if tag == "a" and name == "href"}
    assert targets <= set(page.ids)
    for tag, name, value in page.attributes:
        assert not name.startswith("on")
        if name == "src":
            assert tag == "img" and value.startswith("data:image/svg+xml;base64,")
    return page


@pytest.fixture
def read():
    return read_page


@pytest.fixture
def without_matplotlib(monkeypatch):
    monkeypatch.setattr("mixent.base.document.find_spec", lambda name: None)
