"""Rows of parameters, each predicted in a process of its own: what tables of measurements and sweeps have in common."""
