"""Every kernel in the tiles that it has on a GPU: the compiler refuses things that the interpreter lets pass."""

import torch
from compiling import compiled
from twins_of_layers import cases, mixing_cases, values_and_gradients

from conftest import Case
from vcnef.kernels import adam, modulation, orthogonal
from vcnef.kernels.layers import launch
from vcnef.kernels.weights import DecoderWeights

for _, layer, _, inputs in (*cases(96, 8, 64, "gelu"), *mixing_cases(256, 8)):
    values_and_gradients(layer, inputs, torch.float16)
expected = {*launch.TILINGS, "mix_neighbours"}
assert compiled == expected, compiled ^ expected

compiled.clear()
orthogonal.orthogonalise(torch.randn(1, 96, 96), (1.0, 1.0, 1.0), 5)
for rate in (0.1, torch.tensor(0.1)):
    adam.update(torch.zeros(1, 6, dtype=torch.long), torch.ones(3), rate, (0.9, 0.99), 1e-8, 0.1, decoupled=True)
case = Case(96, 8, 64, torch.nn.GELU)
weights, tokens, field = case.weights(torch.float16), case.tokens.half(), case.field.half()
mixed = modulation.mix(tokens, weights)
modulation.transform(tokens, *mixed, weights, tokens)
modulation.modulate(*modulation.attend(tokens, *mixed, weights), field, weights)
shapes = {"norm": (96,), "first": (96, 96), "second": (2, 96)}
parts = {name: (torch.ones(shape), torch.ones(shape[0])) for name, shape in shapes.items()}
decoder = DecoderWeights.pack(torch.float16, eps=1e-5, **parts)
modulation.apply(tokens, *mixed, field, weights)
modulation.apply(tokens, *mixed, field, weights, decoder=decoder)
modulation.decode(tokens, decoder)
expected = {"orthogonalise", "adam", "mix", "apply", "attend", "decode"}
assert compiled == expected, compiled ^ expected
