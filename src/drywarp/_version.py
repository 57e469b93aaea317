"""The version of drywarp, apart from the package itself so that any room may read it."""

__version__ = "0.1.0"
