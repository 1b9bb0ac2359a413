"""The authors' code beside ours: loaded under another name, asked in our layout."""

import sys

import pytest
import torch

import vcnef
from vcnef.accelerate import predict
from vcnef.grid import cell_centres
from vcnef.models.release_code import load_release


@pytest.mark.parametrize("ndim", [1, 2])
@pytest.mark.parametrize("own_times", [False, True])
def test_layouts_are_converted(release, ndim, own_times):
    model = load_release(release, ndim=ndim, channels=2, params=1)
    sides = (3, 5)[:ndim]
    u0, grid, params = torch.randn(4, *sides, 2), cell_centres(((0.0, 1.0),) * ndim, sides), torch.rand(4, 1)
    t = torch.rand(4, 6) if own_times else torch.rand(6)
    times, values = t.expand(4, 6).view(4, 6, *[1] * (ndim + 1)), params.view(4, *[1] * (ndim + 2))
    expected = u0.unsqueeze(1) + times * grid[..., :1] + values
    assert torch.allclose(model(u0, grid, t, params), expected)
    assert torch.allclose(predict(model, u0, grid, t, params, points_per_chunk=7), expected)


def test_a_model_without_parameters(release):
    model = load_release(release / "vcnef", ndim=1, channels=1, d_model=3)
    grid, t = cell_centres(((0.0, 1.0),), (4,)), torch.tensor([0.5])
    assert torch.allclose(model(torch.zeros(1, 4, 1), grid, t)[0, 0], 3 * 0.5 * grid)


def test_our_package_stays_what_it_is(release):
    before = {name for name in sys.modules if name.split(".")[0] == "vcnef"}
    finders = list(sys.meta_path)
    load_release(release, ndim=1, channels=1)
    assert sys.modules["vcnef"] is vcnef
    assert {name for name in sys.modules if name.split(".")[0] == "vcnef"} == before
    assert sys.meta_path == finders
    assert not list(release.rglob("*.pyc"))


def test_what_is_not_the_release_is_refused(release, tmp_path):
    with pytest.raises(ValueError, match=r"is not the authors' release; expected a folder with vcnef/vcnef_1d.py"):
        load_release(tmp_path / "nowhere", ndim=1, channels=1)
    with pytest.raises(ValueError, match=r"does not give a 3D model .*; expected VCNeFModel in vcnef_3d.py"):
        load_release(release, ndim=3, channels=1)
    with pytest.raises(ValueError, match=r"The release has no option 'd_modl'. Did you mean 'd_model'"):
        load_release(release, ndim=1, channels=1, d_modl=8)
    (release / "vcnef" / "vcnef_2d.py").write_text("Something = 1\n")
    with pytest.raises(ValueError, match="does not give a 2D model"):
        load_release(release, ndim=2, channels=1)
