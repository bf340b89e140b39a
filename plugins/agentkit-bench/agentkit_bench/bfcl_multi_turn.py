"""The multi-turn part of BFCL v4: its files, its gold calls, and the tasks made of them."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from agentkit.errors import DatasetError
from agentkit.evaluation.expectations import AnyCall, Expectation, FinalState, GoldCall, Record
from agentkit.evaluation.task import Benchmark, LeftOut, Task, UserTurn
from agentkit.evaluation.task_files import read_records
from agentkit.fetch import PackageFile, Progress, cache_directory, fetch_package_files
from agentkit.messages import ToolFailure
from agentkit.metrics.calls import validator_of
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.sources.json_records import definition_from_json
from agentkit_bench.bfcl import RELEASE, WHEEL_SHA256, read_rows
from agentkit_bench.bfcl_simulators import LONG_CONTEXT, BfclWorlds, Simulator, SimulatorModules

CATEGORIES = (
    "multi_turn_base",
    "multi_turn_miss_func",
    "multi_turn_miss_param",
    "multi_turn_long_context",
)
"""The categories; their names are also what the ids of their questions begin with."""

SIMULATORS: Mapping[str, str] = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
"""Module of each simulated class, and name of the file that describes its tools.

Upstream: ``bfcl_eval/constants/executable_backend_config.py``.
"""

FILES_SHA256 = "2a4f624dc68bbb2117606eeb8fe069406b5092827380a76321107a91956fd26f"
"""Digest of release ``RELEASE``: of all files that are taken out of it, one after the other."""

_SHARED_MODULES = ("long_context",)  # what several simulators import
_DATA = "bfcl_eval/data"
_SOURCE = "bfcl_eval/eval_checker/multi_turn_eval/func_source_code"
_SIMULATORS_FOLDER = "func_source_code"
_DEFINITIONS_FOLDER = "multi_turn_func_doc"


@dataclass(frozen=True, kw_only=True, slots=True)
class MultiTurnFiles:
    """The two folders that the benchmark is read from.

    Attributes:
        data: Holds ``BFCL_v4_multi_turn_base.json`` and the like, ``possible_answer`` and
            ``multi_turn_func_doc``.
        simulators: Holds the Python modules that simulate the tools.
    """

    data: Path
    simulators: Path

    def questions(self, category: str) -> Path:
        """The questions of one category."""
        return self.data / _question_file(category)

    def answers(self, category: str) -> Path:
        """The gold calls of one category."""
        return self.data / _answer_file(category)

    def definitions(self, module: str) -> Path:
        """The tool definitions of one simulator."""
        return self.data / _DEFINITIONS_FOLDER / f"{module}.json"


def fetch_bfcl_multi_turn(cache_dir: Path | None = None, progress: Progress | None = None) -> Path:
    """Download the questions and the simulators, unless they are there already.

    They come out of the public package ``bfcl_eval``, whose checksum is compared before anything
    is taken out of it. The package is not installed.

    Args:
        cache_dir: Where to keep them; None is agentkit's folder in the user's cache.
        progress: Told how many bytes have arrived.

    Returns:
        The folder to give to ``load_bfcl_multi_turn``.

    Raises:
        FetchError: The download failed, or what arrived is not release ``RELEASE``.
    """
    return fetch_package_files(
        f"bfcl_eval=={RELEASE}",
        sha256=WHEEL_SHA256,
        files=[
            PackageFile(path=f"{_SOURCE}/{name}", saved_as=f"{_SIMULATORS_FOLDER}/{name}")
            if is_simulator
            else PackageFile(path=f"{_DATA}/{name}", saved_as=name)
            for is_simulator, name in _names()
        ],
        destination=(cache_dir or cache_directory()) / f"bfcl-multi-turn-{RELEASE}",
        progress=progress,
    )


def release_of(files: MultiTurnFiles) -> str:
    """``RELEASE`` when every file is what that release holds, else an empty text.

    An installed package or a folder of one's own may hold anything, and numbers are only
    comparable on the same questions and simulators.
    """
    digest = hashlib.sha256()
    for is_simulator, name in _names():
        path = (files.simulators if is_simulator else files.data) / name
        digest.update(path.read_bytes() if path.is_file() else b"absent")
    return RELEASE if digest.hexdigest() == FILES_SHA256 else ""


def installed_bfcl() -> Path | None:
    """The folder of an installed ``bfcl_eval``, found without importing it; None without one."""
    from importlib.util import find_spec

    spec = find_spec("bfcl_eval")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


def find_files(folder: Path) -> MultiTurnFiles:
    """The files below a folder, however it is laid out.

    Args:
        folder: What ``fetch_bfcl_multi_turn`` returned, the folder of the package ``bfcl_eval``,
            or the folder that the package lies in.

    Raises:
        DatasetError: None of these.
    """
    package = Path(_SOURCE).relative_to("bfcl_eval")
    layouts = (
        (folder, folder / _SIMULATORS_FOLDER),
        (folder / "data", folder / package),
        (folder / _DATA, folder / _SOURCE),
    )
    for data, simulators in layouts:
        if simulators.is_dir() and (data / _DEFINITIONS_FOLDER).is_dir():
            return MultiTurnFiles(data=data, simulators=simulators)
    raise DatasetError(
        f"{folder} holds no multi-turn part of BFCL: expected the folders {_SIMULATORS_FOLDER} and "
        f"{_DEFINITIONS_FOLDER}, or the package bfcl_eval; give the folder that "
        "fetch_bfcl_multi_turn() or installed_bfcl() returns"
    )


def _names() -> Iterator[tuple[bool, str]]:
    """Every file that the benchmark is read from, and whether it is a simulator."""
    for category in CATEGORIES:
        yield False, _question_file(category)
        yield False, _answer_file(category)
    for module in SIMULATORS.values():
        yield False, f"{_DEFINITIONS_FOLDER}/{module}.json"
    for module in (*SIMULATORS.values(), *_SHARED_MODULES):
        yield True, f"{module}.py"


def _question_file(category: str) -> str:
    return f"BFCL_v4_{category}.json"


def _answer_file(category: str) -> str:
    return f"possible_answer/{_question_file(category)}"


class UnreadableGoldError(ValueError):
    """A gold text is not a call of a tool with literal arguments."""


def parse_gold(text: str, tools: Mapping[str, ToolDefinition]) -> GoldCall:
    """The call that a text states.

    Args:
        text: One call. Positional arguments are named in the order of the tool's parameters.
        tools: The tools that there are, by name.

    Raises:
        UnreadableGoldError: The text says anything else.

    Example:
        >>> definition = ToolDefinition.from_schema("cd", "", {
        ...     "type": "object", "properties": {"folder": {"type": "string"}}})
        >>> parse_gold("cd('papers')", {"cd": definition})
        GoldCall(name='cd', arguments={'folder': 'papers'})
    """
    call = _call(text)
    name = ast.unparse(call.func)
    if name not in tools:
        raise UnreadableGoldError(f"the gold call {text!r} is of a tool that no simulator has")
    parameters = list(tools[name].signature.properties)
    if len(call.args) > len(parameters):
        raise UnreadableGoldError(
            f"the gold call {text!r} has {len(call.args)} arguments, {name} takes {len(parameters)}"
        )
    arguments: dict[str, Any] = {}
    given = [*zip(parameters, call.args, strict=False)]
    given += [(keyword.arg or "**", keyword.value) for keyword in call.keywords]
    for parameter, value in given:
        if parameter in arguments or parameter not in parameters:
            raise UnreadableGoldError(
                f"the gold call {text!r} gives {parameter!r} twice, or {name} has no such parameter"
            )
        arguments[parameter] = _literal(text, value)
    return GoldCall(name=name, arguments=arguments)


def _call(text: str) -> ast.Call:
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnreadableGoldError(f"the gold call {text[:200]!r} is no Python: {error}") from error
    if not isinstance(expression, ast.Call):
        raise UnreadableGoldError(f"the gold call {text[:200]!r} is not a call")
    return expression


def _literal(text: str, value: ast.expr) -> Any:
    try:
        return _as_json(ast.literal_eval(value))
    except (ValueError, TypeError, RecursionError, MemoryError) as error:
        raise UnreadableGoldError(
            f"the gold call {text[:200]!r} has an argument that is no plain value: {error}"
        ) from error


def _as_json(value: Any) -> Any:
    """The value with lists for tuples, as a model's calls, which are JSON, have them."""
    if isinstance(value, list | tuple):
        return [_as_json(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, str | bool | int | float) or value is None:
        return value
    raise TypeError(f"JSON has no {type(value).__name__} like {value!r}")


ADDED_FUNCTIONS_REQUEST = "I have updated some more functions you can choose from. What about now?"
"""What the user says when tools that were held out are offered.

Upstream: ``DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC`` in
``bfcl_eval/constants/default_prompts.py``, said by ``inference_multi_turn_FC`` in
``bfcl_eval/model_handler/base_handler.py``.
"""


def load_bfcl_multi_turn(folder: Path, *, simulators: Mapping[str, str] = SIMULATORS) -> Benchmark:
    """Read the questions, and load the simulators that they need.

    A question that can not be read, asked or judged is left out with its reason.

    Args:
        folder: What ``fetch_bfcl_multi_turn`` or ``installed_bfcl`` returned, or a folder laid
            out like either. Categories whose file is absent are left out. The simulators in it
            are run in this process, so it has to be trusted, as an installed package is.
        simulators: Module of each simulated class, and name of the file with its tools.

    Returns:
        The benchmark. ``environment`` makes a ``BfclEnvironment``. The name has the release only
        where the files are those of that release.

    Raises:
        DatasetError: The folder is laid out otherwise, holds no questions, a tool definition is
            not JSON, or a simulator can not be loaded.
        DefinitionError: A tool definition is not usable.
        MissingExtraError: A simulator needs a package that is not installed (``mpmath``).
    """
    files = find_files(folder)
    known = {name: _simulator(files, module) for name, module in simulators.items()}
    loader = _Loader(files=files, simulators=known)
    tasks = tuple(task for category in CATEGORIES for task in loader.tasks(category))
    if not tasks:
        why = f"; the first of them: {loader.left_out[0]}" if loader.left_out else ""
        raise DatasetError(
            f"{files.data} holds no multi-turn question that can be asked "
            f"({len(loader.left_out)} were left out{why})"
        )
    worlds = BfclWorlds(modules=SimulatorModules(files.simulators), simulators=known)
    worlds.load({name for task in tasks for name in task.start["classes"]})
    return Benchmark(
        name=f"BFCL v4 multi-turn {release_of(files) or f'(not {RELEASE})'}",
        tasks=tasks,
        definitions=tuple(one for each in known.values() for one in each.definitions),
        environment=worlds,
        left_out=tuple(loader.left_out),
    )


@dataclass(frozen=True)
class _Said:
    role: Literal["user"]
    content: str


@dataclass(frozen=True)
class _Question:
    """One line of a question file, as pydantic checks it.

    ``excluded_function`` and ``path`` are there too, but no code of upstream's reads them.
    """

    id: str
    question: list[list[_Said]]
    initial_config: dict[str, dict[str, Any]]
    involved_classes: list[str]
    missed_function: dict[int, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Answer:
    """One line of an answer file: the gold calls of each user turn."""

    id: str
    ground_truth: list[list[str]]


class _UnusableError(ValueError):
    """A question that can not be asked or judged."""


@dataclass(kw_only=True)
class _Loader:
    files: MultiTurnFiles
    simulators: Mapping[str, Simulator]
    left_out: list[LeftOut] = field(default_factory=list)
    _tools: Mapping[str, ToolDefinition] = field(init=False)
    _gold: dict[str, GoldCall] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tools = {
            definition.name: definition
            for each in self.simulators.values()
            for definition in each.definitions
        }

    def tasks(self, category: str) -> Iterator[Task]:
        answers = {row.id: row for row in self._rows(self.files.answers(category), _Answer)}
        for row in self._rows(self.files.questions(category), _Question):
            try:
                yield self._task(category, row, answers.get(row.id))
            except (_UnusableError, UnreadableGoldError) as error:
                self.left_out.append(LeftOut(where=row.id, reason=str(error)))

    def _task(self, category: str, row: _Question, answer: _Answer | None) -> Task:
        offered = self._offered(row)
        first, *others = self._turns(row, answer, offered)
        return Task(
            task_id=row.id,
            category=category,
            request=first.request,
            offered=first.offers,
            expects=first.expects,
            follow_ups=tuple(others),
            start={
                "classes": row.involved_classes,
                "scenarios": row.initial_config,
                "long_context": category == LONG_CONTEXT,
            },
        )

    def _offered(self, row: _Question) -> list[str]:
        unknown = [name for name in row.involved_classes if name not in self.simulators]
        if unknown:
            raise _UnusableError(f"it needs the simulators {unknown}, which are not known")
        simulators = (self.simulators[name] for name in row.involved_classes)
        return [definition.name for each in simulators for definition in each.definitions]

    def _turns(
        self, row: _Question, answer: _Answer | None, offered: Sequence[str]
    ) -> Iterator[UserTurn]:
        if answer is None or len(answer.ground_truth) != len(row.question) or not row.question:
            raise _UnusableError(
                f"it has {len(row.question)} user turns, and its gold answer "
                f"{'is missing' if answer is None else f'has {len(answer.ground_truth)}'}"
            )
        held_out = {name for names in row.missed_function.values() for name in names}
        unknown = sorted(held_out.difference(offered))
        if unknown:
            raise _UnusableError(f"it holds out the tools {unknown}, which no simulator has")
        first = tuple(name for name in offered if name not in held_out)
        shown = set(first)
        for number, (said, gold) in enumerate(zip(row.question, answer.ground_truth, strict=True)):
            added = tuple(row.missed_function.get(number, ()))
            shown.update(added)
            yield UserTurn(
                request=_request(said, added, number),
                offers=(*first, *added) if number == 0 else added,
                expects=self._expectations(gold, shown),
            )

    def _expectations(self, gold: Sequence[str], shown: Container[str]) -> tuple[Expectation, ...]:
        """What a user turn expects: nothing where there is no gold call, as upstream judges it."""
        if not gold:
            return ()
        calls = tuple(map(self._gold_call, gold))
        early = [call.name for call in calls if call.name not in shown]
        if early:
            raise _UnusableError(f"its gold answer calls {early} where that is not offered")
        return (AnyCall(), FinalState(calls=calls, responses=True))

    def _gold_call(self, text: str) -> GoldCall:
        """The gold call of a text; most stand in all four categories."""
        known = self._gold.get(text)
        if known is None:
            known = parse_gold(text, self._tools)
            self._check(known)
            self._gold[text] = known
        return known

    def _check(self, call: GoldCall) -> None:
        """Refuse gold that no agent could make, since its executor checks arguments."""
        checked = validator_of(self._tools[call.name]).runnable(call.arguments)
        if isinstance(checked, ToolFailure):
            raise _UnusableError(
                f"its gold call of {call.name} breaks the tool's own schema: {checked.rule}"
            )

    def _rows(self, path: Path, kind: type[Record]) -> Iterator[Record]:
        for row in read_rows(path, kind):
            if isinstance(row, LeftOut):
                self.left_out.append(row)
            else:
                yield row


def _request(said: Sequence[_Said], added: Sequence[str], number: int) -> str:
    if len(said) == 1 and not added:
        return said[0].content
    if not said and added:
        return ADDED_FUNCTIONS_REQUEST
    raise _UnusableError(
        f"user turn {number} has {len(said)} messages and {len(added)} added tools; expected one "
        "message, or added tools alone"
    )


def _simulator(files: MultiTurnFiles, module: str) -> Simulator:
    return Simulator(
        module=module,
        definitions=tuple(
            definition_from_json(
                record,
                # Not all of them write, but calls of one step have to run in the model's order.
                effects=Effects.of(("writes",)),
                reference="bfcl_eval",
                licence="Apache-2.0",
            )
            for record in read_records(files.definitions(module))
        ),
    )
