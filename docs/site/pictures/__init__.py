"""Pictures of the pages, drawn from simulations. `python -m docs.site.pictures` writes those that the pages include."""
