"""Fused GPU kernels for inference and training, beside the plain PyTorch that defines what is right and runs anywhere.

Kernels are in Triton and know tensors only. Nothing here imports Triton before a kernel runs.
"""
