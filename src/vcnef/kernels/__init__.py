"""Fused GPU kernels for inference, each beside its plain-PyTorch twin, which defines what is right and runs anywhere.

Kernels are in Triton and know tensors only. Nothing here imports Triton before a kernel runs.
"""
