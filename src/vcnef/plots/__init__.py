"""Figures: arrays in, a matplotlib `Figure` out; nothing is shown, and no global state of matplotlib is touched.

1D fields are `[t x]`, 2D fields `[t x y]`, one channel at a time. Colours are safe for colour-blind readers and
errors have a scale of their own. Save a figure with `figure.savefig("name.png")`.
"""

from vcnef.plots.curves import error_over_time, super_resolution
from vcnef.plots.fields import fields
from vcnef.plots.heat_map import error_heat_map, relative_point_error
from vcnef.plots.space_time import space_time

__all__ = [
    "error_heat_map",
    "error_over_time",
    "fields",
    "relative_point_error",
    "space_time",
    "super_resolution",
]
