import torch

from vcnef.grid import cell_centres
from vcnef.nn.patching import continue_field, continue_grid, patch_points, whole_sides


def test_whole_sides():
    assert whole_sides((16, 17, 1), (4, 16)) == (16, 32, 16)
    assert whole_sides((6,), (4, 6)) == (12,)


def test_a_periodic_field_is_continued_by_itself():
    x = cell_centres([(0.0, 1.0)], 10, dtype=torch.float64)
    field = torch.sin(2 * torch.pi * x).unsqueeze(0)
    longer = continue_grid(x.unsqueeze(0), (33,))
    torch.testing.assert_close(continue_field(field, (33,), (True,)), torch.sin(2 * torch.pi * longer))


def test_a_field_that_is_not_periodic_is_continued_by_its_last_values():
    field = torch.arange(6.0).view(1, 2, 3, 1)
    longer = continue_field(field, (4, 4), (False, False))
    assert longer[0, :, :, 0].tolist() == [[0, 1, 2, 2], [3, 4, 5, 5], [3, 4, 5, 5], [3, 4, 5, 5]]


def test_patch_points_are_centres_or_corners():
    grid = cell_centres(((0.0, 1.0), (0.0, 2.0)), (8, 8)).unsqueeze(0)
    centres = patch_points(grid, 4, 1)
    torch.testing.assert_close(centres[0, :, 0], cell_centres(((0.0, 1.0), (0.0, 2.0)), (2, 2)).flatten(0, 1))
    corners = patch_points(grid, 4, 2)
    assert torch.equal(corners[0, 1, 0], grid[0, 0, 4])
    assert torch.equal(corners[0, 1, 1], grid[0, 3, 7])
