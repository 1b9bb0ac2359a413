"""The authors' release itself as one of our models: its code is loaded from a folder, under a name of its own."""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from jaxtyping import Float
from torch import Tensor, nn

from vcnef.models.interface import TrajectoryModel, times_with_samples, with_samples
from vcnef.suggest import suggestion

THEIR_NAME = "vcnef"
"""Of their package, which is ours too: theirs is imported as another."""
MODEL_CLASS = "VCNeFModel"


class ReleaseInputs(NamedTuple):
    """Their inputs; their code does not keep the part of the work that no query time changes."""

    u0: Float[Tensor, "b *x c"]
    grid: Float[Tensor, "b *x D"]
    params: Float[Tensor, "b p"] | None


class Release(TrajectoryModel):
    """Their model under our interface; it trains with their dropout of 0.1, as they do."""

    fusible = False  # its masks read their lengths back from the device

    def __init__(self, network: nn.Module, *, ndim: int, channels: int, params: int) -> None:
        super().__init__()
        self.network = network
        self.ndim, self.channels, self.params = ndim, channels, params

    def encode(self, u0: Tensor, grid: Tensor, params: Tensor | None = None) -> ReleaseInputs:
        return ReleaseInputs(u0, with_samples(grid, u0).expand(len(u0), *u0.shape[1:-1], -1), params)

    def query(self, latent: ReleaseInputs, t: Float[Tensor, " t"] | Float[Tensor, "b t"]) -> Float[Tensor, "b t *x c"]:
        times = times_with_samples(t).expand(len(latent.u0), -1)
        # They have time behind space: b *x t c.
        return self.network(latent.u0, latent.grid, latent.params, times).movedim(-2, 1)


def load_release(path: str | Path, *, ndim: int, channels: int, params: int = 0, **options: Any) -> Release:
    """Return the model of the authors' repository in the folder `path`, with their sizes for that `ndim`, untrained.

    Options are those of their constructor: `d_model`, `n_heads`, `n_transformer_blocks`, `n_modulation_blocks`, …
    """
    builder = _find_class(_package(Path(path)), ndim)
    sizes = {"num_channels": channels, "condition_on_pde_param": params > 0, "pde_param_dim": params}
    known = [name for name in inspect.signature(builder).parameters if name not in sizes]
    for option in options:
        if option not in known:
            raise ValueError(f"The release has no option {option!r}. {suggestion(option, known)}")
    return Release(builder(**sizes, **options), ndim=ndim, channels=channels, params=params)


def _package(path: Path) -> Path:
    """Return the folder of the authors' package: inside of their repository, or given itself."""
    for folder in (path / THEIR_NAME, path):
        if (folder / "vcnef_1d.py").is_file():
            return folder.resolve()
    raise ValueError(
        f"{path} is not the authors' release; expected a folder with {THEIR_NAME}/vcnef_1d.py. "
        "Clone github.com/jhagnberger/vcnef and give its folder."
    )


def _find_class(package: Path, ndim: int) -> type[nn.Module]:
    # The same folder gives the same modules, two folders never share one.
    alias = f"{THEIR_NAME}_release_{zlib.crc32(str(package).encode()):08x}"
    if alias not in sys.modules:
        sys.modules[alias] = ModuleType(alias, "The authors' release.")
        sys.modules[alias].__path__ = [str(package)]
    try:
        with _importing(alias):
            return getattr(importlib.import_module(f"{alias}.vcnef_{ndim}d"), MODEL_CLASS)
    except (ImportError, AttributeError, SyntaxError) as error:
        raise ValueError(
            f"The release in {package} does not give a {ndim}D model ({error}); expected {MODEL_CLASS} in "
            f"vcnef_{ndim}d.py. Check that the folder is complete and that its requirements are installed."
        ) from error


@contextmanager
def _importing(alias: str) -> Iterator[None]:
    finder = _Finder(alias)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    """Finds the modules of the alias as Python would, but has their imports of `vcnef` lead to the alias."""

    def __init__(self, alias: str) -> None:
        self.alias = alias

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith(f"{self.alias}."):
            return None
        found = PathFinder.find_spec(fullname, path)
        if found is None or found.origin is None:  # a folder without a file of its own
            return found
        return spec_from_file_location(
            fullname,
            found.origin,
            loader=_Loader(fullname, found.origin, self.alias),
            submodule_search_locations=found.submodule_search_locations,
        )


class _Loader(SourceFileLoader):
    """Compiles a module with `from vcnef.… import` read as `from <alias>.… import`."""

    def __init__(self, fullname: str, path: str, alias: str) -> None:
        super().__init__(fullname, path)
        self.alias = alias

    def get_code(self, fullname: str) -> CodeType:
        """Always from the source: what is compiled so must not lie in their cache."""
        tree = ast.parse(self.get_data(self.path), self.path)
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or node.level or node.module is None:
                continue
            if node.module.split(".")[0] == THEIR_NAME:
                node.module = self.alias + node.module.removeprefix(THEIR_NAME)
        return compile(tree, self.path, "exec", dont_inherit=True)
