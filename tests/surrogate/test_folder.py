"""A model folder that was damaged, or that asks for too much, is refused before it is used."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from vcnef.models.registry import MODELS
from vcnef.surrogate import Surrogate

SMALL = {
    "vcnef": {"width": 16, "heads": 2, "depth": 1, "modulations": 1},
    "galerkin": {"width": 8, "heads": 2, "depth": 1},
    "mp_pde": {"width": 8, "depth": 1, "bundle": 2},
    "coral": {"width": 8, "depth": 2, "latent": 4},
    "pinn": {"width": 8, "depth": 2},
    "fno": {"width": 4, "modes": 2},
}


def flipped(content, place):
    """Return the content with one bit changed."""
    changed = bytearray(content)
    changed[place] ^= 1 << place % 8
    return bytes(changed)


def test_flipped_bits_of_a_description_are_noticed(make_surrogate, tmp_path):
    make_surrogate().save(tmp_path)
    path = tmp_path / "config.json"
    content = path.read_bytes()
    generator = torch.Generator().manual_seed(0)
    for place in torch.randint(len(content), (60,), generator=generator).tolist():
        if content[place : place + 1].isspace():
            continue
        path.write_bytes(flipped(content, place))
        with pytest.raises(
            ValueError, match=r"config.json (is not a description|does not fit its checksum|has format)"
        ):
            Surrogate.load(tmp_path)


def test_flipped_bits_of_the_weights_are_noticed(make_surrogate, tmp_path):
    make_surrogate().save(tmp_path)
    path = tmp_path / "model.safetensors"
    content = path.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    generator = torch.Generator().manual_seed(0)
    for place in torch.randint(begin, len(content), (40,), generator=generator).tolist():
        path.write_bytes(flipped(content, place))
        with pytest.raises(ValueError, match=r"model.safetensors is damaged \(it does not fit its checksum\)"):
            Surrogate.load(tmp_path)


def test_a_folder_of_an_earlier_version_has_no_checksums(make_surrogate, tmp_path):
    make_surrogate().save(tmp_path)
    edit(tmp_path, lambda record: None)
    save_file(load_file(tmp_path / "model.safetensors"), tmp_path / "model.safetensors")
    assert Surrogate.load(tmp_path).name == "vcnef"


@pytest.mark.parametrize("options", [{"depth": 10**7}, {"width": 2 * 10**6}, {"modulations": 10**6}])
def test_a_description_of_a_huge_model_is_refused_before_it_is_built(make_surrogate, tmp_path, options):
    make_surrogate().save(tmp_path)
    edit(tmp_path, lambda record: record["model"]["options"].update(options))
    with pytest.raises(ValueError, match=r"describes a model that is larger than its \d+ weights in model.safetensors"):
        Surrogate.load(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_refused(make_surrogate, tmp_path, value):
    surrogate = make_surrogate()
    with torch.no_grad():
        next(surrogate.model.parameters()).view(-1)[0] = value
    surrogate.save(tmp_path)
    with pytest.raises(ValueError, match=r"has numbers in .* that are not finite. Train the model again"):
        Surrogate.load(tmp_path)


@pytest.mark.parametrize(
    ("kind", "named"), [(torch.complex64, r"is complex \("), (torch.int32, r"is torch.int32 \(")], ids=str
)
def test_weights_of_another_kind_are_refused(make_surrogate, tmp_path, kind, named):
    make_surrogate().save(tmp_path)
    path = tmp_path / "model.safetensors"
    try:
        save_file({name: value.to(kind) for name, value in load_file(path).items()}, path)
    except KeyError:
        pytest.skip(f"this safetensors writes no {kind}")
    with pytest.raises(ValueError, match=f"do not fit its model 'vcnef': .* {named}"):
        Surrogate.load(tmp_path)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_is_compared_with_its_weights_without_memory(make_data, tmp_path, model):
    surrogate = Surrogate.build(model, SMALL.get(model, {}), make_data(points=16), seed=0)
    surrogate.save(tmp_path)
    weights = Surrogate.load(tmp_path).model.state_dict()
    for name, value in surrogate.model.state_dict().items():
        assert torch.equal(weights[name], value)


def test_a_model_that_was_changed_by_hand_needs_its_own_builder(make_surrogate, tmp_path):
    surrogate = make_surrogate()
    surrogate.model.encoder = torch.nn.Sequential(surrogate.model.encoder)
    surrogate.save(tmp_path)
    with pytest.raises(
        ValueError, match=r"changed after it was built needs a name and a builder of its own in vcnef\."
    ):
        Surrogate.load(tmp_path)


def edit(folder, change):
    """Change a description as its user would, who has to delete the checksum."""
    record = json.loads((folder / "config.json").read_text())
    del record["checksum"]
    change(record)
    (folder / "config.json").write_text(json.dumps(record))


def _as_written_before(folder):
    """Take the padding out of a description, as versions wrote it in which the benchmark's was the default."""
    path = folder / "config.json"
    record = json.loads(path.read_text())
    del record["model"]["options"]["padding"], record["checksum"]
    path.write_text(json.dumps(record))


def test_an_fno_of_an_earlier_version_answers_to_the_bit_as_it_did(make_surrogate, tmp_path):
    """Its folder says nothing of padding, which was the benchmark's; a new one notes that it has none."""
    padded = make_surrogate(model="fno", options=SMALL["fno"] | {"padding": True})
    padded.save(tmp_path / "old")
    _as_written_before(tmp_path / "old")
    u0 = 0.6 + 0.8 * torch.rand(2, *(8,) * padded.problem.ndim, len(padded.problem.channels))
    known = dict.fromkeys(padded.problem.parameters, 0.01)
    t = [0.25 * padded.horizon, padded.horizon]
    old = Surrogate.load(tmp_path / "old")
    assert old.options["padding"] is True
    assert (old.predict(u0, t=t, params=known).values == padded.predict(u0, t=t, params=known).values).all()
    plain = make_surrogate(model="fno", options=SMALL["fno"])
    plain.save(tmp_path / "new")
    assert json.loads((tmp_path / "new" / "config.json").read_text())["model"]["options"]["padding"] is None
    new = Surrogate.load(tmp_path / "new")
    assert not any(new.model.stepper.padding)
    assert not (new.predict(u0, t=t, params=known).values == old.predict(u0, t=t, params=known).values).all()
    # A copy that is saved again says what it is.
    old.save(tmp_path / "again")
    assert any(Surrogate.load(tmp_path / "again").model.stepper.padding)
