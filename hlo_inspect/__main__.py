"""`python -m hlo_inspect`."""

from hlo_inspect.cli.main import main

main()
