"""`vcnef presets`: what can be run."""

from __future__ import annotations


def presets() -> None:
    """List the presets for `vcnef train`, with their models and epochs."""
    from vcnef.cli._tables import print_table
    from vcnef.config import Config
    from vcnef.presets import list_presets

    rows = []
    for name, headline in list_presets().items():
        config = Config.load(name)
        rows.append((name, config.model.name, str(config.train.epochs), headline))
    print_table(("preset", "model", "epochs", ""), rows)
