"""``python -m agentkit``: the command line, where its script is not on the path."""

from agentkit.cli.main import main

if __name__ == "__main__":
    main(prog_name="agentkit")
