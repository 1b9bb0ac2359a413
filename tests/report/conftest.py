from html.parser import HTMLParser

import pytest

VOID = {"meta", "link", "img"}


class Page(HTMLParser):
    """A page as a reader sees it: headings, tables by name, pictures, links and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.links, self.images, self.values = [], [], [], []
        self.headings, self.words, self.ids = [], [], []
        self.tables: dict[str, list[list[str]]] = {}
        self.open: list[str] = []
        self._table = ""
        self.feed(text)
        self.close()
        assert not self.open, f"elements are left open: {self.open}"
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        self.links += [found[name] for name in ("href", "src", "action", "data", "poster", "srcset") if name in found]
        self.ids += [found["id"]] if "id" in found else []
        if tag == "img":
            self.images.append(found)
        elif tag == "data":
            self.values.append(found["value"])
        elif tag in ("h1", "h2", "h3"):
            self.headings.append("")
        elif tag == "div":
            self._table = found["aria-label"]
            self.tables.setdefault(self._table, [])
        elif tag == "tr":
            self.tables[self._table].append([])
        elif tag in ("td", "th"):
            self.tables[self._table][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if "style" in self.open:
            return
        self.words.append(text)
        if {"h1", "h2", "h3"} & set(self.open):
            self.headings[-1] += text
        if {"td", "th"} & set(self.open):
            self.tables[self._table][-1][-1] += text

    def row(self, table: str, name: str) -> list[str]:
        return next(row[1:] for row in self.tables[table] if row[0] == name)


@pytest.fixture(scope="session")
def read_page():
    return Page
