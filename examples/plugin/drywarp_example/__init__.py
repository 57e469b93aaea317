"""What this package adds to drywarp stands in its pyproject.toml."""
