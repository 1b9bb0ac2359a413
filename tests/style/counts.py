"""Counts of how dense the code is, and how scattered.

    python tests/style/counts.py             prints them by room
    python tests/style/counts.py --write     makes today's counts the ceilings

They say where a reader has to stop, not whether code is good. `test_counts.py` holds them below `ceilings.json`, whose
numbers are to come down: a change that raises one says so in its diff.
"""

from __future__ import annotations

import ast
import io
import json
import math
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "vcnef"
CEILINGS = Path(__file__).with_name("ceilings.json")
KINDS = ("conditional expressions", "comprehensions", "nested comprehensions", "walruses")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SUBJECT_LENGTH = 72
LAST_OF_LONG_SUBJECTS = "9b37aa6"
"""Subjects of commits keep to the length after this one."""
LISTS = {"registry.py", "__init__.py"}
"""Files that are lists of modules: a model, an equation or an operation is imported by nothing else."""
NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def code_lines(text: str) -> int:
    """Return the number of lines that are neither empty, nor a comment, nor a docstring."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        # A docstring, of a constant too, is an expression that is nothing but a text.
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def count_kinds(text: str) -> Counter[str]:
    """Return how many dense expressions of each kind a source file has."""
    counts = Counter(dict.fromkeys(KINDS, 0))
    for node in ast.walk(ast.parse(text)):
        counts["conditional expressions"] += isinstance(node, ast.IfExp)
        counts["walruses"] += isinstance(node, ast.NamedExpr)
        if isinstance(node, COMPREHENSIONS):
            counts["comprehensions"] += 1
            within = (each for each in ast.walk(node) if each is not node)
            counts["nested comprehensions"] += any(isinstance(each, COMPREHENSIONS) for each in within)
    return counts


def room_of(path: Path) -> str:
    """Return the name of the room of a file; files beside the rooms are together the ground floor."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "ground"


def count_rooms() -> dict[str, Counter[str]]:
    """Return the counts of every room, with its lines of code, and their sum as "all"."""
    rooms: dict[str, Counter[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        counts = count_kinds(text)
        counts["lines"] = code_lines(text)
        for room in (room_of(path), "all"):
            rooms.setdefault(room, Counter()).update(counts)
    return rooms


def per_thousand(counts: Counter[str], kind: str) -> float:
    """Return how many of a kind there are in a thousand lines of code."""
    return 1000.0 * counts[kind] / max(counts["lines"], 1)


def repeated_names() -> list[str]:
    """Return the names that several files have, without the `__init__.py` of packages."""
    names = Counter(path.name for path in PACKAGE.rglob("*.py"))
    return sorted(name for name, count in names.items() if count > 1 and name != "__init__.py")


def repeated_classes() -> list[str]:
    """Return the names that several public classes have."""
    names: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                names[node.name] += 1
    return sorted(name for name, count in names.items() if count > 1)


def imported_once() -> list[str]:
    """Return the modules that exactly one other module of the package imports, and that is no list of such modules."""
    importers: dict[str, set[Path]] = {}
    modules = {_module_of(path): path for path in PACKAGE.rglob("*.py")}
    for path in modules.values():
        for name in _imports_of(path):
            # `from vcnef.pde import burgers` imports a module too, `from vcnef.pde.burgers import burgers` another one.
            if name in modules and modules[name] != path:
                importers.setdefault(name, set()).add(path)
    once = [name for name, paths in importers.items() if len(paths) == 1 and not {path.name for path in paths} & LISTS]
    return sorted(name for name in once if modules[name].name != "__init__.py")


def long_subjects() -> list[str] | None:
    """Return the subjects of commits that are too long, or None where there is no history to look at."""
    command = ["git", "log", "--no-merges", "--format=%s", f"{LAST_OF_LONG_SUBJECTS}..HEAD"]
    try:
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [subject for subject in ended.stdout.splitlines() if len(subject) > SUBJECT_LENGTH]


def _module_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports_of(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def todays_ceilings() -> dict[str, dict[str, float]]:
    """Return today's counts, rounded up to a tenth: by room per 1000 lines, and of the package as a whole."""
    ceilings = {}
    for room, counts in count_rooms().items():
        ceilings[room] = {kind: math.ceil(10 * per_thousand(counts, kind)) / 10 for kind in KINDS}
    ceilings["package"] = {
        "modules imported by one other only": len(imported_once()),
        "file names that stand twice": len(repeated_names()),
        "class names that stand twice": len(repeated_classes()),
        f"subjects of commits over {SUBJECT_LENGTH} characters": len(long_subjects() or []),
    }
    return ceilings


def main() -> None:
    """Print the counts of every room and what the package repeats, or write them down as ceilings."""
    if "--write" in sys.argv[1:]:
        CEILINGS.write_text(json.dumps(todays_ceilings(), indent=2) + "\n", encoding="utf-8")
        return
    print(f"{'per 1000 lines':22}" + "".join(f"{kind:>26}" for kind in KINDS))
    for room, counts in count_rooms().items():
        values = "".join(f"{per_thousand(counts, kind):26.1f}" for kind in KINDS)
        print(f"{room:12}{counts['lines']:10,}{values}")
    print(f"{len(imported_once())} modules are imported by one other module only.")
    print(f"{len(repeated_names())} file names stand twice: {', '.join(repeated_names())}")
    print(f"{len(repeated_classes())} class names stand twice: {', '.join(repeated_classes())}")
    subjects = long_subjects()
    if subjects is not None:
        print(f"{len(subjects)} subjects of commits since {LAST_OF_LONG_SUBJECTS} exceed {SUBJECT_LENGTH} characters.")


if __name__ == "__main__":
    main()
