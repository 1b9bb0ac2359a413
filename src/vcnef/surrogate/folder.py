"""A surrogate's folder: `config.json` and `model.safetensors`, written whole or not at all, read without unpickling."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from safetensors import SafetensorError
from safetensors import torch as safetensors
from torch import Tensor

from vcnef import __version__
from vcnef.whole import write_whole

if TYPE_CHECKING:
    from vcnef.surrogate.surrogate import Surrogate

FORMAT = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"


def save(folder: Path, weights: Mapping[str, Tensor], description: Mapping[str, Any]) -> None:
    # Both in bytes before either is written: a description that JSON cannot hold must not leave other weights there.
    about = {"format": FORMAT, "vcnef": __version__, **description}
    record = (json.dumps(about, indent=2, default=_plain) + "\n").encode()
    tensors = {name: value.detach().cpu().clone().contiguous() for name, value in weights.items()}
    # Weights first: between the two writes an older description of the same model stays valid.
    write_whole(folder / WEIGHTS, safetensors.save(tensors))
    write_whole(folder / CONFIG, record)


def _plain(value: Any) -> Any:
    """Numbers of NumPy, such as a width out of a sweep, as JSON has them."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"A model is described by numbers, texts and lists of them; got {value!r}. Give one of these.")


def find(folder: Path) -> Path:
    """The folder of the model: this one, or the one inside a run's folder."""
    for place in (folder, folder / "model"):
        if (place / CONFIG).is_file():
            return place
    raise FileNotFoundError(
        f"{folder} holds no model: there is no {CONFIG} in it. Give a folder that `save` wrote, or that of a run."
    )


def read(folder: Path, rebuild: Callable[[Mapping[str, Any]], Surrogate]) -> Surrogate:
    """The surrogate of a folder, rebuilt from its description and given its weights."""
    path = folder / CONFIG
    try:
        record = json.loads(path.read_text())
        version = int(record["format"])
    except (ValueError, KeyError, TypeError):
        raise ValueError(f"{path} is not a description of a model: it is damaged. Copy or train it again.") from None
    if version > FORMAT:
        raise ValueError(
            f"{path} has format {version}, written by vcnef {record.get('vcnef')}; this vcnef {__version__} reads "
            f"formats up to {FORMAT}. Install a newer vcnef."
        )
    try:
        surrogate = rebuild(record)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} lacks or garbles {error}. Copy or train the model again.") from None
    fit_weights(surrogate, read_weights(folder), folder)
    return surrogate


def read_weights(folder: Path) -> dict[str, Tensor]:
    path = folder / WEIGHTS
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has a {CONFIG} but no {WEIGHTS}. Copy both files.")
    try:
        return safetensors.load_file(path)
    except (SafetensorError, ValueError) as error:
        raise ValueError(f"{path} is damaged ({error}). Copy or train it again.") from None


def fit_weights(surrogate: Surrogate, weights: Mapping[str, Tensor], folder: Path) -> None:
    expected = surrogate.model.state_dict()
    for name in sorted(expected.keys() | weights.keys()):
        sides = [tuple(side[name].shape) if name in side else "absent" for side in (weights, expected)]
        if sides[0] != sides[1]:
            raise ValueError(
                f"The weights in {folder} do not fit its model {surrogate.name!r}: {name} is {sides[0]} in {WEIGHTS}, "
                f"and {sides[1]} in the model that {CONFIG} describes. Both files must come from one `save`."
            )
    surrogate.model.load_state_dict(weights)
