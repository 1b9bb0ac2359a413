import numpy as np
import pytest
import torch

from vcnef.grid import as_sides, axes, cell_centres, spacing


def test_one_number_of_points_is_that_of_all_axes():
    assert as_sides(np.int64(8), 2) == (8, 8)
    assert as_sides([4, 8], 2) == (4, 8)
    assert torch.equal(cell_centres([(0.0, 1.0)], np.int64(4)), cell_centres([(0.0, 1.0)], (4,)))


def test_cell_centres_exclude_the_ends():
    grid = cell_centres([(0.0, 1.0)], 4)
    assert torch.equal(grid[:, 0], torch.tensor([0.125, 0.375, 0.625, 0.875]))


def test_axes_and_spacing_of_a_box():
    grid = cell_centres([(0.0, 1.0), (-1.0, 1.0), (0.0, 3.0)], (4, 8, 6))
    assert grid.shape == (4, 8, 6, 3)
    assert [len(line) for line in axes(grid)] == [4, 8, 6]
    assert torch.equal(grid[1, 2, 3], torch.stack([line[i] for line, i in zip(axes(grid), (1, 2, 3), strict=True)]))
    assert spacing(grid) == pytest.approx((0.25, 0.25, 0.5))


@pytest.mark.parametrize(("domain", "points"), [((0.0, 1.0), 20_000), ((1000.0, 1000.5), 128)])
def test_rounding_makes_no_grid_uneven(domain, points):
    low, high = domain
    assert spacing(cell_centres([domain], points)) == pytest.approx([(high - low) / points], rel=1e-4)
    with pytest.raises(ValueError, match="not uniform"):
        spacing(cell_centres([domain], points)[torch.arange(points) != points // 2])


def test_what_is_no_uniform_grid_is_refused():
    with pytest.raises(ValueError, match="not uniform"):
        spacing(torch.tensor([[0.0], [1.0], [3.0]]))
    with pytest.raises(ValueError, match="at least two points"):
        spacing(torch.zeros(1, 1))
    with pytest.raises(ValueError, match="not a tensor-product grid"):
        axes(torch.rand(10, 2))
    with pytest.raises(ValueError, match="does not fit 1 axes"):
        cell_centres([(0.0, 1.0)], (4, 4))
