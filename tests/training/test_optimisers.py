"""Which weights go to which optimiser, and the average of the weights."""

import pytest
import torch
from torch import nn

from vcnef.training import Recipe
from vcnef.training.muon import Muon
from vcnef.training.optimisers import Average, Together, build_optimiser, set_rate


def make_network():
    return nn.Sequential(nn.Linear(3, 32), nn.Linear(32, 32), nn.LayerNorm(32), nn.Linear(32, 1))


def test_muon_takes_the_inner_matrices():
    network = make_network()
    optimiser = build_optimiser(network, Recipe(optimiser="muon", weight_decay=0.1))
    assert isinstance(optimiser, Together)
    inner, others = optimiser.parts
    assert [weight is network[1].weight for weight in inner.param_groups[0]["params"]] == [True]
    assert len(others.param_groups[0]["params"]) == 7
    set_rate(optimiser, 0.5)
    assert all(part.param_groups[0]["lr"] == 0.5 for part in optimiser.parts)


def test_muon_without_inner_matrices_is_adamw():
    assert isinstance(build_optimiser(nn.Linear(3, 3), Recipe(optimiser="muon")), torch.optim.AdamW)


def test_muon_without_other_weights_is_alone():
    """Where the others are frozen, say."""
    network = nn.Linear(16, 16)
    network.bias.requires_grad_(False)
    assert isinstance(build_optimiser(network, Recipe(optimiser="muon")), Muon)


def test_together_makes_the_steps_of_its_parts():
    first, second = make_network(), make_network()
    second.load_state_dict(first.state_dict())
    recipe = Recipe(optimiser="muon", learning_rate=0.01)
    together = build_optimiser(first, recipe)
    alone = build_optimiser(second, recipe).parts
    for _ in range(3):
        for network in (first, second):
            network.zero_grad()
            network(torch.ones(4, 3)).square().mean().backward()
        together.step()
        for part in alone:
            part.step()
    for mine, other in zip(first.parameters(), second.parameters(), strict=True):
        assert torch.equal(mine, other)
    restored = build_optimiser(first, recipe)
    restored.load_state_dict(together.state_dict())
    assert torch.equal(
        restored.state_dict()["1"]["state"][0]["exp_avg"], together.state_dict()["1"]["state"][0]["exp_avg"]
    )
    set_rate(restored, 0.25)
    assert restored.parts[1].param_groups[0]["lr"] == 0.25


RATES = {"0": 0.1, "2": 0.5, "2.bias": 0.01}


@pytest.mark.parametrize("name", ["adam", "muon"])
def test_rates_by_the_names_of_the_weights(name):
    network = make_network()
    recipe = Recipe(optimiser=name, learning_rate=1.0, rates=RATES)
    optimiser = build_optimiser(network, recipe)
    restored = build_optimiser(make_network(), recipe)
    restored.load_state_dict(optimiser.state_dict())
    for each in (optimiser, restored):
        set_rate(each, 2.0)
    rates = {id(weight): group["lr"] for group in optimiser.param_groups for weight in group["params"]}
    found = {name: rates[id(weight)] for name, weight in network.named_parameters()}
    expected = {"0.weight": 0.2, "0.bias": 0.2, "1.weight": 2.0, "1.bias": 2.0, "2.weight": 1.0, "2.bias": 0.02}
    assert found == pytest.approx(expected | {"3.weight": 2.0, "3.bias": 2.0})
    assert [group["lr"] for group in restored.param_groups] == [group["lr"] for group in optimiser.param_groups]


def test_rates_that_mean_nothing():
    network = nn.ModuleDict({"siren": nn.Linear(2, 2), "dynamics": nn.Linear(2, 2)})
    with pytest.raises(
        ValueError, match=r"rates has 'sirne', with which no .* begins\. Did you mean 'siren'\? There are"
    ):
        build_optimiser(network, Recipe(rates={"sirne": 0.1}))
    with pytest.raises(ValueError, match=r"rates has 0\.0 for 'siren'; expected a number above 0\."):
        Recipe(rates={"siren": 0.0})


def test_the_average_follows_its_formula():
    network = nn.Linear(2, 1)
    average = Average(network, decay=0.5)
    expected = [weight.detach().clone() for weight in network.parameters()]
    for update in range(20):
        with torch.no_grad():
            for weight in network.parameters():
                weight += update + 1.0
        average.update()
        decay = min(0.5, (1 + update) / (10 + update))
        expected = [decay * a + (1 - decay) * w.detach() for a, w in zip(expected, network.parameters(), strict=True)]
    for value, each in zip(average.values, expected, strict=True):
        torch.testing.assert_close(value, each)


def test_the_average_is_in_use_for_a_while():
    network = nn.Linear(2, 1)
    average = Average(network, decay=0.9)
    start = network.weight.detach().clone()
    with torch.no_grad():
        network.weight += 1.0
    moved = network.weight.detach().clone()
    with average.in_use():
        assert torch.equal(network.weight, start)
    assert torch.equal(network.weight, moved)
    assert torch.equal(average.values[0], start)
