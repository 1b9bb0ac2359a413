"""What can go wrong with the folder of a run, and what it says then."""

import errno
import json
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning_fabric.plugins import Precision

from vcnef.surrogate import Surrogate
from vcnef.training import NonFiniteError, Recipe, fit
from vcnef.training.checkpoint import NUMBERS, RunFolder, State, _check_intact, terms_of
from vcnef.training.losses import mean_square
from vcnef.training.objectives import ask
from vcnef.training.optimisers import build_optimiser
from vcnef.whole import draft


@pytest.fixture
def folder(fit_quickly, tmp_path):
    fit_quickly(out=tmp_path / "run", epochs=2)
    return tmp_path / "run"


def test_a_run_leaves_model_state_and_log(folder):
    assert sorted(path.name for path in folder.iterdir()) == [".lock", "log.jsonl", "model", "state.pt"]
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    expected = {
        "epoch", "step", "steps", "loss", "valid_nrmse", "samples_per_second", "seconds", "seconds_left",
    }  # fmt: skip
    assert all(set(record) == expected for record in records)
    assert [(record["epoch"], record["step"], record["steps"]) for record in records] == [(1, 5, 10), (2, 10, 10)]
    surrogate = Surrogate.load(folder)
    assert surrogate.provenance["valid_nrmse"] == min(record["valid_nrmse"] for record in records)
    assert surrogate.provenance["recipe"]["epochs"] == 2


def test_a_used_folder_is_refused(fit_quickly, folder):
    with pytest.raises(FileExistsError, match=r"already holds a run \(state.pt, log.jsonl, model\). Resume it, choose"):
        fit_quickly(out=folder)


def test_the_empty_log_of_a_run_that_was_killed_as_it_began_is_no_run(fit_quickly, tmp_path):
    (tmp_path / "log.jsonl").touch()
    fit_quickly(out=tmp_path)
    assert (tmp_path / "state.pt").exists()


def test_two_runs_do_not_share_a_folder(fit_quickly, folder):
    with RunFolder(folder) as other:
        other.open(resume=True)
        with pytest.raises(FileExistsError, match=r"Another process is training in .*run at this moment\. Wait until"):
            fit_quickly(out=folder, epochs=3, arguments={"resume": True})
    assert len(fit_quickly(out=folder, epochs=3, arguments={"resume": True}).history) == 3


def test_a_run_that_is_refused_gives_its_folder_back(fit_quickly, folder):
    with pytest.raises(ValueError, match="was begun with learning_rate"):
        fit_quickly(out=folder, epochs=3, learning_rate=0.1, arguments={"resume": True})
    assert len(fit_quickly(out=folder, epochs=3, arguments={"resume": True}).history) == 3


def test_a_folder_with_a_configuration_only_is_accepted(fit_quickly, tmp_path):
    (tmp_path / "config.yaml").write_text("train: {}\n")
    fit_quickly(out=tmp_path)
    assert (tmp_path / "state.pt").exists()


def test_there_must_be_something_to_resume(fit_quickly, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no run in .*nowhere to resume\. Check the path, or start"):
        fit_quickly(out=tmp_path / "nowhere", arguments={"resume": True})
    with pytest.raises(ValueError, match="resume=True, but out is None: expected the folder"):
        fit_quickly(arguments={"resume": True})


def test_a_run_killed_before_its_first_state_starts_again(fit_quickly, tmp_path):
    (tmp_path / "log.jsonl").write_text('{"epoch": 1, "step": 5}\n{"epo')
    run = fit_quickly(out=tmp_path, arguments={"resume": True})
    assert [record["epoch"] for record in run.history] == [1]
    assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 1


def test_a_recipe_with_numbers_of_numpy_is_resumed(fit_quickly, tmp_path):
    recipe = {"learning_rate": np.logspace(-4, -3, 2)[1], "rates": {"decoder": np.float64(0.5)}}
    fit_quickly(out=tmp_path, **recipe)
    longer = fit_quickly(out=tmp_path, epochs=2, arguments={"resume": True}, **recipe)
    assert [record["epoch"] for record in longer.history] == [1, 2]


def test_resuming_otherwise_is_refused(fit_quickly, folder, data):
    with pytest.raises(ValueError, match=r"was begun with learning_rate=0.0003; the recipe now has 0.1\. Resume it as"):
        fit_quickly(out=folder, epochs=2, learning_rate=0.1, arguments={"resume": True})
    with pytest.raises(ValueError, match=r"had 5 steps per epoch; with these data it has 4\. Resume it with the data"):
        fit_quickly(out=folder, epochs=2, train=data.split("train", valid=0.3), arguments={"resume": True})


@pytest.mark.parametrize("writes", [True, False])
def test_only_the_process_that_wrote_the_state_goes_on_with_its_random_numbers(world, data, folder, writes):
    """Others that train with it would drop the same features and begin at the same frames."""
    surrogate, recipe = world.make_surrogate(data), Recipe(epochs=2, batch=4)
    record = torch.load(folder / "state.pt", weights_only=True)
    state = State(surrogate.model, build_optimiser(surrogate.model, recipe), Precision())
    torch.manual_seed(1)
    own = torch.get_rng_state()
    RunFolder(folder, writes=writes).restore(state, surrogate, terms_of(recipe, 5, surrogate))
    assert state.step == 10
    assert torch.equal(torch.get_rng_state(), record["random"] if writes else own)


def test_other_data_are_refused(world, data, folder):
    def resume(data):
        surrogate = world.make_surrogate(data)
        splits = data.split("train", valid=0.2), data.split("valid", valid=0.2)
        return fit(surrogate, *splits, Recipe(epochs=3, batch=4), out=folder, devices="cpu", resume=True)

    with pytest.raises(ValueError, match=r"was begun with other data: field_ranges=\{'u': \[-0.99.* Resume it with"):
        resume(replace(data, u=100 * data.u))
    with pytest.raises(ValueError, match=r"was begun with other data: parameters=\['nu'\], not \['mu'\]\. Resume it"):
        resume(replace(data, problem=replace(data.problem, parameters=("mu",), ranges={})))
    for change in (edited_late, moved):
        with pytest.raises(ValueError, match="was begun with other data of the same description: their values, or"):
            resume(change(data))
    assert len(resume(data).history) == 3


def edited_late(data):
    """The same, but for one value of the last frame of one trajectory that is trained on."""
    u = data.u.clone()
    u[-1, -1, 3] *= 0.5
    return replace(data, u=u)


def moved(data):
    return replace(data, grid=data.grid + 1e-3)


def test_a_state_of_an_earlier_version_is_resumed(world, data, folder):
    """It was begun on data in their order, and is refused where these are shuffled: test rows would be trained on."""
    record = torch.load(folder / "state.pt", weights_only=True)
    del record["data"], record["reserved"], record["recipe"]["physics_method"]
    torch.save(record, folder / "state.pt")

    def resume(data):
        splits = data.split("train", valid=0.2), data.split("valid", valid=0.2)
        given = {"out": folder, "devices": "cpu", "resume": True}
        return fit(world.make_surrogate(data), *splits, Recipe(epochs=3, batch=4), **given)

    with pytest.raises(
        ValueError, match=r"the first rows of the data as its test split; .* Split dataclasses\.replace"
    ):
        resume(data)
    assert len(resume(replace(data, split_in_order=True)).history) == 3


def test_a_resumed_run_knows_where_its_best_model_is_from(fit_quickly, folder):
    resumed = fit_quickly(out=folder, epochs=2, arguments={"resume": True}).surrogate.provenance
    saved = Surrogate.load(folder).provenance
    assert all(resumed[name] == saved[name] for name in ("epoch", "step", "valid_nrmse"))


def test_a_run_from_before_points_were_scaled(world, data, fit_quickly, folder, tmp_path):
    """Goes on where nothing has changed, and is not taken for another where it has."""

    def forget(folder):
        record = torch.load(folder / "state.pt", weights_only=True)
        del record["points"]
        torch.save(record, folder / "state.pt")

    forget(folder)
    assert len(fit_quickly(out=folder, epochs=3, arguments={"resume": True}).history) == 3

    def wide(**options):
        far = replace(data, grid=100 * data.grid, problem=replace(data.problem, domain=((0.0, 100.0),)))
        splits = far.split("train", valid=0.2), far.split("valid", valid=0.2)
        return fit(world.make_surrogate(far), *splits, Recipe(epochs=1, batch=4), out=tmp_path / "far", **options)

    wide(devices="cpu")
    wide(devices="cpu", resume=True)
    forget(tmp_path / "far")
    with pytest.raises(ValueError, match=r"was begun with points as they are; they would now be scaled by .*100"):
        wide(devices="cpu", resume=True)


@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_a_damaged_state_is_one_sentence(fit_quickly, folder, damage):
    content = (folder / "state.pt").read_bytes()
    (folder / "state.pt").write_bytes(content[: len(content) // 2] if damage == "cut" else b"nonsense" * 100)
    with pytest.raises(ValueError, match=r"state.pt is damaged or of another model \(.*\)\. Start the run again\.$"):
        fit_quickly(out=folder, epochs=2, arguments={"resume": True})


def test_flipped_bits_of_a_state_are_noticed(folder):
    """Or lie between the parts of the file, where they change nothing."""
    path = folder / "state.pt"
    content, before = path.read_bytes(), torch.load(path, weights_only=True)
    for place in torch.randint(len(content), (60,), generator=torch.Generator().manual_seed(0)).tolist():
        flipped = bytearray(content)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        try:
            _check_intact(path)
            after = torch.load(path, weights_only=True)
        except Exception:
            continue
        assert all(torch.equal(value, after["model"][name]) for name, value in before["model"].items())
        assert all(before[name] == after[name] for name in NUMBERS)


def test_a_state_of_another_model_is_refused(fit_quickly, folder):
    with pytest.raises(ValueError, match=r"state.pt is damaged or of another model \(Error\(s\) in loading state_dict"):
        fit_quickly(out=folder, epochs=2, options={"width": 8}, arguments={"resume": True})


def test_a_state_runs_no_code(fit_quickly, folder):
    class Trap:
        def __reduce__(self):
            return Path.touch, (folder / "trapped",)

    torch.save({"recipe": Trap()}, folder / "state.pt")
    with pytest.raises(ValueError, match="damaged or of another model"):
        fit_quickly(out=folder, epochs=2, arguments={"resume": True})
    assert not (folder / "trapped").exists()


def test_a_full_disk_leaves_the_previous_state(fit_quickly, tmp_path, monkeypatch):
    fsync, states = __import__("os").fsync, []

    def full_after_the_first_state(descriptor):
        if Path(f"/proc/self/fd/{descriptor}").readlink().name == draft(Path("state.pt")).name:
            states.append(descriptor)
            if len(states) > 1:
                raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr("os.fsync", full_after_the_first_state)
    sentence = r"Could not write .*state.pt: No space left on device\. What was saved before is intact; make room"
    with pytest.raises(OSError, match=sentence):
        fit_quickly(out=tmp_path / "run", epochs=3)
    assert torch.load(tmp_path / "run" / "state.pt", weights_only=True)["step"] == 5
    assert not list((tmp_path / "run").glob("*.part*"))
    monkeypatch.undo()
    run = fit_quickly(out=tmp_path / "run", epochs=3, arguments={"resume": True})
    assert [record["epoch"] for record in run.history] == [1, 2, 3]


def test_a_run_that_could_not_write_its_first_model_is_resumed(world, data, tmp_path, monkeypatch):
    """Without validation that is the only one, at the end."""

    def run(**options):
        recipe = Recipe(epochs=2, batch=8)
        return fit(world.make_surrogate(data), data, None, recipe, out=tmp_path, devices="cpu", **options)

    def full(folder, *_):
        folder.mkdir()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("vcnef.surrogate.folder.save", full)
    with pytest.raises(OSError, match="No space left"):
        run()
    monkeypatch.undo()
    assert torch.load(tmp_path / "state.pt", weights_only=True)["step"] == 3
    run(resume=True)
    assert Surrogate.load(tmp_path).provenance["epoch"] == 2


def test_a_log_that_cannot_be_written(fit_quickly, tmp_path, monkeypatch):
    opened = Path.open

    def full(path, mode="r", **rest):
        if path.name == "log.jsonl" and mode == "a":
            raise OSError(errno.ENOSPC, "No space left on device")
        return opened(path, mode, **rest)

    monkeypatch.setattr(Path, "open", full)
    with pytest.raises(OSError, match=r"Could not write .*log.jsonl: No space left on device\. The saved state is"):
        fit_quickly(out=tmp_path / "run")


def test_a_loss_that_is_not_finite_stops_the_run(fit_quickly, tmp_path):
    def poisoned(model, batch, progress):
        return mean_square(ask(model, batch), batch.u) * (torch.nan if progress > 0.5 else 1.0)

    sentence = r"The loss is no longer finite, noticed at step 15 of 20\. The last good state is kept; try a smaller"
    with pytest.raises(NonFiniteError, match=sentence):
        fit_quickly(out=tmp_path, epochs=4, arguments={"objective": poisoned})
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert state["step"] == 10
    assert all(value.isfinite().all() for value in state["model"].values())


@pytest.mark.parametrize(
    ("begins", "kept"), [(0.0, "There was nothing to keep yet"), (0.5, "The best weights are kept")]
)
def test_a_run_without_a_state_does_not_tell_of_one(fit_quickly, begins, kept):
    def poisoned(model, batch, progress):
        return mean_square(ask(model, batch), batch.u) * (torch.nan if progress > begins else 1.0)

    with pytest.raises(NonFiniteError, match=rf"of 10\. {kept}; try a smaller"):
        fit_quickly(epochs=2, arguments={"objective": poisoned})


def test_a_loss_that_is_not_finite_is_noticed_within_an_epoch(fit_quickly, monkeypatch):
    """When the time for a report has come; here after every step."""

    def poisoned(model, batch, progress):
        return mean_square(ask(model, batch), batch.u) * (torch.nan if progress > 0.5 else 1.0)

    monkeypatch.setattr("vcnef.training.progress.SECONDS_BETWEEN_REPORTS", 0.0)
    with pytest.raises(NonFiniteError, match="noticed at step 11 of 20"):
        fit_quickly(epochs=4, arguments={"objective": poisoned})


def test_a_loss_of_another_process_that_is_not_finite_stops_this_one_too(fit_quickly, monkeypatch):
    monkeypatch.setattr(import_module("vcnef.training.fit"), "mean_over", lambda fabric, mine: mine + float("inf"))
    with pytest.raises(NonFiniteError, match="The loss is no longer finite, noticed at step 5 of 5"):
        fit_quickly()


def test_weights_that_are_not_finite_stop_the_run(fit_quickly, tmp_path):
    class Steep(torch.autograd.Function):
        forward = staticmethod(lambda ctx, loss: loss.clone())
        backward = staticmethod(lambda ctx, gradient: gradient * torch.inf)

    with pytest.raises(NonFiniteError, match=re.escape("The weights are no longer finite, noticed at step 1 of 1.")):
        fit_quickly(
            out=tmp_path, batch=20,
            arguments={"objective": lambda m, b, p: Steep.apply(mean_square(ask(m, b), b.u))},
        )  # fmt: skip
    assert not (tmp_path / "state.pt").exists()
