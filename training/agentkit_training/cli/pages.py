"""``PAGE``: where a command writes a page, looked at before anything is done."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click


class _Page(click.Path):
    """A file that can be written at the end, as its folder is there."""

    def __init__(self) -> None:
        super().__init__(dir_okay=False, writable=True, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The file.

        Raises:
            click.BadParameter: It is a folder, or its own folder is absent or can not be written.
        """
        page = Path(os.fsdecode(super().convert(value, param, ctx)))
        folder = page.parent
        if not folder.is_dir():
            self.fail(
                f"the folder {folder} is not there; make it, or give a file in another", param, ctx
            )
        if not os.access(folder, os.W_OK):
            self.fail(f"the folder {folder} can not be written; give a file in another", param, ctx)
        return page


PAGE = _Page()
"""Type of an option that names the file of a page."""
