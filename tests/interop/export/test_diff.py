"""What a reviewer is told of two libraries: contracts, words, composites above."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from agentkit import Library, ToolDefinition
from agentkit.interop.export import (
    compare_libraries,
    contract_changes,
    headline,
)
from agentkit.library import Store
from agentkit.tools.definition import Effects, Origin, Signature


def contract(x: dict[str, Any] | None = None, *, needed: bool = False, **more: Any) -> Signature:
    """A contract of one parameter ``x``."""
    parameters: dict[str, Any] = {"type": "object", "properties": {} if x is None else {"x": x}}
    if needed:
        parameters["required"] = ["x"]
    return Signature(parameters=parameters | more)


INTEGER = {"type": "integer"}


@pytest.mark.parametrize(
    ("before", "after", "impact", "words"),
    [
        (contract(), contract(INTEGER), "compatible", "x is a new parameter."),
        (contract(INTEGER), contract(), "breaking", "x is no longer a parameter."),
        (contract(INTEGER), contract(INTEGER, needed=True), "breaking", "x must be given."),
        (contract(INTEGER, needed=True), contract(INTEGER), "compatible", "x may be left out."),
        (contract(INTEGER), contract({"type": "string"}), "breaking", "of type string (before"),
        (contract(INTEGER), contract({"type": "number"}), "compatible", "of type number"),
        (contract({"type": "number"}), contract(INTEGER), "breaking", "of type integer"),
        (contract({"enum": [1, 2]}), contract({"enum": [1]}), "breaking", "may no longer be 2"),
        (contract({"enum": [1]}), contract({"enum": [1, 2]}), "compatible", "may also be 2"),
        (contract({}), contract({"enum": [1]}), "breaking", "may only be 1"),
        (contract({"minimum": 1}), contract({"minimum": 0}), "compatible", "at least 0"),
        (contract({"minimum": 0}), contract({"minimum": 1}), "breaking", "(before: at least 0)"),
        (contract({}), contract({"pattern": "a"}), "breaking", "that matches a"),
        (contract({"anyOf": [{}]}), contract({"anyOf": [{}, {}]}), "compatible", "anyOf"),
        (contract({"default": 1}), contract({"default": 2}), "compatible", "default 2 (before: 1)"),
        (contract(INTEGER), contract(INTEGER, additionalProperties=False), "breaking", "false"),
    ],
)
def test_arguments_may_take_more_and_not_less(
    before: Signature, after: Signature, impact: str, words: str
) -> None:
    """Each change of the arguments is told with what it means for callers."""
    (change,) = contract_changes(before, after)

    assert (change.impact, words in change.words) == (impact, True), change.words


def test_a_new_parameter_that_must_be_given_breaks_callers() -> None:
    """Of a new or missing parameter nothing is told but that, and whether it must be given."""
    added = contract_changes(contract(), contract(INTEGER, needed=True))
    removed = contract_changes(contract(INTEGER, needed=True), contract())

    assert [(one.keyword, one.impact) for one in added] == [
        ("parameter", "compatible"),
        ("required", "breaking"),
    ]
    assert [(one.keyword, one.impact) for one in removed] == [("parameter", "breaking")]


@pytest.mark.parametrize(
    ("before", "after", "impact"),
    [
        (None, {"type": "string"}, "compatible"),
        ({"type": "string"}, None, "breaking"),
        ({"type": "integer"}, {"type": "number"}, "breaking"),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, "breaking"),
        ({"properties": {"a": {}}}, {"properties": {}}, "breaking"),
        ({"properties": {"a": {}}, "required": ["a"]}, {"properties": {"a": {}}}, "breaking"),
    ],
)
def test_results_may_promise_more_and_not_less(before: Any, after: Any, impact: str) -> None:
    """Results are judged the other way round."""
    (change,) = contract_changes(Signature(result=before), Signature(result=after))

    assert change.impact == impact


def test_effects_that_grow_are_breaking() -> None:
    """A tool that begins to write is another tool to those who call it."""
    reads, writes = Effects(writes=False), Effects(writes=True)
    (worse,) = contract_changes(Signature(effects=reads), Signature(effects=writes))
    (better,) = contract_changes(Signature(effects=writes), Signature(effects=reads))

    assert (worse.impact, better.impact) == ("breaking", "compatible")
    again, once = Effects(idempotent=True), Effects(idempotent=False)
    (lost,) = contract_changes(Signature(effects=again), Signature(effects=once))
    assert lost.impact == "breaking"


SEVERAL = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@SEVERAL
@given(data=st.data())
def test_every_difference_is_told(
    definitions: st.SearchStrategy[ToolDefinition], data: st.DataObject
) -> None:
    """A tool whose digest moved has a change; equal libraries have none."""
    before = data.draw(definitions)
    after = replace(data.draw(definitions), name=before.name)
    diff = compare_libraries(Library([before]), Library([after]))

    same = before.digest == after.digest and before.origin.licence == after.origin.licence
    assert diff.is_empty is same
    for change in diff.changed:
        assert change.contract or change.differences
    assert compare_libraries(Library([after]), Library([after])).is_empty


def test_words_programs_and_licences_are_told(store: Store) -> None:
    """Levels and composites above stand with the tool that changed."""
    before = store.load(2)
    diff = compare_libraries(before, store.load())
    add, total = diff.changed

    assert headline(diff) == "1 tool removed, 2 changed, 53 unchanged"
    assert [one.name for one in diff.removed] == ["calendar_cancel_event"]
    assert (add.name, [one.field for one in add.differences]) == ("add", ["summary"])
    assert add.affected == ("order_total",)
    assert (total.name, total.contract, total.differences) == ("order_total", (), ())
    assert not add.is_breaking
    assert diff.is_breaking

    licensed = replace(before["add"].definition, origin=Origin(licence="MIT"))
    (change,) = compare_libraries(before, before.with_tools([licensed])).changed
    assert [(one.field, one.after) for one in change.differences] == [("licence", "MIT")]


def test_callers_of_what_is_gone_are_named(store: Store) -> None:
    """A removed tool that a composite calls is told with that composite."""
    library = store.load()
    diff = compare_libraries(library, library.without(["mul"]))

    assert diff.broken_by_removal == {"mul": ("order_total",)}
