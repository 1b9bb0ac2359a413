import json

from vcnef.config import Config


def test_the_whole_road(vcnef, tmp_path):
    earlier = Config.load("demo/vcnef").override(["minutes=9"])
    earlier.save(tmp_path / "runs" / "vcnef" / "config.yaml")
    code, out, _ = vcnef("demo", "--out", tmp_path, "--minutes", 0.03, "--samples", 24)
    assert code == 0
    assert "nRMSE at 256 points" in out
    for name in ("vcnef", "fno"):
        assert json.loads((tmp_path / "runs" / name / "metrics.json").read_text())["model"] == name
        assert (tmp_path / "figures" / name / "median.png").stat().st_size > 10_000
    page = (tmp_path / "report.html").read_text()
    assert f"Wrote {tmp_path / 'report.html'}" in out
    assert "2 runs compared: vcnef and fno on burgers" in page
    assert page.count('alt="vcnef: Median trajectory') == page.count('alt="fno: Median trajectory') == 1
    assert page.count("<h3>") > 4


def test_only_runs_of_the_demo_are_replaced(vcnef, tmp_path):
    """Runs of one's own are called so, too: the tour has runs/vcnef and runs/fno."""
    mine = tmp_path / "runs" / "fno"
    Config.load("debug/fno1d").save(mine / "config.yaml")
    code, _, err = vcnef("demo", "--out", tmp_path, "--minutes", 0.01, "--samples", 24)
    assert (code, err.count("\n")) == (2, 1)
    assert f"{mine} holds another run, which the demo would replace. Choose another --out." in err
    assert [each.name for each in tmp_path.iterdir()] == ["runs"]
    assert Config.load(mine / "config.yaml") == Config.load("debug/fno1d")


def test_minutes_are_refused_before_data_are_made(vcnef, tmp_path):
    code, out, err = vcnef("demo", "--out", tmp_path, "--minutes", 0)
    assert (code, out, err) == (2, "", "minutes is 0.0; expected a number above 0.\n")
    assert not list(tmp_path.iterdir())
