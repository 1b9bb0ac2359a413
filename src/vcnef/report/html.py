"""Elements of a page. Text is escaped as it enters; only what was built here is taken as markup."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

EMPTY = {"img", "link", "meta"}
"""Elements that have no content and no end."""


class Html(str):
    """Markup; every other string is text."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: str | bool | None) -> Html:
    """`element("p", "a < b", class_="note")`; attributes that are None are left out."""
    named = "".join(_attribute(name.rstrip("_").replace("_", "-"), value) for name, value in attributes.items())
    start = f"<{tag}{named}>"
    return Html(start if tag in EMPTY else f"{start}{join(*children)}</{tag}>")


def join(*parts: str) -> Html:
    return Html("".join(part if isinstance(part, Html) else escape(part) for part in parts))


def table(header: Sequence[str], rows: Sequence[Sequence[str]], label: str) -> Html:
    """A table that scrolls by itself where the page is narrow; the first cell of a row is its name."""
    head = element("tr", *(element("th", cell, scope="col") for cell in header))
    body = [
        element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:])) for row in rows
    ]
    whole = element("table", element("thead", head), element("tbody", *body))
    return element("div", whole, class_="scroll", role="region", tabindex="0", aria_label=label)


def figure(uri: str, caption: str, *, width: int | None = None, wide: bool = False) -> Html:
    """A picture with what it shows; a wide one, of several panels, scrolls on a phone rather than shrinks."""
    size = None if width is None else str(width)
    image = element("img", src=uri, alt=caption, width=size, class_="wide" if wide else None)
    return element("figure", image, element("figcaption", caption))


def listing(lines: Sequence[str]) -> Html:
    """What a reader copies into a terminal."""
    return element("pre", element("code", "\n".join(lines)))


def _attribute(name: str, value: str | bool | None) -> str:
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(value, quote=True)}"'
