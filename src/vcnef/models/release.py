"""Checkpoints of the authors' release: their names of the weights -> ours, sizes read off the shapes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vcnef.models.interface import check_finite
from vcnef.models.vcnef import VCNeF
from vcnef.models.vcnef_builder import vcnef

PART_NAMES = [
    (r"initial_value_encoder", r"encoder.linear"),
    (r"patch_encoding_(small|large)\.conv", r"encoder.scales.<\1>"),
    (r"coordinates_encoder", r"coordinates.linear"),
    (r"coordinate_encoding_(small|large)\.Wr", r"coordinates.fourier.<\1>.frequencies"),
    (r"coordinate_encoding_(small|large)\.mlp", r"coordinates.fourier.<\1>.mlp"),
    (r"transformer\.norm", r"blocks.<last>"),
    (r"transformer\.layers\.(\d+)", r"blocks.\1"),
    (r"vcnef\.layers\.(\d+)\.self_attention", r"modulations.\1.attention"),
    (r"vcnef\.layers\.(\d+)\.norm", r"modulations.\1.attention_norm"),
    (r"vcnef\.layers\.(\d+)\.neural_field\.norm1", r"modulations.\1.modulation_norm"),
    (r"vcnef\.layers\.(\d+)\.neural_field\.x_projection", r"modulations.\1.scale"),
    (r"vcnef\.layers\.(\d+)\.neural_field\.coordinates_projection", r"modulations.\1.branch.lift"),
    (r"vcnef\.layers\.(\d+)\.neural_field\.coordinates_mlp\.1", r"modulations.\1.branch.residual.0"),
    (r"vcnef\.layers\.(\d+)\.neural_field\.coordinates_mlp\.3", r"modulations.\1.branch.residual.2"),
    (r"vcnef\.layers\.(\d+)\.neural_field", r"modulations.\1"),
    (r"vcnef\.norm", r"decoder.norm"),
    (r"final_mlp", r"decoder.mlps.0"),
    (r"(?:patch_decod\w+|de_embedding)_(small|large)\.conv\.0", r"decoder.grow.<\1>"),
    (r"(?:patch_decod\w+|de_embedding)_(small|large)\.conv\.2", r"decoder.paint.<\1>"),
    (r"final_conv", r"decoder.mix"),
    (r"decoder\.(\d)", r"decoder.mlp.\1"),
]
"""Where a part lives there and here; the first rule that matches the start of a name is used."""

LAYERS = {
    "query_projection": "query",
    "key_projection": "key",
    "value_projection": "value",
    "out_projection": "out",
    "linear1": "mlp.0",
    "linear2": "mlp.2",
    "norm1": "attention_norm",
    "norm2": "mlp_norm",
}
"""What a layer is called there and here, inside a part."""

SIZES_FROM = {
    True: ("encoder.linear.weight", "decoder.norm.weight", "decoder.mlp.2.bias", "coordinates.linear.weight"),
    False: ("encoder.scales.0.0.weight", "decoder.norm.weight", "decoder.mix.bias"),
}
"""Weights whose shapes tell sizes, of a model with a token per point and of one with patches."""


def from_release(checkpoint: Mapping[str, Any] | str | Path, *, ndim: int, heads: int = 8) -> VCNeF:
    """Return a VCNeF with the weights of the authors' release, computing what their code computes.

    checkpoint: their state dict, their saved dictionary with `model_state_dict`, or the path of a `.pt` with either.
    heads: the one size that no weight tells; the release's default is 8.
    """
    theirs = _state_dict(checkpoint)
    check_finite(**theirs)
    depth = _count(theirs, r"transformer\.layers\.(\d+)\.")
    places = {"<small>": "0", "<large>": "1", "<last>": str(depth)}
    state = {_rename(name, places): weight for name, weight in theirs.items()}
    if "decoder.mix.weight" in state:  # a 1 × 1 convolution there, a linear map here
        state["decoder.mix.weight"] = state["decoder.mix.weight"].flatten(1)

    pointwise = not any(name.startswith("encoder.scales") for name in state)
    _check_complete(state, SIZES_FROM[pointwise])
    embedding, norm, bias, *coordinates = (state[name] for name in SIZES_FROM[pointwise])
    # Coordinates have a column for time too; a convolution has two axes beside those of space.
    told, patches = embedding.ndim - 2, (4, 16)
    if pointwise:
        told, patches = coordinates[0].shape[1] - 1, ()
    if told != ndim:
        raise ValueError(f"The checkpoint is of a {told}D model, not {ndim}D. Pass ndim to match.")
    channels = len(bias)
    model = vcnef(
        ndim,
        channels,
        params=embedding.shape[1] - channels - ndim,
        variant="release",
        width=len(norm),
        heads=heads,
        depth=depth,
        modulations=_count(theirs, r"vcnef\.layers\.(\d+)\."),
        patches=patches,
    )
    _check_complete(state, model.state_dict())
    model.load_state_dict(state)
    return model.eval()


def _state_dict(checkpoint: Mapping[str, Any] | str | Path) -> dict[str, Tensor]:
    if not isinstance(checkpoint, Mapping):
        checkpoint = _load(Path(checkpoint))
    weights = None
    if isinstance(checkpoint, Mapping):
        weights = checkpoint.get("model_state_dict", checkpoint)
    if not (isinstance(weights, Mapping) and weights and all(isinstance(each, Tensor) for each in weights.values())):
        raise ValueError(
            "The checkpoint is no state dict and has none under 'model_state_dict'. Pass the state dict of a model of "
            "the VCNeF release."
        )
    # Data-parallel and compiled models save their weights under a prefix.
    return {re.sub(r"^(module\.|_orig_mod\.)+", "", name): weight for name, weight in weights.items()}


def _check_complete(state: Mapping[str, Tensor], expected: Iterable[str]) -> None:
    missing = sorted(set(expected) - set(state))
    if missing:
        raise ValueError(f"The checkpoint lacks {', '.join(missing)} (our names). Pass a whole state dict.")


def _load(path: Path) -> Any:
    if not path.is_file():
        raise ValueError(f"There is no file {path}. Give the path of a .pt file of the release.")
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        # What torch says of it goes over many lines, and advises to run whatever code the file holds.
        raise ValueError(f"{path} is no checkpoint that can be read safely. Save its state dict alone.") from error


def _rename(name: str, places: Mapping[str, str]) -> str:
    for theirs, ours in PART_NAMES:
        renamed, hits = re.subn(f"^{theirs}(?=\\.)", ours, name)
        if hits:
            break
    else:
        raise ValueError(f"{name!r} is no weight of the VCNeF release. Pass the state dict of one of its models.")
    for theirs, ours in (*LAYERS.items(), *places.items()):
        renamed = renamed.replace(theirs, ours)
    return renamed


def _count(state: Mapping[str, Tensor], pattern: str) -> int:
    """Return how many layers there are, from their numbers in the names of weights."""
    matches = filter(None, (re.match(pattern, name) for name in state))
    return 1 + max((int(match[1]) for match in matches), default=-1)
