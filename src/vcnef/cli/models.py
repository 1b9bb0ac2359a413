"""`vcnef models`: what can be built."""

from __future__ import annotations

from typing import Any

import typer


def models() -> None:
    """List the models, with the number of weights that their defaults have for one field in 1D, 2D and 3D.

    Below them stand the trained ones that come with the library, which every verb takes in place of a run folder.
    """
    from vcnef.cli._tables import print_table
    from vcnef.models.registry import list_models
    from vcnef.packaged import list_packaged

    rows = [(name, _count(name, 1), _count(name, 2), _count(name, 3), line) for name, line in list_models().items()]
    print_table(("model", "1D", "2D", "3D", ""), rows)
    packaged = list_packaged()
    if packaged:
        typer.echo("")
        print_table(("trained", ""), list(packaged.items()))


def _count(name: str, ndim: int) -> str:
    """Return the number of weights of the default model, whose memory is reserved but never written to."""
    from torch import empty, nn, rand, randn
    from torch.overrides import TorchFunctionMode

    from vcnef.cli._tables import count_weights
    from vcnef.models.registry import build

    drawn = (nn.init.normal_, nn.init.uniform_, nn.init.kaiming_uniform_)

    class WithoutValues(TorchFunctionMode):
        """Draw no weights. The meta device would do too, but it imports PyTorch's compiler, which takes a second."""

        def __torch_function__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
            options = options or {}
            if function in drawn:
                return options["tensor"]
            if function in (rand, randn):
                return empty(*arguments, **options)
            return function(*arguments, **options)

    try:
        with WithoutValues():
            return count_weights(build(name, ndim=ndim, channels=1))
    except ValueError:  # the model is not for this dimension
        return "-"
