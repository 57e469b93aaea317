"""Hooks for third-party tuners: they search less, because drywarp predicts which configurations are worth measuring.

Each module is named after its package, which only needs to be installed to use the package's own classes.
"""
