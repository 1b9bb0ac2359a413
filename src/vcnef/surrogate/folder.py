"""A surrogate's folder: `config.json` and `model.safetensors`, written whole or not at all, read without unpickling.

Both files carry a checksum of their own content, so that a damaged copy is refused in place of answering wrongly. They
do not refer to each other: between two writes, an older description of the same model stays valid.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors import torch as safetensors
from torch import Tensor

from vcnef import __version__
from vcnef.surrogate.limits import TooLargeError, limited_to
from vcnef.whole import write_whole

if TYPE_CHECKING:
    from vcnef.surrogate.surrogate import Surrogate

FORMAT = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"
CHECKSUM = "checksum"
SPARE_WEIGHTS, SPARE_NUMBERS = 64, 10**7
"""How many more weights than its file a description may ask for before it is refused without being built."""


def save(folder: Path, weights: Mapping[str, Tensor], description: Mapping[str, Any]) -> None:
    # Both in bytes before either is written: a description that JSON cannot hold must not leave other weights there.
    about = json.loads(json.dumps({"format": FORMAT, "vcnef": __version__, **description}, default=_plain))
    record = (json.dumps(about | {CHECKSUM: checksum_of_record(about)}, indent=2) + "\n").encode()
    tensors = {name: value.detach().cpu().clone().contiguous() for name, value in weights.items()}
    # Weights first: between the two writes an older description of the same model stays valid.
    write_whole(folder / WEIGHTS, safetensors.save(tensors, {CHECKSUM: checksum_of_weights(tensors)}))
    write_whole(folder / CONFIG, record)


def checksum_of_record(record: Mapping[str, Any]) -> str:
    """Return the checksum of a description, whatever its white space and the order of its keys are."""
    content = {name: value for name, value in record.items() if name != CHECKSUM}
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()


def checksum_of_weights(weights: Mapping[str, Tensor]) -> str:
    """Return the checksum of names, types, shapes and values."""
    digest = blake2b(digest_size=16)
    for name in sorted(weights):
        value = weights[name]
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


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
    """Return the surrogate of a folder, rebuilt from its description and given its weights."""
    record, weights = _as_meant(read_record(folder)), read_weights(folder)
    try:
        # First without memory: a description may ask for a network of any size.
        with torch.device("meta"), limited_to(*_limits(weights)):
            sketch = _rebuilt(record, rebuild, folder / CONFIG)
        _check_fit(sketch, weights, folder)
        surrogate = _rebuilt(record, rebuild, folder / CONFIG)
    except TooLargeError:
        raise ValueError(
            f"{folder / CONFIG} describes a model that is larger than its {len(weights)} weights in {WEIGHTS}. "
            "Both files must come from one `save`."
        ) from None
    surrogate.model.load_state_dict(weights)
    return surrogate


def _rebuilt(record: Mapping[str, Any], rebuild: Callable[[Mapping[str, Any]], Surrogate], path: Path) -> Surrogate:
    """The surrogate of a description; what is wrong with it is said of its file."""
    try:
        return rebuild(record)
    except TooLargeError:
        raise
    except ValueError as error:
        text = str(error).splitlines()[0].rstrip(".")
        raise ValueError(f"{path} describes no model: {text}. Copy or train the model again.") from None
    except (LookupError, TypeError, AttributeError, ArithmeticError, RuntimeError) as error:
        text = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise ValueError(f"{path} lacks or garbles {text:.200}. Copy or train the model again.") from None


def read_record(folder: Path) -> dict[str, Any]:
    """Return the description of a model; one that was damaged or is of a later version is refused."""
    path = folder / CONFIG
    try:
        record = json.loads(path.read_text())
        version = int(record["format"])
        if version < 1:
            raise ValueError(f"there is no format {version}")
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        raise ValueError(f"{path} is not a description of a model: it is damaged. Copy or train it again.") from None
    if version > FORMAT:
        raise ValueError(
            f"{path} has format {version}, written by vcnef {record.get('vcnef')}; this vcnef {__version__} reads "
            f"formats up to {FORMAT}. Install a newer vcnef."
        )
    # Folders of earlier versions have no checksum.
    if record.get(CHECKSUM, checksum_of_record(record)) != checksum_of_record(record):
        raise ValueError(
            f"{path} does not fit its checksum: it was damaged, or edited by hand. Copy or train it again; after an "
            f"edit that you trust, delete its line {CHECKSUM!r}."
        )
    return record


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Return the weights of a folder; damaged ones, and numbers that are not finite, are refused."""
    path = folder / WEIGHTS
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has a {CONFIG} but no {WEIGHTS}. Copy both files.")
    try:
        weights = safetensors.load_file(path)
        with safe_open(path, framework="pt") as file:
            noted = (file.metadata() or {}).get(CHECKSUM)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ValueError(f"{path} is damaged ({error}). Copy or train it again.") from None
    # Files of earlier versions have no checksum.
    if noted is not None and noted != checksum_of_weights(weights):
        raise ValueError(f"{path} is damaged (it does not fit its checksum). Copy or train it again.")
    for name, value in weights.items():
        if not value.isfinite().all():
            raise ValueError(f"{path} has numbers in {name} that are not finite. Train the model again.")
    return weights


def _as_meant(record: dict[str, Any]) -> dict[str, Any]:
    """Write down what a description of an earlier version left to defaults that are others now.

    An FNO that says nothing of its padding has the benchmark's; every later one does say it.
    """
    model = record.get("model")
    if not isinstance(model, dict) or model.get("name") != "fno" or "padding" in model.get("options", ()):
        return record
    return record | {"model": model | {"options": {**model["options"], "padding": True}}}


def _limits(weights: Mapping[str, Tensor]) -> tuple[int, int]:
    """How many tensors, and numbers in them, a description may ask for beside such weights."""
    return len(weights) + SPARE_WEIGHTS, sum(map(Tensor.numel, weights.values())) + SPARE_NUMBERS


def _check_fit(surrogate: Surrogate, weights: Mapping[str, Tensor], folder: Path) -> None:
    """Raise where weights are missing, left over, or of another shape or kind than those of the model."""
    expected = surrogate.model.state_dict()
    for name in sorted(expected.keys() | weights.keys()):
        there, wanted = _spell_weight(weights.get(name)), _spell_weight(expected.get(name))
        if there != wanted:
            raise ValueError(
                f"The weights in {folder} do not fit its model {surrogate.name!r}: {name} is {there} in {WEIGHTS}, "
                f"and {wanted} in the model that {CONFIG} describes. Both files must come from one `save`, and a model "
                "that was changed after it was built needs a name and a builder of its own in vcnef.models.registry."
            )


def _spell_weight(value: Tensor | None) -> str:
    """Return shape and kind; single and double precision are of one kind."""
    if value is None:
        return "absent"
    if value.is_complex():
        return f"complex {tuple(value.shape)}"
    return str(tuple(value.shape)) if value.is_floating_point() else f"{value.dtype} {tuple(value.shape)}"
