"""Run a command in a terminal of its own and draw what it prints as a picture.

    python docs/images/record.py OUT.svg --without 5 -- agentkit demo

Standard error, where progress goes, is left out, and so are the steps that are named; everything
else is as the command wrote it.
"""

from __future__ import annotations

import argparse
import fcntl
import io
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

WIDTH = 84
"""Columns: what a README shows without shrinking the letters."""


def recorded(command: list[str], columns: int) -> str:
    """What a command prints on a terminal, with its colours.

    Raises:
        CalledProcessError: It failed.
    """
    own, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=its, env=environment) as process:  # noqa: S603 - given
        os.close(its)
        text = b""
        while part := _read(own):
            text += part
            sys.stdout.buffer.write(part)
            sys.stdout.flush()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return text.decode().replace("\r\n", "\n")


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # Linux reports the end of a terminal so
        return b""


def _without(text: str, steps: list[int]) -> str:
    """The text without the paragraphs that begin with one of these numbers."""
    parts = text.strip("\n").split("\n\n")
    numbers = tuple(f"{step}  " for step in steps)
    return "\n\n".join(
        one for one in parts if not numbers or not Text.from_ansi(one).plain.startswith(numbers)
    )


def main() -> None:
    """Record the command and write the picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("command", nargs="+")
    parser.add_argument("--columns", type=int, default=WIDTH)
    parser.add_argument("--without", type=int, nargs="*", default=[], help="steps to leave out")
    given = parser.parse_args()
    text = _without(recorded(given.command, given.columns), given.without)
    typed = shlex.join([Path(given.command[0]).name, *given.command[1:]])
    console = Console(record=True, width=given.columns, file=io.StringIO(), highlight=False)
    console.print(Text(f"$ {typed}\n", style="bold"))
    console.print(Text.from_ansi(text))
    picture = console.export_svg(title=typed, theme=MONOKAI)
    own = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)  # pictures fetch nothing
    given.out.write_text(own, encoding="utf-8")


if __name__ == "__main__":
    main()
