"""Rows of parameters, predicted in worker processes: the common part of validation tables and sweeps."""
