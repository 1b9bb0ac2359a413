"""`vcnef serve`: the explorer in the browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from vcnef.cli._options import Device

PATIENCE = 2.0
"""Seconds that Ctrl+C waits for answers under way."""


def serve(
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Run folders, the model folders inside, or packaged models' names; by default all those."),
    ] = None,
    host: Annotated[str, typer.Option(help="Name or address to serve at; by default only this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to serve at; 0 takes a free one.")] = 8765,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="Another name by which browsers may reach it, e.g. that of this machine; can be repeated."),
    ] = None,
    open_page: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    device: Device = None,
) -> None:
    """Explore trained models in the browser: vcnef serve runs/a runs/b

    Shape or draw an initial state, move parameters, time and resolution, and see the surrogate beside the classical
    solver. Stop it with Ctrl+C.
    """
    from vcnef.packaged import list_packaged, locate

    folders = list(dict.fromkeys(runs or map(Path, list_packaged())))
    for folder in folders:
        locate(folder)  # a mistyped path is answered before torch is imported

    import torch

    from vcnef.cli._reports import name_runs
    from vcnef.cli._surrogates import load_surrogate
    from vcnef.explorer import ExplorerServer, Workbench
    from vcnef.explorer.server import EVERYWHERE, LOCAL

    # The solver goes on in a thread of its own: it gets a core, or the two would wait for each other.
    torch.set_num_threads(max(1, min(torch.get_num_threads(), (os.cpu_count() or 2) - 1)))
    named = zip(name_runs(folders), folders, strict=True)
    workbench = Workbench({name: load_surrogate(run, device) for name, run in named})
    with ExplorerServer(workbench, host, port, allow_host or ()) as server:
        typer.echo(f"Explorer of {', '.join(workbench.names)} at {server.url} (Ctrl+C stops it).")
        if server.hosts != LOCAL:
            typer.echo(f"It answers to {', '.join(sorted(server.hosts))}.")
        elif host in EVERYWHERE:
            typer.echo("It answers to localhost alone. Give the name that others reach it by with --allow-host.")
        if open_page:
            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever(poll_interval=0.2)
        typer.echo("Stopped.")
        if not server.answering.stop(PATIENCE):
            # A thread that computes cannot be ended, and to end the interpreter under it aborts with a core dump.
            sys.stdout.flush()
            os._exit(0)
