import json


def test_the_whole_road(vcnef, tmp_path):
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
