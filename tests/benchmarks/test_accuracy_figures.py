"""`benchmarks/accuracy_figures.py`: a picture of every model that knows several parameter values."""

import pytest

import accuracy_figures


def test_values_are_in_order_and_unseen_ones_are_marked(measured):
    (axis,) = accuracy_figures.draw([measured[2]]).axes
    names = {label.get_text(): label.get_fontweight() for label in axis.get_xticklabels()}
    assert names == {"0.001": "bold", "0.002": "normal", "0.004": "normal", "0.01": "bold"}
    assert axis.get_xlabel() == "nu"


def test_single_values_have_none(measured, tmp_path, monkeypatch):
    several = measured[2]
    one = several | {"case": "burgers", "evaluations": several["evaluations"][:1]}
    monkeypatch.setattr(accuracy_figures, "read_results", lambda: [several, one])
    accuracy_figures.main(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["burgers_params.png"]


def test_no_picture_overwrites_another(measured):
    first = measured[2]
    second, other = first | {"seed": 4}, first | {"preset": "fno", "label": ""}
    ((name, runs),) = accuracy_figures.name_pictures([first, second])
    assert (name, runs) == ("burgers_params", [first, second])
    pictures = dict(accuracy_figures.name_pictures([first, other, second]))
    assert pictures == {
        "burgers_params_fno_seed3": [other],
        "burgers_params_vcnef_larger_batch_seed3_4": [first, second],
    }


def test_errors_of_all_seeds_are_drawn(measured, monkeypatch):
    drawn = []
    monkeypatch.setattr(accuracy_figures, "violins", lambda errors, **options: drawn.append((errors, options)))
    accuracy_figures.draw([measured[2]])
    accuracy_figures.draw([measured[2], measured[2] | {"seed": 4}])
    (one, options), (both, same) = drawn
    assert options == same
    assert both == {"vcnef": {value: 2 * errors for value, errors in one["vcnef"].items()}}


@pytest.mark.parametrize(("mean", "kept"), [(0.2, [0.1, 0.3]), (None, [0.1, None, 0.3])])
def test_trajectories_at_rest_are_not_drawn_as_not_finite(measured, monkeypatch, mean, kept):
    drawn = []
    monkeypatch.setattr(accuracy_figures, "violins", lambda errors, **options: drawn.append(errors))
    result = {"overall": {"nrmse": mean}}
    judged = [each | {"result": result, "nrmse": [0.1, None, 0.3]} for each in measured[2]["evaluations"]]
    accuracy_figures.draw([measured[2] | {"evaluations": judged}])
    assert all(errors == kept for errors in drawn[0]["vcnef"].values())
