"""The composite language never runs text: no module of it can."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

import pytest

PACKAGE = "agentkit.composites"
RUNNING = frozenset({"exec", "eval", "compile", "__import__", "globals", "locals", "vars"})
"""Names that run text, or that lead to what runs it."""

LOADING = frozenset(
    {"importlib", "runpy", "code", "codeop", "pickle", "marshal", "ctypes", "builtins"}
)
REFLECTING = frozenset({"getattr", "setattr", "delattr", "attrgetter", "methodcaller"})
DUNDERS = frozenset(
    {
        "__class__",
        "__bases__",
        "__subclasses__",
        "__globals__",
        "__builtins__",
        "__code__",
        "__mro__",
    }
)

ALLOWED = {
    f"{PACKAGE}.language": {"getattr"},  # the fields of our own nodes
    f"{PACKAGE}.problems": {"getattr"},  # the fields of our own record
    f"{PACKAGE}.guards": {"__mro__"},  # the kind of an exception, for its code
    f"{PACKAGE}.parser": {"vars"},  # a field that syntax trees have from Python 3.12 on
    # @composite reads the source of a function that a person wrote, and what that one can see
    f"{PACKAGE}.decorator": {"getattr", "vars", "__globals__", "__code__"},
}
"""What a module may use, and why."""


def dangers(module: str, tree: ast.Module) -> Iterator[str]:
    """Where a module could run text as code, or walk attributes named by text."""
    allowed = ALLOWED.get(module, set())
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            known = RUNNING if isinstance(node, ast.Name) else DUNDERS
            if name in known | REFLECTING and name not in allowed:
                yield f"{module}:{node.lineno} uses {name}"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            stem = node.module if isinstance(node, ast.ImportFrom) else ""
            names = {stem or alias.name for alias in node.names}
            if {name.split(".")[0] for name in names} & LOADING:
                yield f"{module}:{node.lineno} imports {sorted(names)}"


def test_no_module_of_the_language_runs_text(runtime_modules: Mapping[str, ast.Module]) -> None:
    """Parser, checks, interpreter and all the rest hold nothing that runs or imports text."""
    mine = {name: tree for name, tree in runtime_modules.items() if name.startswith(PACKAGE)}
    assert f"{PACKAGE}.parser" in mine
    assert [danger for name, tree in mine.items() for danger in dangers(name, tree)] == []


@pytest.mark.parametrize(
    "text",
    [
        "value = eval('1 + 1')",
        "run = exec",
        "__import__('os')",
        "import importlib",
        "import pickle as plain",
        "value = getattr(row, name)",
        "import operator\nread = operator.attrgetter(name)",
        "kind = ().__class__.__bases__",
    ],
)
def test_the_check_can_fail(text: str) -> None:
    """Each way to run text is reported."""
    assert list(dangers(f"{PACKAGE}.sample", ast.parse(text)))


def test_harmless_code_is_not_reported() -> None:
    """Parsing text to a tree, and calling a method, is no danger."""
    good = ast.parse("import ast\nimport re\ntree = ast.parse(text)\nwords = re.compile('a')")
    assert list(dangers(f"{PACKAGE}.sample", good)) == []
