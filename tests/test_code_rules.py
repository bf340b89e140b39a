"""Rules of the code base that no linter holds for us. Read from the sources."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache

import pytest

MAX_FUNCTION_LINES = 100
"""Longest body without signature and docstring."""

BROAD = {"Exception", "BaseException"}
FORBIDDEN_CALLS = {"exec", "eval", "compile", "__import__"}
Functions = ast.FunctionDef | ast.AsyncFunctionDef
Checker = Callable[[str, ast.Module], Iterator[str]]


def statements(node: Functions | ast.ClassDef) -> list[ast.stmt]:
    """The body without its docstring."""
    return node.body[1:] if ast.get_docstring(node) is not None else node.body


@cache
def nodes(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Every node of a module, outer ones first; nine rules look at each of them."""
    return tuple(ast.walk(tree))


def functions(tree: ast.Module) -> Iterator[Functions]:
    """Every function of a module, nested ones and methods included."""
    for node in nodes(tree):
        if isinstance(node, Functions):
            yield node


def long_functions(module: str, tree: ast.Module) -> Iterator[str]:
    """Functions whose body is longer than the bound."""
    for function in functions(tree):
        body = statements(function)
        lines = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
        if lines > MAX_FUNCTION_LINES:
            yield f"{module}:{function.lineno} {function.name} has {lines} lines"


def _names(node: ast.expr | None) -> set[str]:
    return (
        {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} if node else set(BROAD)
    )


def _called(call: ast.Call) -> str:
    """The last name of what is called; empty where that is no name, as in ``f()()``."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def swallowed_exceptions(module: str, tree: ast.Module) -> Iterator[str]:
    """Broad handlers that neither raise nor look at the exception, and broad ``suppress``."""
    for node in nodes(tree):
        if isinstance(node, ast.ExceptHandler) and _names(node.type) & BROAD:
            inside = [part for statement in node.body for part in ast.walk(statement)]
            raises = any(isinstance(part, ast.Raise) for part in inside)
            reads = any(isinstance(part, ast.Name) and part.id == node.name for part in inside)
            if not raises and not reads:
                yield f"{module}:{node.lineno} swallows an exception"
        elif isinstance(node, ast.Call) and _called(node).endswith("suppress"):
            broad = [argument for argument in node.args if _names(argument) & BROAD]
            yield from (f"{module}:{node.lineno} suppresses every exception" for _ in broad)


def called_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and name of each call of a plain name; methods such as ``re.compile`` are not."""
    for node in nodes(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.lineno, node.func.id


def forbidden_calls(module: str, tree: ast.Module) -> Iterator[str]:
    """Calls that run text as code."""
    for line, name in called_names(tree):
        if name in FORBIDDEN_CALLS:
            yield f"{module}:{line} calls {name}"


def prints(module: str, tree: ast.Module) -> Iterator[str]:
    """Bare ``print`` outside the command line, whose output belongs to the user."""
    for line, name in called_names(tree):
        if name == "print" and not module.startswith("agentkit.cli"):
            yield f"{module}:{line} prints"


def stubs(module: str, tree: ast.Module) -> Iterator[str]:
    """``raise NotImplementedError``: what is not built is not offered."""
    for node in nodes(tree):
        if isinstance(node, ast.Raise) and "NotImplementedError" in _names(node.exc):
            yield f"{module}:{node.lineno} raises NotImplementedError"


def hidden_imports(module: str, tree: ast.Module) -> Iterator[str]:
    """Imports of our own modules inside functions; heavy foreign packages are welcome there."""
    for function in functions(tree):
        for node in ast.walk(function):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "agentkit"] if not node.level else ["agentkit"]
            if any(name.split(".")[0] == "agentkit" for name in names):
                yield f"{module}:{node.lineno} {function.name} imports {', '.join(names)}"


def undocumented(module: str, tree: ast.Module) -> Iterator[str]:
    """Public modules, classes, functions and methods without a docstring."""
    if ast.get_docstring(tree) in {None, "."}:
        yield f"{module} has no docstring"
    yield from _undocumented_members(module, tree)


def _undocumented_members(where: str, node: ast.Module | ast.ClassDef) -> Iterator[str]:
    for member in node.body:
        if not isinstance(member, Functions | ast.ClassDef) or member.name.startswith("_"):
            continue
        overload = any("overload" in ast.unparse(part) for part in member.decorator_list)
        if not overload and not ast.get_docstring(member):
            yield f"{where}:{member.lineno} {member.name} has no docstring"
        if isinstance(member, ast.ClassDef):
            yield from _undocumented_members(where, member)


LAZY_COMMANDS = "agentkit.cli"
"""A command loads what it needs when it runs, so that ``agentkit --help`` stays quick."""

RULES: dict[str, tuple[Checker, str]] = {
    "long function": (long_functions, "def f():\n" + "    x = 1\n" * (MAX_FUNCTION_LINES + 1)),
    "swallowed exception": (
        swallowed_exceptions,
        "try:\n    f()\nexcept Exception as error:\n    x = None",
    ),
    "bare except": (swallowed_exceptions, "try:\n    f()\nexcept:\n    pass"),
    "broad suppress": (
        swallowed_exceptions,
        "with contextlib.suppress(ValueError, Exception):\n    f()",
    ),
    "code from text": (forbidden_calls, "value = eval('1 + 1')"),
    "print": (prints, "print('hello')"),
    "stub": (stubs, "def f():\n    raise NotImplementedError('later')"),
    "hidden import": (hidden_imports, "def f():\n    from agentkit.messages import ToolCall"),
    "no docstring": (undocumented, "class Tool:\n    '''A tool.'''\n    def run(self): ..."),
}


CHECKERS = {check for check, _ in RULES.values()}


def test_the_runtime_keeps_the_rules(runtime_modules):
    """No module of the runtime breaks a rule; commands load what they need when they run."""
    for module, tree in runtime_modules.items():
        for check in CHECKERS:
            may = check is hidden_imports and module.startswith(LAZY_COMMANDS)
            assert may or list(check(module, tree)) == []


def test_plugins_keep_the_rules(project_root, parse_package):
    """What holds for the runtime holds for plugins and training; they may import it late."""
    plugins = sorted(project_root.glob("plugins/*/agentkit_*"))
    for folder in (*plugins, project_root / "training" / "agentkit_training"):
        for module, tree in parse_package(folder, folder.name).items():
            for check in CHECKERS - {hidden_imports}:
                assert list(check(module, tree)) == []


@pytest.mark.parametrize("rule", RULES)
def test_each_rule_can_fail(rule):
    """The checker reports a sample that breaks the rule."""
    check, bad = RULES[rule]
    assert list(check("agentkit.sample", ast.parse(f'"""A sample."""\n{bad}')))


def test_good_code_breaks_no_rule():
    """A short documented function that hands its exception on is not reported."""
    good = ast.parse('''"""A sample."""
import re

def parse(text):
    """Numbers in a text."""
    import numpy
    try:
        return numpy.array(re.compile("[0-9]+").findall(text))
    except Exception as error:
        return Failure(cause=error)
''')
    assert [fault for check, _ in RULES.values() for fault in check("agentkit.sample", good)] == []
