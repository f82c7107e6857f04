"""`python -m mixent`: the command line."""

from mixent.cli import main

main()
