"""What the site takes from outside `docs/`: measured results, CONTRIBUTING, CHANGELOG; links work in both places.

Pages link to these files where they lie in the repository; the links are turned to their places on the site.
"""

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
PLACES = {
    "../benchmarks/results/": "results/",
    "../CONTRIBUTING.md": "contributing.md",
    "../CHANGELOG.md": "changelog.md",
}
"""Where a file lies, seen from `docs/`, and where it is on the site."""


def on_files(files: Files, *, config: Any) -> Files:
    for source, place in PLACES.items():
        path = (ROOT / "docs" / source).resolve()
        found = {place + each.name: each for each in sorted(path.glob("*.md"))} if path.is_dir() else {place: path}
        for name, each in found.items():
            files.append(File.generated(config, name, abs_src_path=str(each)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    for source, place in PLACES.items():
        markdown = markdown.replace(f"]({source}", f"]({place}")
    return markdown
