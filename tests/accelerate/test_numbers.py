"""Which numbers are multiplied, torch's switches for them, and processors that announce what they cannot do."""

import operator
import subprocess
import sys
from threading import Event, Thread

import pytest
import torch

import vcnef
from vcnef.accelerate import numbers, predict
from vcnef.accelerate.kernels.requirements import SWITCH
from vcnef.accelerate.numbers import HALF, multiplying, single_precision
from vcnef.grid import cell_centres


def state():
    return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize("choose", [multiplying, single_precision])
def test_single_precision_is_as_exact_as_asked_and_as_before_afterwards(choose):
    before = state()
    with choose("tf32"):
        assert state() == ("high", True)
        with choose("fp32"):
            assert state() == ("highest", False)
        assert state() == ("high", True)
    assert state() == before
    with pytest.raises(ZeroDivisionError), choose("tf32"):
        raise ZeroDivisionError
    assert state() == before


def take_a_turn():
    with multiplying("fp32"):
        pass


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_half_precision_leaves_the_switches_of_single_precision_to_others(name):
    before = state()
    with multiplying(name):
        assert state() == before
        thread = Thread(target=take_a_turn)
        thread.start()
        thread.join(5.0)
        assert not thread.is_alive()
    assert state() == before


def test_threads_that_choose_otherwise_take_turns():
    before, seen = torch.get_float32_matmul_precision(), []
    inside, first_is_done = Event(), Event()

    def second():
        with multiplying("fp32"):
            inside.set()
            first_is_done.wait(5.0)
            seen.append(torch.get_float32_matmul_precision())

    thread = Thread(target=second)
    with multiplying("tf32"):
        thread.start()
        assert not inside.wait(0.1)
        assert torch.get_float32_matmul_precision() == "high"
    first_is_done.set()
    thread.join()
    assert seen == ["highest"]
    assert torch.get_float32_matmul_precision() == before


SWITCHES = {"cuda.matmul": "tf32", "mkldnn.matmul": "bf16", "cudnn.conv": "ieee", "cudnn.rnn": "ieee"}
"""Those that torch has beside the older one, which does not answer any more where they are used."""


@pytest.fixture(params=SWITCHES)
def switch(request):
    """One of them as a caller may have left it."""
    place = operator.attrgetter(request.param)(torch.backends)
    default, place.fp32_precision = place.fp32_precision, SWITCHES[request.param]
    yield place
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = True
    place.fp32_precision = default


@pytest.mark.parametrize(("name", "inside"), [("fp32", "ieee"), ("tf32", "tf32"), ("fp16", None)])
def test_switches_are_as_the_caller_left_them_afterwards(switch, name, inside):
    before = switch.fp32_precision
    with multiplying(name):
        assert switch.fp32_precision == (inside or before)
    assert switch.fp32_precision == before


def test_an_unknown_precision_names_those_there_are():
    with (
        pytest.raises(ValueError, match="precision is 'fp8'; expected one of 'fp32', 'tf32', 'bf16', 'fp16'"),
        multiplying("fp8"),
    ):
        pass


@pytest.fixture
def question():
    """A model, what it is asked, and its own answer."""
    model = vcnef.build("vcnef", ndim=1, channels=1, width=16, heads=2, depth=1, modulations=2)
    inputs = torch.randn(2, 20, 1), cell_centres(((0.0, 1.0),), (20,)), torch.rand(3)
    return model, inputs, model(*inputs).detach()


@pytest.mark.parametrize("able", [False, True])
def test_a_cpu_predicts_in_full_precision_but_for_bf16_where_it_can(question, able, monkeypatch):
    if able and numbers.bf16_ends_the_process():
        pytest.skip("a product in bf16 would end this process")
    model, inputs, expected = question
    exact = predict(model, *inputs, precision="fp32")
    torch.testing.assert_close(exact, expected, rtol=1e-5, atol=1e-6)
    monkeypatch.setattr("vcnef.accelerate.engine.cpu_multiplies_bf16", lambda: able)
    for name in HALF:
        answer = predict(model, *inputs, precision=name)
        assert torch.equal(answer, exact) != (able and name == "bf16")
        assert answer.dtype == torch.float32
        assert (answer - exact).norm() < 0.01 * exact.norm()


def test_switched_off_every_precision_is_the_models_own(question, monkeypatch):
    model, inputs, expected = question
    monkeypatch.setenv(SWITCH, "0")
    for name in HALF:
        assert torch.equal(predict(model, *inputs, precision=name), expected)


# --- bf16 on a CPU --------------------------------------------------------------------------------------------------

ENDS = "import os, signal; os.kill(os.getpid(), signal.SIGILL)"
"""What a process does that takes the tiles of AMX for usable where they are hidden."""


@pytest.fixture
def processor(monkeypatch):
    """One that announces these instructions; a product in bf16 runs this code there. Gives how often it has run."""
    asked, run = [], subprocess.run

    def make(announced, code):
        monkeypatch.setattr(numbers, "_capabilities", lambda: dict.fromkeys(announced, True))
        monkeypatch.setattr(numbers, "PRODUCT", code)
        monkeypatch.setattr(numbers.subprocess, "run", lambda *given, **named: asked.append(1) or run(*given, **named))
        return asked

    numbers.bf16_ends_the_process.cache_clear()
    yield make
    numbers.bf16_ends_the_process.cache_clear()


@pytest.mark.parametrize(
    ("announced", "code", "ends", "multiplies"),
    [
        (("amx_tile", "amx_bf16", "avx512_bf16"), ENDS, True, False),
        (("amx_tile", "amx_bf16"), "pass", False, True),
        (("amx_tile", "amx_bf16"), "raise ImportError('no torch')", False, True),
        (("avx512_bf16",), ENDS, False, True),
        (("avx2",), ENDS, False, False),
        ((), ENDS, False, False),
    ],
)
def test_products_in_bf16_are_tried_once_in_a_process_of_their_own_where_tiles_are_announced(
    processor, announced, code, ends, multiplies
):
    asked = processor(announced, code)
    for _ in range(2):
        assert numbers.bf16_ends_the_process() == ends
        assert numbers.cpu_multiplies_bf16() == multiplies
    assert len(asked) == ("amx_tile" in announced)


def test_a_torch_that_knows_nothing_of_processors(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert not numbers._capabilities()
    assert not numbers.cpu_multiplies_bf16()


def test_where_bf16_is_said_to_be_multiplied_it_is():
    if not numbers.cpu_multiplies_bf16():
        pytest.skip("this processor has no products in bf16")
    assert subprocess.run([sys.executable, "-c", numbers.PRODUCT], timeout=120).returncode == 0
