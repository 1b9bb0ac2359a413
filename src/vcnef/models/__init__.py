"""Architectures, one per file, under one interface."""
