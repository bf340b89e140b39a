"""The tool in a file, for commands that load tools from one."""

from shared import square

__all__ = ["square"]
