"""The list of ablations: every change is one that its preset has, and does change it."""

from pathlib import Path

import pytest
import yaml

from vcnef.config import Config

ROOT = Path(__file__).parents[2]
CHANGES = yaml.safe_load((ROOT / "benchmarks" / "ablations.yaml").read_text(encoding="utf-8"))
CASES = [(case, label) for case, changes in CHANGES.items() for label in changes if label != "the preset"]


@pytest.mark.parametrize(("case", "label"), CASES)
def test_each_changes_the_preset(case, label):
    preset = Config.load(f"{case}/vcnef_plus")
    assert preset.override(CHANGES[case][label]).to_dict() != preset.to_dict()
