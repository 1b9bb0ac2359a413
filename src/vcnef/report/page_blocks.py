"""What a section is made of. `page.html` says how each kind of block looks; here they hold plain text and numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class Cell:
    """A value in a table."""

    text: str
    exact: str | None = None
    """The whole number, for those who copy it."""
    behind: str = ""
    """What stands behind it, as " (trained)"."""
    best: bool = False
    """Whether it is the best of its row."""


@dataclass(frozen=True)
class Paragraph:
    kind: ClassVar = "paragraph"
    text: str
    tone: str = ""
    """"soft" for what is said aside, "warning" for what a reader must not miss."""


@dataclass(frozen=True)
class Heading:
    kind: ClassVar = "heading"
    text: str


@dataclass(frozen=True)
class TableBlock:
    """A table that scrolls by itself where the page is narrow; the first cell of a row is its name."""

    kind: ClassVar = "table"
    label: str
    header: Sequence[str]
    rows: Sequence[Sequence[Cell | str]]


@dataclass(frozen=True)
class Figure:
    """A picture with what it shows; a wide one, of several panels, scrolls on a phone rather than shrinks."""

    kind: ClassVar = "figure"
    uri: str
    caption: str
    width: int | None = None
    wide: bool = False


@dataclass(frozen=True)
class Items:
    kind: ClassVar = "items"
    texts: Sequence[str]


@dataclass(frozen=True)
class Listing:
    """Lines that a reader copies into a terminal."""

    kind: ClassVar = "listing"
    lines: Sequence[str]


Block = Paragraph | Heading | TableBlock | Figure | Items | Listing


@dataclass(frozen=True)
class PageSection:
    heading: str
    blocks: Sequence[Block]

    @property
    def anchor(self) -> str:
        return self.heading.lower().replace(" ", "-")
