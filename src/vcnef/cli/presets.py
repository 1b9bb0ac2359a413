"""`vcnef presets`: what can be run."""

from __future__ import annotations


def presets() -> None:
    """List the presets for `vcnef train`, with their models and epochs."""
    from vcnef.cli._tables import print_table
    from vcnef.presets import summarise_presets

    rows = [(each.name, each.model, str(each.epochs), each.headline) for each in summarise_presets()]
    print_table(("preset", "model", "epochs", ""), rows)
