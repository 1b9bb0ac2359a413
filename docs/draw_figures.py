"""Draws the pictures of `plots.md` by running the code on that page.

python docs/draw_figures.py
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

PAGE = Path(__file__).parent / "plots.md"
PICTURES = Path(__file__).parent / "images" / "plots"
CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def draw(folder: Path) -> None:
    """Run the page's code in a folder, where it leaves its pictures."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        names: dict[str, object] = {}
        for code in CODE.findall(PAGE.read_text(encoding="utf-8")):
            exec(code, names)
    finally:
        os.chdir(before)


if __name__ == "__main__":
    PICTURES.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as folder:
        draw(Path(folder))
        for picture in sorted(Path(folder).glob("*.png")):
            shutil.copy(picture, PICTURES / picture.name)
            print(f"Wrote {PICTURES / picture.name}.")
