"""`python -m pgdyno`: the same as the command `pgdyno`."""

from pgdyno.cli import main

main()
