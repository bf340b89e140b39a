"""A callable's parameters and result, and JSON Schema for plain annotations without pydantic.

Most tools take strings, numbers, lists and dicts. For those the schema is written down here, so
that neither declaring nor calling them loads pydantic; a test holds the result equal to
pydantic's. Everything else (models, enums, dates, constraints) goes to pydantic.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, get_args, get_origin

from agentkit.errors import DefinitionError
from agentkit.tools.invocation import is_context

_MARKER = inspect.Parameter.empty
_UNUSABLE_KINDS = {
    inspect.Parameter.VAR_POSITIONAL: (
        "*{name} takes any number of values; write one list parameter instead, such as "
        "`{name}: list[str]`"
    ),
    inspect.Parameter.VAR_KEYWORD: (
        "**{name} takes any arguments; write the parameters out, or one `{name}: dict[str, Any]`"
    ),
    inspect.Parameter.POSITIONAL_ONLY: (
        "{name!r} is positional-only, but models pass arguments by name; remove the `/` behind it"
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class CallableShape:
    """A callable's parameters and result.

    Attributes:
        name: Its own name; empty for a lambda.
        docstring: Its docstring as written.
        reference: Module path.
        parameters: What a model fills in, with resolved annotations; values bound by
            ``functools.partial`` are left out.
        returns: The resolved return annotation; ``Parameter.empty`` when there is none.
        is_async: Whether calling it gives a coroutine.
        context: The first parameter, when it takes the ``RunContext``; models do not see it.
    """

    name: str
    docstring: str | None
    reference: str
    parameters: tuple[inspect.Parameter, ...]
    returns: Any
    is_async: bool = False
    context: inspect.Parameter | None = None


def is_required(parameter: inspect.Parameter) -> bool:
    """Whether a call must give it."""
    return parameter.default is _MARKER


def read_callable(function: Callable[..., Any], *, name: str | None = None) -> CallableShape:
    """Read the shape of a function, a bound method, a partial or an object with ``__call__``.

    Args:
        function: The callable.
        name: The name that the tool will have, for messages.

    Raises:
        DefinitionError: A model cannot call it; the message says which parameter is to blame and
            what to write instead.
    """
    inner: Any = function
    bound: set[str] = set()
    while isinstance(inner, functools.partial):
        bound |= inner.keywords.keys()
        inner = inner.func
    called = inner if inspect.isroutine(inner) else type(inner).__call__
    own_name = getattr(inner, "__name__", None) or type(inner).__name__
    own_name = "" if own_name == "<lambda>" else str(own_name)
    shown = name or own_name or repr(function)
    _refuse_kinds(function, inner, called, shown)
    annotations = _annotations(called, shown)
    parameters = [
        _parameter(parameter, annotations, shown)
        for parameter in _signature(function, shown).parameters.values()
        if parameter.name not in bound
    ]
    taken = [parameter for parameter in parameters if is_context(parameter.annotation)]
    if taken and taken != parameters[:1]:
        why = f"{taken[-1].name!r} takes the RunContext; make it the first parameter"
        raise _refusal(shown, why)
    is_function = inspect.isroutine(inner)
    return CallableShape(
        name=own_name,
        docstring=inner.__doc__ if is_function else called.__doc__ or type(inner).__doc__,
        reference=f"{getattr(inner, '__module__', '')}.{getattr(inner, '__qualname__', own_name)}",
        parameters=tuple(parameters[len(taken) :]),
        returns=annotations.get("return", _MARKER),
        is_async=inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(called),
        context=taken[0] if taken else None,
    )


def _refusal(shown: str, why: str) -> DefinitionError:
    return DefinitionError(f"tool {shown}: {why}", tool_name=shown)


def _refuse_kinds(function: Any, inner: Any, called: Any, shown: str) -> None:
    if not callable(function) or inspect.isclass(inner):
        why = f"{function!r} is not a function; make a tool of a function that takes one"
        raise _refusal(shown, why)
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        why = "it is a generator, but a call has one result; return a list instead"
        raise _refusal(shown, why)


def _signature(function: Callable[..., Any], shown: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError) as error:
        why = (
            f"Python cannot tell what it takes ({error}); wrap it in a function with annotated "
            "parameters"
        )
        raise _refusal(shown, why) from error


def _annotations(called: Any, shown: str) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(called, include_extras=True)
    except NameError as error:
        why = (
            f"an annotation names {error.name!r}, which is not defined at the top of its module; "
            "import or define it there (not only under TYPE_CHECKING or inside a function)"
        )
        raise _refusal(shown, why) from error
    except (TypeError, AttributeError, SyntaxError) as error:
        raise _refusal(shown, f"an annotation cannot be read: {error}") from error


def _parameter(
    parameter: inspect.Parameter, annotations: Mapping[str, Any], shown: str
) -> inspect.Parameter:
    """The parameter with its resolved annotation."""
    name = parameter.name
    if parameter.kind in _UNUSABLE_KINDS:
        raise _refusal(shown, _UNUSABLE_KINDS[parameter.kind].format(name=name))
    if name in {"self", "cls"} and name not in annotations:
        why = (
            f"{name!r} would be asked of the model; make a tool of the bound method instead: "
            f"tool(instance.{shown})"
        )
        raise _refusal(shown, why)
    if type(parameter.default).__name__ == "FieldInfo":
        why = (
            f"the default of {name!r} is a Field, which the function would receive; write "
            f"`{name}: Annotated[<type>, Field(...)] = <default>`"
        )
        raise _refusal(shown, why)
    return parameter.replace(annotation=annotations.get(name, Any))


# --- plain annotations ----------------------------------------------------------------------------

_ANY_LIST = {"items": {}, "type": "array"}
_ANY_DICT = {"additionalProperties": True, "type": "object"}
_BARE: Mapping[Any, Mapping[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    None: {"type": "null"},
    type(None): {"type": "null"},
    Any: {},
    object: {},
    list: _ANY_LIST,
    dict: _ANY_DICT,
}
_LITERAL_TYPES = {str: "string", int: "integer", bool: "boolean", type(None): "null"}


def plain_schema(annotation: Any) -> dict[str, Any] | None:
    """The schema of an annotation whose values are JSON data as they stand.

    Args:
        annotation: A resolved annotation.

    Returns:
        The schema, equal to pydantic's without titles; None when pydantic has to be asked.

    Example:
        >>> plain_schema(list[int] | None)
        {'anyOf': [{'items': {'type': 'integer'}, 'type': 'array'}, {'type': 'null'}]}
        >>> plain_schema(set[int]) is None
        True
    """
    if get_origin(annotation) is not None:
        return _generic(annotation)
    try:
        known = _BARE.get(annotation)
    except TypeError:  # an annotation that cannot be a key, such as a list
        known = None
    return None if known is None else dict(known)


def _generic(annotation: Any) -> dict[str, Any] | None:
    arguments = get_args(annotation)
    match get_origin(annotation):
        case builtins.list:
            return _list(*arguments)
        case builtins.dict:
            return _dict(*arguments)
        case typing.Literal:
            return _literal(arguments)
        case typing.Union | types.UnionType:
            return _union(arguments)
        case typing.Annotated if all(isinstance(item, str) for item in arguments[1:]):
            return plain_schema(arguments[0])
        case _:
            return None


def _list(item: Any = Any) -> dict[str, Any] | None:
    items = plain_schema(item)
    return None if items is None else {"items": items, "type": "array"}


def _dict(key: Any = str, item: Any = Any) -> dict[str, Any] | None:
    values = plain_schema(item)
    if key is not str or values is None:  # pydantic turns other keys into Python values
        return None
    return {"additionalProperties": values or True, "type": "object"}


def annotation_text(annotation: Any) -> str:
    """The words in ``Annotated[int, "how many"]``; the last string counts.

    Strings inside other annotations belong to them and are not looked for.
    """
    if get_origin(annotation) is not Annotated:
        return ""
    texts = [item for item in get_args(annotation)[1:] if isinstance(item, str)]
    return texts[-1] if texts else ""


def _literal(members: tuple[Any, ...]) -> dict[str, Any] | None:
    kinds = {type(member) for member in members}
    if not kinds <= _LITERAL_TYPES.keys() or len(set(members)) != len(members):
        return None
    schema: dict[str, Any] = {"enum": list(members)}
    if len(members) == 1:
        schema = {"const": members[0]}
    if len(kinds) == 1:
        schema["type"] = _LITERAL_TYPES[kinds.pop()]
    return schema


def _union(members: tuple[Any, ...]) -> dict[str, Any] | None:
    branches: list[dict[str, Any]] = []
    for member in members:
        branch = plain_schema(member)
        if branch is None or not branch:
            return None
        if "anyOf" in branch:  # pydantic flattens what only Annotated kept apart
            return None
        if branch not in branches:
            branches.append(branch)
    return {"anyOf": branches} if len(branches) > 1 else branches[0]
