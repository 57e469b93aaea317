"""`python -m drywarp`: the command line."""

from .cli.main import main

main()
