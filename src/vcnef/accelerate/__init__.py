"""Everything fast, behind one seam: `predict` and `training` ask `engine` how to compute a model; `explain` says it."""

from vcnef.accelerate.explain import explain
from vcnef.accelerate.predict import Predictor, points_in_flight, predict

__all__ = ["Predictor", "explain", "points_in_flight", "predict"]
