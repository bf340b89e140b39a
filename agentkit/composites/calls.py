"""Reading a text: what is noted on the way, and the calls in it."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

from agentkit.composites.language import (
    BUILTINS,
    CONSUMERS,
    ITERATORS,
    METHODS,
    TOOLS,
    VIEWS,
    Arity,
    child_call,
    is_plain,
    written,
)
from agentkit.composites.problems import (
    INSTEAD,
    CompositeLimits,
    Fault,
    Place,
    did_you_mean,
    instead_of,
)
from agentkit.tools.definition import Signature
from agentkit.tools.tool import Tool

Located: TypeAlias = ast.expr | ast.stmt | ast.arg | ast.keyword
"""Syntax that has a place in the text."""

_HINTS = 3
"""Maximum number of unknown names for which similar tools are searched."""

_LISTED = 40
"""Parameters of a child that a message names."""

_NO_KEY = (
    "There is no `key=`: sort tuples whose first item is the key, "
    "`sorted((row['age'], row['name']) for row in rows)`."
)
_QUOTED = 60
REFUSED = ast.Name(id="refused")
"""Stands for what was refused, where nobody looks any more."""


class Argument(NamedTuple):
    """An argument of a call as it was read, and its syntax."""

    name: str
    value: ast.expr
    node: Located


def place_of(node: object, source: str) -> Place:
    """The start of a node; Python counts columns in bytes from 0, we in characters from 1."""
    if not isinstance(node, Located) or not hasattr(node, "lineno"):
        return (1, 1)
    if source.isascii():
        return node.lineno, node.col_offset + 1
    before = _lines(source)[node.lineno - 1][: node.col_offset]
    return node.lineno, len(before.decode("utf-8", "replace")) + 1


@lru_cache(maxsize=4)
def _lines(source: str) -> Sequence[bytes]:
    """The lines of a text as Python counts them, taken apart once for all its problems."""
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return [line.encode("utf-8") for line in lines]


def too_deep(node: object, limits: CompositeLimits) -> Fault:
    """The fault of a node that is nested beyond the limit."""
    advice = (
        "Assign inner parts to variables first; use a dict literal and .get() for a long chain "
        "of elif."
    )
    return Fault(node, "too_large", f"nested more than {limits.nesting} deep", advice)


def _assigned(root: ast.AST) -> Mapping[str, Located]:
    """The parameters and variables of a function, with the syntax that first sets each."""
    found: dict[str, Located] = {}
    if not isinstance(root, ast.FunctionDef | ast.AsyncFunctionDef):
        return found
    for argument in [*root.args.posonlyargs, *root.args.args, *root.args.kwonlyargs]:
        found.setdefault(argument.arg, argument)
    waiting = [*reversed(root.body)]
    while waiting:
        node, targets = waiting.pop(), list[ast.expr]()
        match node:
            case ast.If():
                waiting += [*reversed(node.orelse), *reversed(node.body)]
            case ast.For(target=target):
                waiting += reversed(node.body)
                targets = [target]
            case ast.Assign():
                targets = node.targets
            case ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                targets = [target]
        for part in (part for target in targets for part in ast.walk(target)):
            if isinstance(part, ast.Name):
                found.setdefault(part.id, node)
    return found


class CallReader(ABC):
    """Reads the calls of one text, and holds it to the rules of the language.

    Attributes:
        source: The text.
        tools: What a call may name; of a stored text, by the name in the library, and None where
            nothing is known of them.
        is_stored: Whether the text is a stored one, whose calls name tools and arguments as the
            library does.
        limits: Caps on the program.
        name: The composite's own name, which it may not call.
        children: The tools called so far, by their name in the library.
        faults: What is outside the language so far.
        broken: What breaks its rules, which is of interest where all could be read.
        variables: Every parameter and variable, with the syntax that first sets it.
        bound: Those that are set on every way to here.
    """

    def __init__(
        self,
        source: str,
        *,
        tools: Mapping[str, Tool] | None,
        limits: CompositeLimits,
        root: ast.expr | ast.stmt,
        name: str = "",
        is_stored: bool = False,
    ) -> None:
        self.source = source
        self.tools = tools or {}
        self.is_stored = is_stored
        self._is_unknown = tools is None
        self.limits = limits
        self.name = name
        self.children: dict[str, Tool] = {}
        self.faults: list[Fault] = []
        self.broken: list[Fault] = []
        self.variables: Mapping[str, object] = _assigned(root)
        self.bound: set[str] = set()
        self.called: set[str] = set()
        self.depth = 0
        self.targets_around: tuple[str, ...] = ()  # loop variables of the comprehensions around
        self._comprehensions = self._hints = 0
        self._is_too_deep = False

    # --- what was refused -------------------------------------------------------------------------

    def refuse(self, node: Located, code: str, message: str, advice: str = "") -> ast.expr:
        """Note a fault; gives what stands for the refused part."""
        self.faults.append(Fault(node, code, message, advice))
        return REFUSED

    def refuse_foreign(self, node: Any, what: str = "", advice: str = "") -> ast.expr:
        """Note what the language does not have."""
        message = f"{what or f'`{self.quote(node)}` is'} not in the language"
        return self.refuse(node, "unknown_construct", message, advice or instead_of(node))

    def breaks(self, node: object, code: str, message: str, advice: str = "") -> None:
        """Note that a rule is broken."""
        self.broken.append(Fault(node, code, message, advice))

    def refuse_depth(self, node: Located) -> ast.expr:
        """Refuse what is nested beyond the limit, once; what is in it stays unknown."""
        if not self._is_too_deep:
            self.faults.append(too_deep(node, self.limits))
        self._is_too_deep = True
        return REFUSED

    def quote(self, node: ast.expr | ast.stmt) -> str:
        """The text of a node, shortened."""
        if not hasattr(node, "end_lineno") or node.end_lineno is None:
            return ""
        end = node.end_col_offset if node.end_lineno == node.lineno else None
        line = _lines(self.source)[node.lineno - 1]
        text = line[node.col_offset : end].decode("utf-8", "replace")
        return f"{text[:_QUOTED]} ..." if end is None or len(text) > _QUOTED else text

    @abstractmethod
    def expression(self, node: ast.expr, *, is_consumed: bool = False) -> ast.expr:
        """Read one expression, a hole when it is refused; an iterator has to be consumed."""

    # --- calls ------------------------------------------------------------------------------------

    @cached_property
    def _keys(self) -> Mapping[str, Sequence[str]]:
        """Keys of tools that the text writes in another way, by that way."""
        found: dict[str, list[str]] = {}
        for key in self.tools:
            if not is_plain(key):
                found.setdefault(written(key), []).append(key)
        return found

    def call(self, node: ast.Call, *, is_consumed: bool = False) -> ast.expr:
        """Read a call: of a function or a method of the language, or of a child."""
        match node.func:
            case ast.Name(id=name) if name in BUILTINS:
                return self._builtin(node, name, is_consumed=is_consumed)
            case ast.Name(id=name):
                keys = () if name in self.tools or self.is_stored else self._keys.get(name, ())
                return self._child(node, keys[0] if len(keys) == 1 else name, keys)
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant(value=str(key))) if (
                name == TOOLS
            ):
                return self._child(node, key)
            case ast.Attribute() as function:
                path = dotted(function)
                root = path.partition(".")[0]
                is_tool = path and root not in self.variables and root not in self.targets_around
                if is_tool and (path in self.tools or self.is_stored):
                    return self._child(node, path)
                if is_tool and function.attr not in METHODS:
                    return self._unknown_tool(node, path)
                return self._method(node, function, is_consumed=is_consumed)
        what = f"`{self.quote(node.func)}` is not a name that can be called"
        advice = "Call a tool or a function of the language by its name."
        return self.refuse(node, "unknown_construct", what, advice)

    def _builtin(self, node: ast.Call, name: str, *, is_consumed: bool) -> ast.expr:
        arity, given = BUILTINS[name], self._positional(node)
        if name in ITERATORS and not is_consumed:
            self._escapes(node, f"`{name}(...)`")
        node.args = [
            self.expression(value, is_consumed=_consumes(name, place, value, len(given)))
            for place, value in enumerate(given)
        ]
        for keyword in node.keywords:
            if keyword.arg is not None and keyword.arg not in arity.keywords:
                known = ", ".join(f"`{word}=`" for word in arity.keywords) or "no keywords"
                message = f"`{name}` does not take `{keyword.arg}=`"
                advice = _NO_KEY if keyword.arg == "key" else f"`{name}` takes {known}."
                self.breaks(keyword, "wrong_arity", message, advice)
        fitting = [one for one in node.keywords if one.arg is None or one.arg in arity.keywords]
        arguments = self._keywords(fitting, ())
        node.keywords = [ast.keyword(arg=one.name, value=one.value) for one in arguments]
        self._check_repeated(name, arguments)
        self._check_count(node, name, arity, len(given))
        return node

    def _method(self, node: ast.Call, function: ast.Attribute, *, is_consumed: bool) -> ast.expr:
        name, given = function.attr, self._positional(node)
        if name not in METHODS:
            what = f"`{self.quote(function)}`: there is no method `.{name}()`"
            advice = INSTEAD.get(f".{name}") or did_you_mean(name, METHODS)
            advice = advice or f"The methods are {', '.join(METHODS)}."
            return self.refuse(node, "unknown_method", what, advice)
        if name in VIEWS and not is_consumed:
            self._escapes(node, f"`.{name}()`")
        function.value = self.expression(function.value)
        node.args = [self.expression(one, is_consumed=name == "join") for one in given]
        self._check_count(node, f".{name}", METHODS[name], len(given))
        if node.keywords:
            what = f"the method `.{name}()` takes no keywords"
            advice = "Give its arguments by position."
            self.refuse(node.keywords[0], "wrong_arity", what, advice)
        return node

    def _escapes(self, node: ast.expr, what: str) -> None:
        """Refuse an iterator where a value is wanted."""
        message = f"{what} is handed out piece by piece and may only be used where it is consumed"
        advice = f"Write list(...) around {what} to keep it as a list."
        self.breaks(node, "iterator_escapes", message, advice)

    def _check_count(self, node: object, name: str, arity: Arity, count: int) -> None:
        if arity.least <= count and (arity.most is None or count <= arity.most):
            return
        bounds = "or more" if arity.most is None else f"to {arity.most}"
        numbers = f"{arity.least}" if arity.least == arity.most else f"{arity.least} {bounds}"
        expected = f"{numbers} argument{'s' if numbers != '1' else ''}"
        message = f"`{name}` takes {expected}, got {count}"
        self.breaks(node, "wrong_arity", message, f"Call `{name}` with {expected}.")

    def _unknown_tool(self, node: ast.Call, name: str, keys: Sequence[str] = ()) -> ast.expr:
        if keys:
            what = f"`{name}` can be any of the tools {', '.join(map(repr, keys))}"
            advice = "Rename one of them: for `_` stands each character that Python does not allow."
        elif name in self.variables or name in self.targets_around:
            what = f"`{name}` is a variable and cannot be called"
            advice = "Call a tool by its name; functions are not values here."
        else:
            self._hints += 1
            what, advice = f"there is no tool `{name}`", INSTEAD.get(name.rpartition(".")[2], "")
            if not advice and self._hints <= _HINTS:
                advice = did_you_mean(name, [*self.tools, *BUILTINS])
        return self.refuse(node, "unknown_tool", what, advice)

    def _child(self, node: ast.Call, key: str, keys: Sequence[str] = ()) -> ast.expr:
        """A call of the tool that ``tools`` holds under ``key``."""
        tool = self.tools.get(key)
        name = key if tool is None else tool.name
        if name == self.name:
            self.breaks(node, "recursive_call", f"`{name}` calls itself")
            return ast.copy_location(child_call(name), node)
        if tool is None and not self.is_stored:
            return self._unknown_tool(node, key, keys)
        if tool is None and not self._is_unknown:
            self.breaks(node, "missing_child", f"there is no tool {key!r}")
        known = () if tool is None else tuple(tool.definition.signature.properties)
        arguments = [*self._by_position(node, name, known), *self._keywords(node.keywords, known)]
        self.called.add(name)
        self._check_repeated(name, arguments)
        if tool is not None:
            self.children[name] = tool
            self._check_arguments(node, name, arguments, tool.definition.signature)
        made = child_call(name, ((one.name, one.value) for one in arguments))
        return ast.copy_location(made, node)

    def _by_position(self, node: ast.Call, name: str, known: Sequence[str]) -> Iterable[Argument]:
        """Positional arguments, with the names that they are bound to."""
        for place, value in enumerate(self._positional(node)):
            read = self.expression(value)
            if self.is_stored:
                what = "a call in a stored program gives an argument without its name"
                self.refuse(value, "malformed_program", what)
            elif place < len(known):
                yield Argument(known[place], read, value)
            elif place == len(known):
                what = f"`{name}` takes {len(known)} arguments, got {len(node.args)}"
                self.refuse(value, "wrong_arity", what, f"It takes {', '.join(known) or 'none'}.")

    def _check_repeated(self, name: str, arguments: Sequence[Argument]) -> None:
        for argument, count in Counter(one.name for one in arguments).items():
            if count > 1:
                last = next(one for one in reversed(arguments) if one.name == argument)
                message = f"`{name}` is given `{argument}` {count} times"
                self.breaks(last.node, "repeated_argument", message, f"Give `{argument}` once.")

    def _check_arguments(
        self, node: ast.Call, name: str, arguments: Sequence[Argument], signature: Signature
    ) -> None:
        properties, names = signature.properties, {one.name for one in arguments}
        missing = [one for one in signature.required if one not in names]
        if missing:
            message = f"`{name}` needs {', '.join(f'`{one}`' for one in missing)}"
            takes = f"It takes {_parameter_list(signature)}."
            self.breaks(node, "missing_argument", message, takes)
        schema = signature.parameters
        is_open = bool(schema.get("additionalProperties")) or "patternProperties" in schema
        for argument in arguments:
            if argument.name not in properties and not is_open:
                message = f"`{name}` has no parameter `{argument.name}`"
                self._hints += 1
                near = did_you_mean(argument.name, properties) if self._hints <= _HINTS else ""
                advice = f"{near} It takes {_parameter_list(signature)}.".lstrip()
                self.breaks(argument.node, "unknown_argument", message, advice)

    def _positional(self, node: ast.Call) -> list[ast.expr]:
        values = []
        for value in node.args:
            if isinstance(value, ast.Starred):
                advice = "Write the arguments out one by one."
                self.refuse_foreign(value, "`*` in front of an argument is", advice)
            else:
                values.append(value)
        return values

    def _keywords(self, keywords: Sequence[ast.keyword], known: Collection[str]) -> list[Argument]:
        made = []
        for keyword in keywords:
            match keyword:
                case ast.keyword(arg=str(name), value=value):
                    if known and name not in known:
                        keys = [key for key in known if written(key) == name]
                        name = keys[0] if len(keys) == 1 else name
                case ast.keyword(
                    value=ast.Dict(keys=[ast.Constant(value=str(name))], values=[value])
                ):
                    pass  # a name that Python cannot write
                case _:
                    advice = "Write the arguments out by name."
                    self.refuse_foreign(keyword, "`**` in front of an argument is", advice)
                    continue
            made.append(Argument(name, self.expression(value), keyword))
        return made


def dotted(node: ast.expr) -> str:
    """``a.b.c`` as text; empty when it is not a chain of names."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def _consumes(function: str, place: int, argument: ast.expr, count: int) -> bool:
    """Whether an argument of a builtin is taken piece by piece."""
    if function == "len":  # which a range and a view have
        called = argument.func if isinstance(argument, ast.Call) else None
        return not isinstance(called, ast.Name) or called.id == "range"
    alone = function in CONSUMERS and count == 1
    return alone or function == "zip" or (place == 0 and function in {"sum", "enumerate"})


def _parameter_list(signature: Signature) -> str:
    """The parameters of a child, for a message."""
    required = signature.required
    names = [one if one in required else f"{one} (optional)" for one in signature.properties]
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more or "no arguments"
