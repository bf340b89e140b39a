"""Modules by the name or path that a user writes: ``package.module`` or ``path/to/file.py``."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from agentkit.errors import UsageError


def import_place(place: str) -> ModuleType:
    """Import a module, or run a Python file as one. The code in it runs.

    Args:
        place: A dotted name, looked up in the working directory too, or a path that ends in
            ``.py``. Modules beside the file can be imported by it.

    Raises:
        UsageError: There is no such file, or importing it failed.
    """
    try:
        if place.endswith(".py"):
            return _import_file(Path(place))
        if "" not in sys.path:
            sys.path.insert(0, "")  # modules of the working directory, as 'python -m' finds them
        return importlib.import_module(place)
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"{place} can not be imported ({type(error).__name__}: {error})"
        ) from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"{path}: there is no such file")
    name = f"agentkit_tools_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path}: Python can not load this file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations and dataclasses look their module up here
    folder = str(path.parent.resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # files beside it, as 'python file.py' finds them
    spec.loader.exec_module(module)
    return module
