"""Shared helpers that are not about GPUs: folders and locks, growing files, expressions, text and units, processes."""
