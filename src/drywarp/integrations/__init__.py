"""Hooks for other people's tuners: each searches less, because drywarp predicts what is worth a measurement.

A module is named after the package that it is for, which has to be installed only where its own classes are needed.
"""
