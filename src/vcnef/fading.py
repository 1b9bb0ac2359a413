"""From which size on a field has died out: the one floor under every relative error that the package shows."""

FADED = 1e-3
"""A relative error divides by the size of the target, but by no less than this part of the largest root mean square
that the channel has in any frame of its trajectory, the initial state included: below are rounding errors."""
