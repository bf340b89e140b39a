"""``load_bfcl_multi_turn``: the multi-turn part of BFCL v4 as a ``Benchmark``."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from agentkit.errors import DatasetError
from agentkit.evaluation.bfcl import RELEASE, numbered_lines
from agentkit.evaluation.bfcl_multi_turn.environment import LONG_CONTEXT, BfclWorlds, Simulator
from agentkit.evaluation.bfcl_multi_turn.files import (
    CATEGORIES,
    SIMULATORS,
    MultiTurnFiles,
    find_files,
    release_of,
)
from agentkit.evaluation.bfcl_multi_turn.gold import UnreadableGoldError, parse_gold
from agentkit.evaluation.bfcl_multi_turn.simulators import SimulatorModules
from agentkit.evaluation.expectations import AnyCall, Expectation, FinalState, GoldCall
from agentkit.evaluation.task import Benchmark, LeftOut, Task, UserTurn
from agentkit.reading import read_json
from agentkit.tools.definition import Effects, ToolDefinition
from agentkit.tools.error_messages import ArgumentProblem
from agentkit.tools.sources.json_records import definition_from_json
from agentkit.tools.validation import ArgumentValidator

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


Row = TypeVar("Row", _Question, _Answer)


class _UnusableError(ValueError):
    """A question that can not be asked or judged."""


@dataclass(kw_only=True)
class _Loader:
    files: MultiTurnFiles
    simulators: Mapping[str, Simulator]
    left_out: list[LeftOut] = field(default_factory=list)
    _tools: Mapping[str, ToolDefinition] = field(init=False)
    _validators: dict[str, ArgumentValidator] = field(default_factory=dict)
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
        definition = self._tools[call.name]
        validator = self._validators.get(call.name)
        if validator is None:
            validator = self._validators[call.name] = ArgumentValidator(definition)
        checked = validator.runnable(call.arguments)
        if isinstance(checked, ArgumentProblem):
            raise _UnusableError(
                f"its gold call of {call.name} breaks the tool's own schema: {checked.rule}"
            )

    def _rows(self, path: Path, kind: type[Row]) -> Iterator[Row]:
        from pydantic import TypeAdapter, ValidationError

        adapter = TypeAdapter(kind)
        for number, line in numbered_lines(path):
            try:
                yield adapter.validate_json(line)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                where = ".".join(map(str, first["loc"])) or "the line"
                self.left_out.append(
                    LeftOut(where=f"{path.name}, line {number}", reason=f"{where}: {first['msg']}")
                )


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
    path = files.definitions(module)
    definitions = []
    for number, line in numbered_lines(path):
        try:
            record = read_json(line)
        except ValueError as error:
            raise DatasetError(f"{path.name}, line {number}: not JSON: {error}") from error
        definitions.append(
            definition_from_json(
                record,
                # Not all of them write, but calls of one step have to run in the model's order.
                effects=Effects.of(("writes",)),
                reference="bfcl_eval",
                licence="Apache-2.0",
            )
        )
    return Simulator(module=module, definitions=tuple(definitions))
