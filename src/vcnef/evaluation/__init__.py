"""How good a trained model is: errors, super-resolution in space and time, parameter values, time and memory.

`evaluate(surrogate, data)` gives an `Evaluation`: a record with `to_dict` for JSON and `table` for people. `speed`
measures models, `cost` a surrogate beside the classical solver, and `predict_trajectories` gives fields for figures.
"""

from vcnef.evaluation.cost import Cost
from vcnef.evaluation.evaluate import evaluate, predict_trajectories
from vcnef.evaluation.record import Evaluation, Group, Result
from vcnef.timing import peak_memory, time_model

__all__ = [
    "Cost",
    "Evaluation",
    "Group",
    "Result",
    "evaluate",
    "peak_memory",
    "predict_trajectories",
    "time_model",
]
