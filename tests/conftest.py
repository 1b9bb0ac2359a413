"""Shapes and types of every annotated function are checked while the tests run; in production they cost nothing."""

import pytest
from jaxtyping import install_import_hook

install_import_hook("vcnef", "beartype.beartype")

import torch  # noqa: E402


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)
