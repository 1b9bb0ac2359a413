"""Models of `vcnef benchmark`: by name, with options in brackets; trained ones; and the authors' release."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from vcnef.cli._benchmarks import SIZES
from vcnef.cli._settings import parse_settings
from vcnef.config import Config
from vcnef.models.interface import TrajectoryModel
from vcnef.models.registry import MODELS, build, option_names
from vcnef.models.release_code import load_release
from vcnef.packaged import list_packaged
from vcnef.workflow import load

RELEASE = "release"
"""The authors' own code, among the models."""


def choose_models(names: str, ndim: int, points: int, release: Path | None) -> dict[str, TrajectoryModel]:
    """Return models by name, by the folder of a run, or packaged ones, each under what it was called.

    "all" leaves out those that are not for this dimension, and those whose cost is their training. The authors' release
    joins in where its folder is given.
    """
    words = _every_model(ndim) if names == "all" else split_names(names)
    if release is not None and not any(word.partition("[")[0] == RELEASE for word in words):
        words.append(RELEASE)
    if not words:
        raise ValueError("--models names no model; write their names, e.g. --models vcnef,fno, or all.")
    return {word: _build(word, ndim, points, release) for word in words}


def split_names(text: str) -> list[str]:
    """Split at commas, except those between brackets."""
    words, depth = [""], 0
    for letter in text:
        depth += (letter == "[") - (letter == "]")
        if letter == "," and not depth:
            words.append("")
        else:
            words[-1] += letter
    return [word.strip() for word in words if word.strip()]


def _every_model(ndim: int) -> list[str]:
    described = {name: _describe(name, ndim) for name in MODELS}
    return [name for name, model in described.items() if model is not None and not model.one_instance]


def _describe(name: str, ndim: int) -> TrajectoryModel | None:
    """Return the model without its weights, or None where there is none of this dimension."""
    try:
        with torch.device("meta"):
            return build(name, **_sizes(ndim))
    except ValueError:
        return None


def _build(word: str, ndim: int, points: int, release: Path | None) -> TrajectoryModel:
    name, settings = _read(word)
    if name == RELEASE:
        return _load_release(release, ndim, settings)
    if name not in MODELS and (Path(word).is_dir() or word in list_packaged()):
        return _load_trained(word, ndim)
    if name in MODELS and _describe(name, ndim) is None:
        there = ", ".join(each for each in MODELS if _describe(each, ndim) is not None)
        raise ValueError(f"Model {name!r} does not exist in {ndim}D; expected one of {there}. Leave it out.")
    known = option_names(name) if name in MODELS else []
    facts = {"steps": SIZES[ndim].frames, "sides": (points,) * ndim}
    options = {option: value for option, value in facts.items() if option in known} | _parse(name, settings)
    return build(name, **_sizes(ndim), **options)


def _sizes(ndim: int) -> dict[str, int]:
    return {"ndim": ndim, "channels": SIZES[ndim].channels, "params": SIZES[ndim].params}


def _load_release(folder: Path | None, ndim: int, settings: Sequence[str]) -> TrajectoryModel:
    if folder is None:
        raise ValueError("'release' is the authors' code, which vcnef does not have. Give its folder: --release PATH.")
    return load_release(folder, **_sizes(ndim), **parse_settings(settings, "--models"))


def _load_trained(name: str, ndim: int) -> TrajectoryModel:
    model = load(name).model
    if model.ndim != ndim:
        raise ValueError(f"{name} is a {model.ndim}D model, but --ndim is {ndim}. Use --ndim {model.ndim}.")
    return model


def _read(word: str) -> tuple[str, list[str]]:
    """`vcnef[attention=softmax,local=3]` -> vcnef and its settings."""
    found = re.fullmatch(r"([^\[\]]+)(?:\[(.+)\])?", word)
    # A list is written 4,16: only a comma before another name separates settings.
    settings = re.split(r",\s*(?=\w+=)", found[2]) if found and found[2] else []
    if not found or not all(re.match(r"\w+=.", setting) for setting in settings):
        raise ValueError(f"--models {word} is not understood; write options as vcnef[attention=softmax,local=3].")
    return found[1], settings


def _parse(name: str, settings: Sequence[str]) -> dict[str, Any]:
    """Return values as `vcnef train --set` reads them."""
    if not settings:
        return {}
    config = Config.parse({"model": {"name": name}})
    return dict(config.override([f"model.options.{setting}" for setting in settings]).model.options)
