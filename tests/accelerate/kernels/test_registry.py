"""Every registered operation comes with a baseline and with examples that reach all of it."""

import inspect
from importlib import import_module
from itertools import chain
from pathlib import Path
from pkgutil import iter_modules
from runpy import run_path
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("triton")
from vcnef.accelerate import kernels
from vcnef.accelerate.kernels import registry
from vcnef.accelerate.kernels.formulas import ACTIVATIONS
from vcnef.accelerate.kernels.operation import Example, Operation, Sizes
from vcnef.accelerate.kernels.registry import OPERATIONS
from vcnef.accelerate.kernels.weights import BlockWeights

harness = SimpleNamespace(**run_path(str(Path(__file__).with_name("harness.py"))))

SIZES = [
    Sizes(width, heads, points, activation=activation, shared=shared)
    for width, heads, points, activation, shared in ((16, 2, 5, "relu", True), (32, 4, 7, "gelu", False))
]


def missing(operation):
    """What the examples of an operation leave out, as a sentence, or None."""
    found = [list(operation.examples(sizes)) for sizes in SIZES]
    if not all(found):
        return f"{operation.name} has no examples"
    labels = [example.label for example in found[0]]
    if len(set(labels)) < len(labels):
        return f"{operation.name} has several examples of one label: {labels}"
    if shapes(found[0]) == shapes(found[1]):
        return f"the examples of {operation.name} do not have the sizes that are asked for"
    taken = inspect.signature(operation.fast).parameters
    calls = [example.arrange(*example.inputs) for example in chain(*found)]
    named = [dict(inspect.signature(operation.fast).bind(*call).arguments) for call in calls]
    for name, parameter in taken.items():
        values = [call.get(name) for call in named]
        optional = "None" in str(parameter.annotation) and name != "tiling"
        if optional and len({value is None for value in values}) < 2:
            return f"no example of {operation.name} is one with, or one without, {name}"
        if name == "activation" and set(values) != set(ACTIVATIONS):
            return f"the examples of {operation.name} have the activations {set(values)} only"
        blocks = [value for value in values if isinstance(value, BlockWeights)]
        if blocks and {block.activation for block in blocks} != set(ACTIVATIONS):
            return f"the blocks in the examples of {operation.name} do not have every activation"
    return None


def shapes(examples):
    return [[each.shape for each in example.inputs] for example in examples]


def test_the_registry_has_every_operation_by_its_name():
    modules = [import_module(f"{kernels.__name__}.{each.name}") for each in iter_modules(kernels.__path__)]
    defined = {id(each): each for module in modules for each in vars(module).values() if isinstance(each, Operation)}
    assert {each.name for each in defined.values()} == set(OPERATIONS)
    assert len(defined) == len(OPERATIONS)
    assert all(name == operation.name for name, operation in OPERATIONS.items())
    assert all(each.differentiable for each in registry.TRAINING)


@pytest.mark.parametrize("name", [name for name in OPERATIONS if name != "adam"])
def test_examples_reach_all_of_an_operation(name):
    assert missing(OPERATIONS[name]) is None


def test_steps_of_adam_do_not_depend_on_a_models_sizes():
    assert "do not have the sizes" in missing(OPERATIONS["adam"])
    assert len(list(OPERATIONS["adam"].examples(SIZES[0]))) == 4


@pytest.mark.parametrize("name", OPERATIONS)
def test_examples_are_what_their_baseline_takes(name):
    operation = OPERATIONS[name]
    for example in operation.examples(SIZES[0]):
        if operation.differentiable:
            found = harness.values_and_gradients(example.baseline, example.inputs)
            assert all(bool(each.any()) for each in found), example.label
        else:
            found = harness.outcome(example.baseline, example.inputs)
        assert all(bool(each.isfinite().all()) for each in found), example.label


def scaled(x, factor, activation):
    return x


scaled.__annotations__ = {"x": torch.Tensor, "factor": torch.Tensor | None, "activation": str}


def never(**_):
    return None


@pytest.mark.parametrize(
    ("arranged", "complaint"),
    [
        ([], "has no examples"),
        ([lambda x: (x, x, "relu")], "without, factor"),
        ([lambda x: (x, x, "relu"), lambda x: (x, None, "relu")], "{'relu'} only"),
        ([lambda x: (x, x, "relu"), lambda x: (x, None, "gelu")], None),
    ],
)
def test_examples_that_leave_something_out_are_found(arranged, complaint):
    def examples(sizes):
        for place, arrange in enumerate(arranged):
            yield Example(str(place), [sizes.tokens()], [], arrange)

    operation = Operation("scaled", scaled, scaled, never, examples, differentiable=True, tolerance={})
    found = missing(operation)
    assert found is None if complaint is None else complaint in found


def test_examples_of_one_size_are_found():
    def examples(sizes):
        yield Example("a", [torch.zeros(3)], [], lambda x: (x, x, "relu"))

    operation = Operation("scaled", scaled, scaled, never, examples, differentiable=True, tolerance={})
    assert "sizes that are asked for" in missing(operation)


def test_a_call_is_one_of_the_fast_implementation():
    operation = Operation("sum", lambda x, y=0: x + y, sum, never, iter, differentiable=False, tolerance={})
    assert operation(1, y=2) == 3
