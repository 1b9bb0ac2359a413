"""Figures: arrays in, a matplotlib `Figure` out; nothing is shown, and no global state of matplotlib is touched.

1D fields are `[t x]`, 2D fields `[t x y]`, one channel at a time; `boxes` takes one time of a 3D field and `spectra`
many samples. Colours are safe for colour-blind readers and errors have a scale of their own. Save a figure with
`figure.savefig("name.png")`; `animate` writes its file itself.
"""

from vcnef.plots.animation import animate
from vcnef.plots.boxes import boxes
from vcnef.plots.costs import accuracy_cost, speed_memory
from vcnef.plots.curves import Band, error_over_time, super_resolution
from vcnef.plots.field_rows import fields
from vcnef.plots.heat_map import error_heat_map, relative_point_error
from vcnef.plots.space_time import space_time
from vcnef.plots.spectra import shell_energy, spectra
from vcnef.plots.violins import violins

__all__ = [
    "Band",
    "accuracy_cost",
    "animate",
    "boxes",
    "error_heat_map",
    "error_over_time",
    "fields",
    "relative_point_error",
    "shell_energy",
    "space_time",
    "spectra",
    "speed_memory",
    "super_resolution",
    "violins",
]
