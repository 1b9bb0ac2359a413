"""`benchmarks/solver_settings.py`: schemes and settings side by side."""

import torch

import solver_settings


def test_schemes_and_settings_are_compared(monkeypatch, capsys):
    monkeypatch.setattr(solver_settings, "STIFFNESS", (2.0,))
    monkeypatch.setattr(solver_settings, "TOGETHER", (1, 4, 32))
    monkeypatch.setattr(solver_settings, "SOLVERS", {"advection": ({"beta": 1.0}, 16, 0.1)})
    solve = solver_settings.equation("advection").__class__.solve
    # Compiling takes seconds.
    monkeypatch.setattr(
        solver_settings.equation("advection").__class__, "solve",
        lambda self, *given, compiled=None, **more: solve(self, *given, **more),
    )  # fmt: skip
    monkeypatch.setattr(torch, "set_num_threads", lambda count: None)
    solver_settings.main(["--rounds", "1", "--points", "16", "--solvers", "advection"])
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    _, scheme, _, settings = lines
    assert scheme.startswith("| 16 | 2 | ")
    errors = [float(cell) for cell in scheme.split("|")[-3:-1]]
    assert 0 < errors[0] < 0.1
    assert abs(errors[0] - errors[1]) < 0.1 * errors[0]
    assert settings.startswith("| advection | 16 | ")
    assert settings.count(" ms |") == 6
