"""Whether a call fits what it calls: functions and methods of the language, and children."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from agentkit.composites import ir
from agentkit.composites.faults import Fault
from agentkit.composites.language import BUILTINS, METHODS, Arity
from agentkit.composites.nearest import did_you_mean
from agentkit.tools.definition import Signature
from agentkit.tools.tool import Tool

_KEYWORD_ADVICE = {
    "key": "There is no `key=`: sort tuples whose first item is the key, "
    "`sorted((row['age'], row['name']) for row in rows)`.",
    "strict": "Drop `strict=`; compare the lengths first where they may differ.",
    "base": "Only decimal texts can be read: `int(text)`.",
    "ndigits": "Give it by position: `round(x, 2)`.",
}
_HINTS = 3
"""For how many unknown names of one program similar ones are looked for."""

_LISTED = 40
"""Parameters of a child that a message names."""

_STARTED = {"enumerate": "start", "max": "default", "min": "default"}
"""Keywords that go only with a single positional argument."""


def builtin_faults(node: ir.Builtin) -> Iterator[Fault]:
    """What is wrong with a call of a function of the language."""
    arity = BUILTINS.get(node.function)
    if arity is None:
        message = f"there is no function `{node.function}`"
        yield Fault(node, "unknown_name", message, did_you_mean(node.function, BUILTINS))
        return
    names = [given.name for given in node.keywords]
    for given in node.keywords:
        if given.name not in arity.keywords:
            known = ", ".join(f"`{name}=`" for name in arity.keywords) or "no keywords"
            advice = _KEYWORD_ADVICE.get(given.name, f"`{node.function}` takes {known}.")
            message = f"`{node.function}` does not take `{given.name}=`"
            yield Fault(given, "wrong_arity", message, advice)
    yield from _repeated(node.keywords, node.function)
    yield from _count(node, node.function, arity, len(node.arguments))
    if _STARTED.get(node.function) in names and len(node.arguments) > 1:
        message = f"`{node.function}` takes `{_STARTED[node.function]}=` with one argument only"
        yield Fault(node, "wrong_arity", message, "Drop the keyword, or give one list.")


def method_faults(node: ir.Method) -> Iterator[Fault]:
    """What is wrong with a call of a method of the language."""
    arity = METHODS.get(node.method)
    if arity is None:
        message = f"there is no method `.{node.method}()`"
        yield Fault(node, "unknown_method", message, did_you_mean(node.method, METHODS))
    else:
        yield from _count(node, f".{node.method}", arity, len(node.arguments))


def _count(node: object, name: str, arity: Arity, given: int) -> Iterator[Fault]:
    if arity.least <= given and (arity.most is None or given <= arity.most):
        return
    if arity.most is None:
        wanted = f"{arity.least} or more arguments"
    elif arity.least == arity.most:
        wanted = f"{arity.least} argument{'s' if arity.least != 1 else ''}"
    else:
        wanted = f"{arity.least} to {arity.most} arguments"
    message = f"`{name}` takes {wanted}, got {given}"
    yield Fault(node, "wrong_arity", message, f"Call `{name}` with {wanted}.")


def _repeated(arguments: tuple[ir.Argument, ...], name: str) -> Iterator[Fault]:
    if len(arguments) < 2:
        return
    for argument, count in Counter(given.name for given in arguments).items():
        if count > 1:
            last = next(given for given in reversed(arguments) if given.name == argument)
            message = f"`{name}` is given `{argument}` {count} times"
            yield Fault(last, "repeated_argument", message, f"Give `{argument}` once.")


class Hints:
    """What a wrong name may have meant: for the first few only, because looking takes time."""

    def __init__(self) -> None:
        self._left = _HINTS

    def of(self, name: str, known: Collection[str]) -> str:
        """A question that names similar names; empty when there are none."""
        self._left -= 1
        return did_you_mean(name, known) if self._left >= 0 else ""


def child_faults(
    node: ir.Call, children: Mapping[str, Tool] | None, own: str, hints: Hints
) -> Iterator[Fault]:
    """What is wrong with a call of a child."""
    if children is not None and _fits(node, children.get(node.child), own):
        return
    if node.child == own:
        yield recursive_call(node, own)
        return
    yield from _repeated(node.arguments, node.child)
    if children is None:
        return
    tool = children.get(node.child)
    if tool is None:
        message = f"there is no tool {node.child!r}"
        yield Fault(node, "missing_child", message, hints.of(node.child, children))
    else:
        yield from _argument_faults(node, tool.definition.signature, hints)


def _fits(node: ir.Call, tool: Tool | None, own: str) -> bool:
    """Whether a call is right, told quickly."""
    if tool is None or node.child == own:
        return False
    names = {argument.name for argument in node.arguments}
    signature = tool.definition.signature
    return (
        len(names) == len(node.arguments)
        and names <= signature.properties.keys()
        and names.issuperset(signature.required)
    )


def recursive_call(node: object, own: str) -> Fault:
    """The fault of a composite that calls itself."""
    return Fault(
        node,
        "recursive_call",
        f"`{own}` calls itself",
        "Use a for loop over range; tools form a graph without cycles.",
    )


def _argument_faults(node: ir.Call, signature: Signature, hints: Hints) -> Iterator[Fault]:
    properties, given = signature.properties, {argument.name for argument in node.arguments}
    missing = [name for name in signature.required if name not in given]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        message = f"`{node.child}` needs {names}"
        advice = f"`{node.child}` takes {parameter_list(signature)}."
        yield Fault(node, "missing_argument", message, advice)
    if given <= properties.keys() or _is_open(signature):
        return
    for argument in node.arguments:
        if argument.name not in properties:
            message = f"`{node.child}` has no parameter `{argument.name}`"
            hint = hints.of(argument.name, properties)
            advice = f"It takes {parameter_list(signature)}."
            yield Fault(argument, "unknown_argument", message, f"{hint} {advice}".lstrip())


def _is_open(signature: Signature) -> bool:
    schema = signature.parameters
    return bool(schema.get("additionalProperties")) or "patternProperties" in schema


def parameter_list(signature: Signature) -> str:
    """The parameters of a child, for a message."""
    required = signature.required
    shown = islice(signature.properties, _LISTED)
    names = [name if name in required else f"{name} (optional)" for name in shown]
    if len(signature.properties) > _LISTED:
        names.append(f"and {len(signature.properties) - _LISTED} more")
    return ", ".join(names) or "no arguments"
