"""The simulators of BFCL's multi-turn categories as environments, one world for each attempt."""

from __future__ import annotations

import builtins
import copy
import importlib
import importlib.util
import json
import math
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from decimal import localcontext
from pathlib import Path
from types import ModuleType
from typing import Any

from agentkit.errors import DatasetError, MissingExtraError, ToolFailed
from agentkit.evaluation.task import Task
from agentkit.messages import JsonObject
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.tool import Tool

MAX_PRECISION = 10_000
"""Digits that ``logarithm`` and ``square_root`` are asked for."""

MAX_BITS = 1_000_000
"""Size of the result of ``power``. Python writes no integer above some 14,000 bits anyway."""


MAX_SIZE = 10_000
"""Values in a file system of which something may still be copied; questions start below 500."""


def refusal(tool: str, arguments: JsonObject, simulator: object) -> str | None:
    """Why a call is not run, in words for the model; None when it can be.

    Args:
        tool: The tool that is called.
        arguments: What with.
        simulator: The instance that the tool acts on.
    """
    match tool:
        case "cp":
            full = size_of(simulator) > MAX_SIZE
            return "The file system is full; nothing more can be copied." if full else None
        case "logarithm" | "square_root":
            return _over("precision", arguments.get("precision"))
        case "round_number":
            return _over("decimal_places", arguments.get("decimal_places"))
        case "power":
            return _over_power(arguments.get("base"), arguments.get("exponent"))
        case _:
            return None


def _over(name: str, value: object) -> str | None:
    if isinstance(value, int) and abs(value) > MAX_PRECISION:
        return f"{name} is {_short(value)}; give at most {MAX_PRECISION}."
    return None


def _over_power(base: object, exponent: object) -> str | None:
    if not isinstance(base, int) or not isinstance(exponent, int):
        return None  # floating point overflows at once
    if exponent > 0 and abs(base) > 1 and base.bit_length() * exponent > MAX_BITS:
        return f"{_short(base)} to the power {_short(exponent)} has too many digits to be written."
    return None


def _short(value: int) -> str:
    bits = value.bit_length()
    return str(value) if bits <= 200 else f"a number of {bits} bits"


def result_of(value: object) -> Any:
    """A returned value as JSON data, or as upstream's text where that is no JSON object.

    Upstream (``execute_multi_turn_func_call`` in
    ``bfcl_eval/eval_checker/multi_turn_eval/multi_turn_utils.py``) has a text for each result: text
    as it is; a dict as JSON, or as Python writes it where JSON can not hold it; anything else as
    Python writes it, so ``None`` and lists too. Here a dict stays data, so that an episode can be
    read; the model reads the same JSON, without the spaces. Everything else is upstream's text.

    The data is a copy: what the simulator does to its tables later does not change it.

    Raises:
        ValueError: The value is an integer of more digits than Python writes.
    """
    if isinstance(value, str):
        return value
    if type(value) is not dict:
        return str(value)
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        return str(value)
    try:
        return json.loads(text, parse_constant=_refuse)
    except _NoJsonError:  # NaN or infinity, which only Python takes for JSON
        return text


class _NoJsonError(ValueError):
    """The text holds what JSON does not have."""


def _refuse(constant: str) -> None:
    raise _NoJsonError(constant)


PACKAGE = "bfcl_eval.eval_checker.multi_turn_eval.func_source_code"
"""The name that the simulators import each other by."""

INSTALL_LINE = "pip install agentkit-bench"

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


MAX_VALUES = 100_000
"""Values after which a state is cut off. It then equals no right one, and that is what it is for:
with a few dozen copies of directories into each other a model can make a tree of billions."""

MAX_DEPTH = 100
"""Levels of lists and objects after which a state is cut off in the same way."""

NOT_COMPARED: Mapping[str, frozenset[str]] = {"Directory": frozenset({"parent"})}
"""Attributes that upstream's ``__eq__`` of a class leaves out, beside private ones.

Two directories of ``GorillaFileSystem`` are equal when their names and contents are; ``parent``
leads back up.
"""

_CYCLE = "(a directory that holds this)"
_CUT = "(cut off: too much or too deep)"


def observed(instance: object) -> JsonObject:
    """The public attributes of a simulator; two are equal where upstream finds no difference.

    Upstream (``state_checker`` in ``multi_turn_checker.py``) compares attribute by attribute with
    ``==`` and passes over names that begin with ``_``. As JSON data: objects become their public
    attributes, sets sorted lists, tuples lists; a key that is no text stands in brackets
    (``[3]``), so that it never equals the text ``3``.

    Args:
        instance: An object with attributes.
    """
    return _Observer().attributes(instance)


def size_of(instance: object) -> int:
    """How many values its state has; beyond ``MAX_VALUES`` counting stops."""
    observer = _Observer()
    observer.attributes(instance)
    return MAX_VALUES - observer.left


class _Observer:
    def __init__(self) -> None:
        self.left = MAX_VALUES
        self._above: set[int] = set()  # ids of the objects and containers being looked into

    def attributes(self, instance: object) -> dict[str, Any]:
        left_out = NOT_COMPARED.get(type(instance).__name__, frozenset())
        return {
            name: self.value(value)
            for name, value in vars(instance).items()
            if not name.startswith("_") and name not in left_out
        }

    def value(self, value: Any) -> Any:
        self.left -= 1
        if isinstance(value, str | int) or value is None:  # the usual cases first
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else str(value)
        if self.left < 0 or len(self._above) >= MAX_DEPTH:
            return _CUT
        if id(value) in self._above:
            return _CYCLE
        self._above.add(id(value))
        try:
            return self._inside(value)
        finally:
            self._above.discard(id(value))

    def _inside(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {_key(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, set | frozenset):
            return [self.value(item) for item in sorted(value, key=_rank)]
        return self.attributes(value) if hasattr(value, "__dict__") else str(value)


def _key(key: object) -> str:
    if isinstance(key, str):
        return f"[{key}" if key.startswith("[") else key  # so that no text looks like a number
    if isinstance(key, bool) or (isinstance(key, float) and key.is_integer()):
        key = int(key)  # Python takes True, 1.0 and 1 for the same key
    return f"[{key}]"


def _rank(item: object) -> tuple[bool, float, str]:
    """Where a member of a set stands: numbers first, by value."""
    if isinstance(item, int | float):
        return False, item, ""
    return True, 0, _key(item)


TAKE_TURNS = frozenset({"MathAPI", "VehicleControlAPI"})
"""Classes of which no two tools may run at the same time, for they use something that all share:
the precision of ``mpmath``, and a table of the weather that is changed and then returned."""

LONG_CONTEXT = "multi_turn_long_context"
"""The category whose simulators start with far more data than the question needs."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Simulator:
    """A class that simulates tools, and what its tools look like.

    Attributes:
        module: The module that it is in.
        definitions: Its tools. Methods without a definition are not offered.
    """

    module: str
    definitions: tuple[ToolDefinition, ...]


@dataclass(frozen=True, kw_only=True)
class BfclWorlds:
    """Makes the environment of a task; this is the ``environment`` of the benchmark.

    Attributes:
        modules: Where the simulated classes come from.
        simulators: Them, by class name.
    """

    modules: SimulatorModules
    simulators: Mapping[str, Simulator]

    def __call__(self, task: Task) -> BfclEnvironment:
        """A fresh environment, at the start of the task.

        Raises:
            DatasetError: A simulator can not be loaded, or not be brought to this start.
            MissingExtraError: A simulator needs a package that is not installed.
        """
        return BfclEnvironment(worlds=self, start=task.start)

    def load(self, names: Iterable[str]) -> None:
        """Load these simulators now, so that what is missing is told before anything is asked.

        Raises:
            DatasetError: A simulator can not be loaded, or lacks a tool that is described.
            MissingExtraError: A simulator needs a package that is not installed.
        """
        for name in names:
            simulated = self._class(name)
            described = self.simulators[name].definitions
            lacking = [one.name for one in described if not hasattr(simulated, one.name)]
            if lacking:
                raise DatasetError(
                    f"the simulator {name} has no method for the tools {lacking}; definitions and "
                    "simulators are not of the same release"
                )

    def instance(self, name: str, start: JsonObject) -> object:
        """A simulator at its start."""
        with self.modules.lock:
            made = self._class(name)()
            load = getattr(made, "_load_scenario", None)
            if load is None:  # stateless, as MathAPI is
                return made
            scenario = copy.deepcopy(start["scenarios"].get(name, {}))
            try:
                load(scenario, long_context=start["long_context"])
            except Exception as error:
                raise DatasetError(
                    f"the simulator {name} does not take the start of the question: "
                    f"{type(error).__name__}: {error}"
                ) from error
            # Some tables of the module end up inside: without a copy, attempts would share them.
            vars(made).update(copy.deepcopy(vars(made)))
            return made

    def _class(self, name: str) -> Callable[[], object]:
        module = self.simulators[name].module
        simulated: Callable[[], object] | None = getattr(self.modules.load(module), name, None)
        if simulated is None:
            raise DatasetError(f"the module {module} of the simulators has no class {name}")
        return simulated


@dataclass(kw_only=True)
class BfclEnvironment:
    """The world of one attempt at one task.

    Attributes:
        worlds: Where its simulators come from.
        start: ``classes``, ``scenarios`` by class and ``long_context``, as the loader writes it.
    """

    worlds: BfclWorlds
    start: JsonObject
    _instances: dict[str, object] = field(init=False)
    _owners: dict[str, str] = field(init=False)
    _tools: tuple[Tool, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._instances = {
            name: self.worlds.instance(name, self.start) for name in self.start["classes"]
        }
        self._owners = {
            definition.name: name
            for name in self._instances
            for definition in self.worlds.simulators[name].definitions
        }
        self._tools = tuple(
            Tool(definition=definition, function=self._bound(definition.name), is_async=True)
            for name in self._instances
            for definition in self.worlds.simulators[name].definitions
        )

    def tools(self) -> Sequence[Tool]:
        """The tools of all simulators, bound to this attempt's instances.

        Calls of one step take effect in the model's order, as upstream has it. The definitions
        say so to an executor (each writes), and since a call takes microseconds it is made without
        a thread of its own, so that none overtakes another under other definitions either.
        """
        return self._tools

    def state(self) -> JsonObject:
        """The public attributes of each simulator, by class."""
        return {name: observed(instance) for name, instance in self._instances.items()}

    def call(self, tool: str, arguments: JsonObject) -> Any:
        """Call a tool, and what upstream shows as its result (``result_of``).

        Args:
            tool: Its name.
            arguments: By name; they are copied.

        Raises:
            KeyError: No simulator of this world has the tool.
            ToolFailed: The call would never end (``agentkit_bench.bfcl_simulators``).
            Exception: Whatever the simulator raises.
        """
        name = self._owners[tool]
        instance = self._instances[name]
        refused = refusal(tool, arguments, instance)
        if refused is not None:
            raise ToolFailed(refused)
        method: Callable[..., object] = getattr(instance, tool)
        turn = self.worlds.modules.lock if name in TAKE_TURNS else nullcontext()
        with turn, localcontext():  # some tools set the precision of decimals
            return result_of(method(**copy.deepcopy(arguments)))

    def _bound(self, tool: str) -> Callable[..., Awaitable[Any]]:
        async def call(**arguments: Any) -> Any:
            return self.call(tool, arguments)

        return call
