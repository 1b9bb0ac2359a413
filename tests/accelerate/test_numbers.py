import operator
from threading import Event, Thread

import pytest
import torch

import vcnef
from vcnef.grid import cell_centres
from vcnef.kernels import weights
from vcnef.kernels.precision import OPERANDS, operands, packed_once, precision
from vcnef.nn import fused


@torch.no_grad()
def test_kernels_are_chosen_by_the_caller_and_for_as_long_as_they_say():
    assert operands() is None
    with precision("fp16"):
        assert operands() == torch.float16
        with precision("fp32"):
            assert operands() is None
        assert operands() == torch.float16
        with torch.enable_grad():
            assert operands() is None
    assert operands() is None


def test_single_precision_is_as_exact_as_asked_and_as_before_afterwards():
    def state():
        return torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32

    before = state()
    with precision("tf32"):
        assert state() == ("high", True)
        with precision("fp32"):
            assert state() == ("highest", False)
        assert state() == ("high", True)
    with precision("fp16"):
        assert state() == before
    assert state() == before


def test_threads_that_choose_otherwise_take_turns():
    before, seen = torch.get_float32_matmul_precision(), []
    inside, first_is_done = Event(), Event()

    def second():
        with precision("fp32"):
            inside.set()
            first_is_done.wait(5.0)
            seen.append(torch.get_float32_matmul_precision())

    thread = Thread(target=second)
    with precision("tf32"):
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
    with precision(name):
        assert switch.fp32_precision == (inside or before)
    assert switch.fp32_precision == before


def test_an_unknown_precision_names_those_there_are():
    with (
        pytest.raises(ValueError, match="precision is 'fp8'; expected one of 'fp32', 'tf32', 'bf16', 'fp16'"),
        precision("fp8"),
    ):
        pass


def test_a_cpu_predicts_in_full_precision_but_for_bf16_where_it_can(monkeypatch):
    model = vcnef.build("vcnef", ndim=1, channels=1, width=16, heads=2, depth=1, modulations=2)
    inputs = torch.randn(2, 20, 1), cell_centres(((0.0, 1.0),), (20,)), torch.rand(3)
    expected = model.predict(*inputs, precision="fp32")
    torch.testing.assert_close(expected, model(*inputs), rtol=1e-5, atol=1e-6)
    for able in ((), (torch.bfloat16,)):
        monkeypatch.setattr(fused, "cpu_operands", lambda able=able: able)
        for name, dtype in OPERANDS.items():
            answer = model.predict(*inputs, precision=name)
            assert torch.equal(answer, expected) != (dtype in able)
            assert answer.dtype == torch.float32
            assert (answer - expected).norm() < 0.01 * expected.norm()
    monkeypatch.setenv(weights.SWITCH, "0")
    for name in OPERANDS:
        assert torch.equal(model.predict(*inputs, precision=name), model(*inputs))


def test_weights_are_packed_once_per_context_and_not_kept_after_it():
    with precision("fp16"):
        first = packed_once("block", list)
        assert packed_once("block", list) is first
        assert packed_once("other", list) is not first
        with precision("bf16"):
            assert packed_once("block", list) is not first
        assert packed_once("block", list) is first
    with precision("fp16"):
        assert packed_once("block", list) is not first
    assert packed_once("block", list) is not packed_once("block", list)


def test_a_variable_of_the_environment_switches_kernels_off(monkeypatch):
    monkeypatch.setenv("VCNEF_KERNELS", "0")
    assert weights._obstacle(torch.device("cuda"), torch.float32, 96, 8, 128) == "VCNEF_KERNELS is 0"
