"""``python -m agentkit``: the command line."""

from agentkit.cli.main import main

main()
