"""Operations as fused Triton kernels, each in one file with its equations, its plain-PyTorch baseline and its examples.

`registry` collects them. It and the operations' files import Triton and are imported only where it is installed;
`requirements`, `weights`, `stencil`, `newton_schulz`, `formulas` and `operation` run anywhere.

Compiled code is kept between runs and found by the names of the custom operators ("vcnef::…") of the forward pass:
where the results of an operator change shape, or its backward operator changes its results or its name, the forward
operator needs a new name.
"""
