"""Changed models with fused kernels against their own method; run in Triton's interpreter."""

import interpreting  # noqa: F401, before any kernel is imported
import torch
from changes import build, changes, subclass

from vcnef.accelerate.engine import FastVCNeF, _engine
from vcnef.accelerate.kernels import launch
from vcnef.accelerate.kernels.weights import Tiling
from vcnef.accelerate.planner import PlanSetting

launch.TILINGS |= dict.fromkeys(launch.TILINGS, Tiling(16, 64, 4, 2))
CPU = torch.device("cpu")
ASKED = {
    *("", "encoder", "encoder.linear", "coordinates", "clocks", "decoder", "decoder.mlp.2"),
    *("blocks.0", "blocks.0.attention", "blocks.0.mlp.1", "blocks.0.mlp_norm", "blocks.1"),
    *("modulations.0", "modulations.0.attention.query", "modulations.0.local", "modulations.0.branch"),
    *("modulations.0.scale", "modulations.0.out", "modulations.0.attention_norm", "modulations.0.attention"),
}
"""Parts whose changes are asked about; `test_changes.py` has all, without kernels."""
FORMS = {"hook", "subclass", "parametrization", "eps", "heads"}


@torch.no_grad()
def answer(model, question, *, half, training):
    engine = _engine(model, PlanSetting(CPU, half, training=training))
    if training:
        return engine, (engine.forward if isinstance(engine, FastVCNeF) else engine.model)(*question)
    u0, grid, t, params = question
    (found,) = engine.query_in_parts(engine.encode(u0, grid, params), t, len(t))
    return engine, found


def differ(found, expected):
    return float((found - expected).norm() / expected.norm())


def check(half, tolerance, *, training):
    model, question = build("points", modulations=1)
    engine, plain = answer(model, question, half=half, training=training)
    fused = [part for part, how in engine.plan.items() if how.startswith("fused")]
    assert fused == ["blocks.0", "modulations.0", "decoder"], engine.plan
    count = 0
    for label, change in changes(model):
        form, part = label.split(" of ")
        if form not in FORMS or part not in ASKED:
            continue
        changed, _ = build("points", modulations=1)
        change(changed)
        try:
            with torch.no_grad():
                expected = changed(*question)
        except (AttributeError, TypeError):
            continue  # nothing can stand there: the method takes this part apart
        engine, found = answer(changed, question, half=half, training=training)
        assert differ(found, expected) < tolerance, (label, engine.plan)
        count += differ(expected, plain) > 5 * tolerance
    assert count > 30, f"only {count} of the changes changed the answer"


def check_decoder_with_weights():
    """What a decoder of one's own calls `weights` is nothing for the kernel of the last block."""
    model, question = build("points", modulations=2)
    subclass(model, "decoder")
    model.decoder.weights = None
    with torch.no_grad():
        expected = model(*question)
    _, found = answer(model, question, half=torch.float16, training=False)
    assert differ(found, expected) < 5e-4


check(torch.float16, 5e-4, training=False)
check_decoder_with_weights()
check(torch.float32, 1e-5, training=True)
