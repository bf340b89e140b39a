"""Imports run one way, and never in a circle. Read from the sources; nothing is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache

import networkx as nx
import pytest

ORDER = (
    "errors", "reading", "fetch", "media", "records", "messages", "tools", "composites", "episodes",
    "library", "models", "metrics", "retrieval", "diagnosis", "tracing", "agent", "evolution",
    "evaluation", "interop", "server", "testing", "cli", "__main__",
)  # fmt: skip
"""A layer may import itself and those before it."""

LEAVES = {"_loop_bound", "_pacing", "_proxies", "_version", "_waiting"}
"""Modules that import nothing of ours, so that every layer may import them."""

FOREIGN = (
    "agentkit_training",
    "agentkit_bench",
    "agentkit_local",
    "agentkit_postgres",
    "agentkit_redis",
)
"""Distributions that import the runtime; the runtime finds plugins through entry points."""


def imported_names(module: str, tree: ast.Module, *, is_package: bool) -> Iterator[tuple[int, str]]:
    """Line and dotted name of each import, at any depth of the module, and of each module named in a text.

    ``from package import name`` gives ``package.name``, which may be a module or a member of one.
    """
    for node in importing(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module.split(".") if is_package else module.split(".")[:-1]
            above = package[: len(package) - node.level + 1] if node.level else []
            stem = ".".join([*above, *filter(None, [node.module])])
            yield from ((node.lineno, f"{stem}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Constant):
            yield node.lineno, f"{node.value}.*"  # import_module("agentkit.…")


@cache
def importing(tree: ast.Module) -> tuple[ast.AST, ...]:
    """The nodes of a module that import something; several checks ask for them."""
    return tuple(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Constant) and str(node.value).startswith("agentkit."))
    )


def internal_edges(modules: Mapping[str, ast.Module]) -> Iterator[tuple[str, int, str]]:
    """Importing module, line, imported module, for imports inside the package."""
    for module, tree in modules.items():
        is_package = any(other.startswith(f"{module}.") for other in modules)
        for line, name in imported_names(module, tree, is_package=is_package):
            target = name if name in modules else name.rpartition(".")[0]
            if target in modules and target != module:
                yield module, line, target


def layer(module: str) -> str:
    """The second part of a dotted name: the folder or file right below the package."""
    return [*module.split("."), ""][1]


def upward_imports(modules: Mapping[str, ast.Module]) -> list[str]:
    """Imports of a later layer, and of the public door from inside."""
    faults = []
    for module, line, target in internal_edges(modules):
        if "." not in module or layer(target) in LEAVES:
            continue  # the package itself is the lazy public door
        if "." not in target:
            faults.append(f"{module}:{line} imports the public door {target!r} from inside")
        elif layer(module) in ORDER and layer(target) in ORDER[ORDER.index(layer(module)) + 1 :]:
            faults.append(f"{module}:{line} imports {target}, which is a later layer")
    return faults


def cycles(modules: Mapping[str, ast.Module]) -> list[list[str]]:
    """Groups of modules that import each other, imports inside functions included."""
    edges = [(m, target) for m, _, target in internal_edges(modules) if "." in m]
    graph = nx.DiGraph(edges)
    return [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]


def sample(**sources: str) -> dict[str, ast.Module]:
    """A package made of source texts, for checking the checkers."""
    modules = {"agentkit": ast.parse("")}
    for name, source in sources.items():
        modules[f"agentkit.{name.replace('__', '.')}"] = ast.parse(source)
    return modules


def test_every_module_belongs_to_a_layer(runtime_modules):
    """A new top-level module or folder has to take its place in the order."""
    strangers = {layer(name) for name in runtime_modules} - {*ORDER, *LEAVES, ""}
    assert not strangers


def test_imports_run_one_way(runtime_modules):
    """No layer imports a later one, not even inside a function or for typing alone."""
    assert upward_imports(runtime_modules) == []


def test_no_import_cycle(runtime_modules):
    """No two modules import each other, directly or in a circle."""
    assert cycles(runtime_modules) == []


def test_runtime_knows_no_plugin_and_no_training(runtime_modules):
    """Plugins and training import the runtime, never the reverse."""
    for module, tree in runtime_modules.items():
        for line, name in imported_names(module, tree, is_package=False):
            assert not name.startswith(FOREIGN), f"{module}:{line} imports {name}"


@pytest.mark.parametrize(
    "source",
    [
        "from agentkit.agent import loop",
        "import agentkit.agent.loop",
        "def f():\n    from agentkit.agent.loop import run",
        "from .agent.loop import run",
        "door = 'agentkit.agent.loop'",
        "from agentkit import Agent",
    ],
)
def test_the_layer_check_can_fail(source):
    """An upward import is found however it is written."""
    assert upward_imports(sample(messages=source, agent="", agent__loop=""))


def test_the_cycle_check_can_fail():
    """A circle of three modules is found when one of its imports hides in a function."""
    circle = sample(
        tools__a="from agentkit.tools import b",
        tools__b="from agentkit.tools.c import x",
        tools__c="def f():\n    import agentkit.tools.a",
    )
    assert cycles(circle) == [["agentkit.tools.a", "agentkit.tools.b", "agentkit.tools.c"]]
    del circle["agentkit.tools.b"]
    assert cycles(circle) == []
