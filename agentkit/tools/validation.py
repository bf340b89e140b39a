"""Arguments against the schema of their tool, before anything runs.

What ``agentkit.tools.schema_validator`` finds is put into plain sentences, and clear slips are
corrected (``agentkit.tools.coercion``).
"""

from __future__ import annotations

from collections.abc import Mapping

from agentkit.errors import DefinitionError
from agentkit.messages import JsonObject
from agentkit.tools import sources  # a door: it loads when a schema is read
from agentkit.tools.coercion import coerce
from agentkit.tools.definition import ToolDefinition
from agentkit.tools.error_messages import ArgumentProblem, problems_of, value_text
from agentkit.tools.schema import (
    MAX_DEPTH,
    attach_descriptions,
    check_bounds,
    references,
    resolve_local,
)
from agentkit.tools.schema_validator import UncheckableError, fits, schema_errors


def validate_arguments(
    definition: ToolDefinition, arguments: object
) -> tuple[ArgumentProblem, ...]:
    """The problems of arguments; empty when they are valid.

    For many calls of one tool keep an ``ArgumentValidator``.

    Args:
        definition: The tool.
        arguments: Decoded JSON.

    Raises:
        DefinitionError: The tool's schema is broken.

    Example:
        >>> definition = ToolDefinition.from_schema("wait", "", {
        ...     "properties": {"days": {"type": "integer"}}, "required": ["days"]})
        >>> [problem.rule for problem in validate_arguments(definition, {"days": "3"})]
        ["`days` must be an integer, got the string '3'"]
    """
    return ArgumentValidator(definition).check(arguments)


class ArgumentValidator:
    """Checks the arguments of one tool. Build one for each tool and keep it.

    Args:
        definition: The tool. Its schema is read when ``prepare`` or ``check`` is called.
    """

    __slots__ = ("_definition", "_prepared")

    def __init__(self, definition: ToolDefinition) -> None:
        self._definition = definition
        self._prepared = False

    @property
    def definition(self) -> ToolDefinition:
        """The tool whose arguments are checked."""
        return self._definition

    def prepare(self) -> None:
        """Find out now, rather than at the first call, whether the schema is usable.

        Raises:
            DefinitionError: The schema is broken, or refers to a part that it does not have.
        """
        if self._prepared:
            return
        schema = self._definition.signature.parameters
        try:
            check_bounds(schema, max_depth=MAX_DEPTH)
            changes = sources.normalise_parameters(schema).changes
        except DefinitionError as error:
            raise self._broken(str(error)) from error
        for change in changes:
            if change.is_fault or change.rule.startswith(sources.PATTERN_DROPPED):
                raise self._broken(f"at {change.pointer[1:]}: {change.rule}")
        for reference in references(schema):
            if reference.startswith("#/") and resolve_local(schema, reference) is None:
                raise self._broken(f"the reference {reference!r} points nowhere")
        self._prepared = True

    def check(self, arguments: object) -> tuple[ArgumentProblem, ...]:
        """The problems of arguments, the most useful first; empty when they are valid.

        Args:
            arguments: Decoded JSON.

        Raises:
            DefinitionError: The schema is broken.
        """
        self.prepare()
        if not isinstance(arguments, Mapping):
            rule = f"the arguments must be an object, got {value_text(arguments)}"
            return (ArgumentProblem(path=(), rule=rule, keyword="type"),)
        try:
            if fits(values := dict(arguments), self._definition.signature.parameters):
                return ()
            errors = schema_errors(values, self._described)
            return tuple(problems_of(errors, owner=f"an argument of {self._definition.name}"))
        except (UncheckableError, RecursionError) as error:
            why = "they are nested too deeply" if isinstance(error, RecursionError) else str(error)
        rule = f"the arguments cannot be checked: {why}"
        return (ArgumentProblem(path=(), rule=rule, keyword=""),)

    def is_plainly_valid(self, arguments: JsonObject) -> bool:
        """Whether arguments can be run as they are, when that is quick to say.

        A valid call nearly always is. Anything else is for ``runnable``, which can take a second
        where a schema is hostile: code that runs in an event loop calls it in a thread.

        Args:
            arguments: The arguments of a call.

        Raises:
            DefinitionError: The schema is broken.
        """
        self.prepare()
        definition = self._definition
        return fits(arguments, definition.signature.parameters) is True and (
            not definition.specification.rules
            or fits(arguments, definition.parameters_schema) is True
        )

    def runnable(self, arguments: JsonObject) -> JsonObject | ArgumentProblem:
        """Arguments as they can be run, clear slips corrected; else the first rule that they break.

        ``"3"`` for an integer is clear enough: correcting it saves a round trip to the model. So is
        ``"eur"`` where a learned rule lists ``"EUR"``; whether the call keeps to the learned rules
        is another question (``agentkit.tools.rules.RuleChecker``).

        Args:
            arguments: The arguments of a call.

        Raises:
            DefinitionError: The schema is broken.
        """
        problems = self.check(arguments)
        if problems:
            coerced: JsonObject = coerce(arguments, self._definition.signature.parameters)
            if coerced is arguments or self.check(coerced):
                return problems[0]
            arguments = coerced
        return self._as_offered(arguments) if self._definition.specification.rules else arguments

    def _as_offered(self, arguments: JsonObject) -> JsonObject:
        """The same slips corrected where only learned rules say what is meant."""
        offered = self._definition.parameters_schema
        if fits(arguments, offered):
            return arguments
        coerced: JsonObject = coerce(arguments, offered)
        return arguments if coerced is arguments or self.check(coerced) else coerced

    @property
    def _described(self) -> JsonObject:
        """The contract with the words on it, which problems quote."""
        signature, words = self._definition.signature, self._definition.description
        return attach_descriptions(signature.parameters, words.parameters)

    def _broken(self, why: str) -> DefinitionError:
        name = self._definition.name
        return DefinitionError(
            f"the parameters schema of tool {name!r} is broken, {why}; correct it, or import it "
            "with agentkit.tools.definition_from_json, which repairs known dialects",
            tool_name=name,
        )
