"""`benchmarks/accuracy_figures.py`: a picture of every model that knows several parameter values."""

import accuracy_figures


def test_values_are_in_order_and_unseen_ones_are_marked(measured):
    (axis,) = accuracy_figures.draw(measured[2]).axes
    names = {label.get_text(): label.get_fontweight() for label in axis.get_xticklabels()}
    assert names == {"0.001": "bold", "0.002": "normal", "0.004": "normal", "0.01": "bold"}
    assert axis.get_xlabel() == "nu"


def test_single_values_have_none(measured, tmp_path, monkeypatch):
    several = measured[2]
    one = several | {"case": "burgers", "evaluations": several["evaluations"][:1]}
    monkeypatch.setattr(accuracy_figures, "read_results", lambda: [several, one])
    accuracy_figures.main(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["burgers_params.png"]
