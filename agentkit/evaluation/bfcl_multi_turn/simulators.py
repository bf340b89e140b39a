"""Loading the simulators in place, as modules that only we know.

The simulators are written to be imported as ``bfcl_eval.eval_checker...`` and import each other by
such names. Putting them under these names into ``sys.modules``, or their folder onto ``sys.path``,
would shadow an installed ``bfcl_eval`` for the rest of the program. So each module gets an
``__import__`` of its own: names below ``PACKAGE`` are looked up in the folder, everything else as
usual. No entry of ``sys.modules`` or ``sys.path`` is made for them, not even for a moment.
"""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from agentkit.errors import DatasetError, MissingExtraError

PACKAGE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
"""The name that the simulators import each other by."""

INSTALL_LINE = 'pip install "agentkit-evolve[bench]"'

_PRIVATE = "_agentkit_bfcl_simulators"


class SimulatorModules:
    """The Python modules of one folder. Each is run once, when it is first needed.

    Args:
        folder: Holds one file for each module. Its code is run in this process, so it has to be
            trusted, as an installed package is.

    Attributes:
        lock: Held while a module is loaded. Tools that use something that all instances share are
            run under it as well.
    """

    def __init__(self, folder: Path) -> None:
        self.lock = threading.RLock()
        self._folder = folder
        self._loaded: dict[str, ModuleType] = {}

    def load(self, name: str) -> ModuleType:
        """The module, run when this is the first time.

        Raises:
            MissingExtraError: It imports ``mpmath``, which is not installed.
            DatasetError: There is no such module, or running it failed.
        """
        with self.lock:
            known = self._loaded.get(name)
            return self._run(name) if known is None else known

    def _run(self, name: str) -> ModuleType:
        path = self._folder / f"{name}.py"
        spec = importlib.util.spec_from_file_location(f"{_PRIVATE}.{name}", path)
        if spec is None or spec.loader is None or not path.is_file():
            raise DatasetError(
                f"there is no simulator {path}; this is not a release of bfcl_eval that agentkit "
                "knows, or it was taken out in part"
            )
        module = importlib.util.module_from_spec(spec)
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._import}
        self._loaded[name] = module  # before it runs, as Python does, for imports in a circle
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            del self._loaded[name]
            if isinstance(error, ModuleNotFoundError) and error.name == "mpmath":
                raise MissingExtraError(
                    "BFCL's simulator of mathematics", package="mpmath", install=INSTALL_LINE
                ) from error
            if isinstance(error, Exception) and not isinstance(error, DatasetError):
                raise DatasetError(
                    f"the simulator {path} can not be loaded: {type(error).__name__}: {error}"
                ) from error
            raise
        return module

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - the import statement's own names
        locals: Mapping[str, Any] | None = None,  # noqa: A002 - see above
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        """What ``import name`` gives inside a simulator; called as ``__import__`` is."""
        package, _, module = name.rpartition(".")
        if level == 0 and package == PACKAGE and fromlist:
            return self.load(module)
        return importlib.__import__(name, globals, locals, fromlist or (), level)
