"""Which columns of a table become macros, and whether a recipe names columns that the table has."""

from __future__ import annotations

from ..rows.recipe import Recipe, named_columns
from .table import Table


def check(recipe: Recipe, table: Table) -> tuple[str, ...]:
    """The columns that become macros. Raises where the recipe names a column that the table lacks."""
    for name in (*(recipe.macros or ()), *sorted(named_columns(recipe.entry) - set(recipe.defines))):
        table.column(name)
    return tuple(table.parameters if recipe.macros is None else recipe.macros)
