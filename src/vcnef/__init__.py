"""Neural surrogates of time-dependent parametric PDEs: whole trajectories in one forward pass."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vcnef import data, metrics, pde, plots, training
    from vcnef.accelerate import explain
    from vcnef.data import Trajectories, from_arrays, generate, open
    from vcnef.evaluation import evaluate
    from vcnef.models.derivative import time_derivative
    from vcnef.models.registry import build, list_models
    from vcnef.models.release import from_release
    from vcnef.pde import Equation, solve
    from vcnef.problem import Problem
    from vcnef.surrogate import Surrogate
    from vcnef.workflow import fit, load

__version__ = "0.1.0"

__all__ = [
    "Equation",
    "Problem",
    "Surrogate",
    "Trajectories",
    "build",
    "data",
    "evaluate",
    "explain",
    "fit",
    "from_arrays",
    "from_release",
    "generate",
    "list_models",
    "load",
    "metrics",
    "open",
    "pde",
    "plots",
    "solve",
    "time_derivative",
    "training",
]

_HOMES = {
    "Equation": "vcnef.pde",
    "Problem": "vcnef.problem",
    "Surrogate": "vcnef.surrogate",
    "Trajectories": "vcnef.data",
    "build": "vcnef.models.registry",
    "evaluate": "vcnef.evaluation",
    "explain": "vcnef.accelerate",
    "fit": "vcnef.workflow",
    "from_arrays": "vcnef.data",
    "from_release": "vcnef.models.release",
    "generate": "vcnef.data",
    "list_models": "vcnef.models.registry",
    "load": "vcnef.workflow",
    "open": "vcnef.data",
    "solve": "vcnef.pde",
    "time_derivative": "vcnef.models.derivative",
}


def __getattr__(name: str) -> Any:
    # Public names are fetched when first used: `vcnef --help` then does not wait for torch.
    if name not in __all__:
        raise AttributeError(f"module 'vcnef' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name) if name in _HOMES else import_module(f"vcnef.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
