"""Texts are read in several threads at once."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agentkit.composites.parser import parse

CALLS = "".join(f"    x{i} = [{i}, {{'k': a + {i}}}, len([a, {i}])]\n" for i in range(10))
TEXT = f"def f(a):\n{CALLS}    return x0\n"


@pytest.fixture
def interruptions() -> Iterator[None]:
    """The garbage collector runs often, and lets other threads go on each time."""

    def pause(phase: str, info: dict[str, Any]) -> None:
        time.sleep(0)

    before = gc.get_threshold()
    gc.callbacks.append(pause)
    gc.set_threshold(20)
    yield
    gc.set_threshold(*before)
    gc.callbacks.remove(pause)


@pytest.mark.usefixtures("interruptions")
def test_threads_do_not_disturb_each_other() -> None:
    """Every text is read, although CPython counts the depth of all trees together."""
    with ThreadPoolExecutor(4) as pool:
        read = list(pool.map(lambda _: parse(TEXT, {}).name, range(200)))
    assert read == ["f"] * 200
