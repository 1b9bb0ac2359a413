"""`benchmarks/composed.py`: the same question for every model, in turn."""

import composed


def test_all_answer_the_same_question():
    found = composed.compare(1, samples=2, frames=8, points=32, device="cpu", rounds=1)
    assert list(found) == ["direct", "fno", "windows of 1", "windows of 4"]
    assert found["direct"]["ratio"] == 1.0
    assert all(each["seconds"] > 0 for each in found.values())


def test_windows_are_as_long_as_they_are_called():
    built = composed.surrogates(2, frames=8, points=32)
    assert {name: each.window for name, each in built.items()} == {
        "direct": 1.0,
        "fno": 1.0,
        "windows of 1": 1 / 8,
        "windows of 4": 4 / 8,
    }
    assert built["direct"].model.ndim == 2
