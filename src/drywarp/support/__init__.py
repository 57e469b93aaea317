"""Shared helpers that are not about GPUs: folders and locks, expressions, text and units."""
