"""The public checker of BFCL, run beside ours: a folder that holds ``bfcl_eval`` is enough.

The package is read where it lies (``pip install --no-deps --target FOLDER bfcl_eval==2026.3.23``).
Its list of models imports every provider's client, so a stand-in takes its place; of that list the
checker asks only whether a model writes dots in names as underscores. Its decoder, which evaluates
model output, is never imported: the checker is given decoded calls.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Decoded = Sequence[Mapping[str, Mapping[str, Any]]]
"""Calls as upstream's decoder gives them: one object each, from the name to the arguments."""

_MODEL = "agreement"
_MODELS = "bfcl_eval.constants.model_config"
_LANGUAGES = {"simple_java": "JAVA", "simple_javascript": "JAVASCRIPT"}


@dataclass(frozen=True, kw_only=True)
class Said:
    """What upstream says of an output.

    Attributes:
        valid: Its verdict; None when it raised instead.
        reason: Its error type, or the exception.
    """

    valid: bool | None
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question as upstream's files have it."""

    task_id: str
    category: str
    function: Sequence[Mapping[str, Any]]
    gold: Sequence[Mapping[str, Mapping[str, Sequence[Any]]]] = field(default=())


class Upstream:
    """Upstream's checker.

    Args:
        folder: Holds the package ``bfcl_eval``.
    """

    def __init__(self, folder: Path) -> None:
        if not (folder / "bfcl_eval").is_dir():
            raise FileNotFoundError(f"{folder} holds no folder bfcl_eval; see this module's text")
        sys.path.insert(0, str(folder))
        try:
            models = types.ModuleType(_MODELS)
            plain = types.SimpleNamespace(underscore_to_dot=False)
            vars(models)["MODEL_CONFIG_MAPPING"] = {_MODEL: plain}
            sys.modules[_MODELS] = models
            if importlib.util.find_spec("filelock") is None:
                sys.modules["filelock"] = types.ModuleType("filelock")
                vars(sys.modules["filelock"])["FileLock"] = None
            self._checker = importlib.import_module(
                "bfcl_eval.eval_checker.ast_eval.ast_checker"
            ).ast_checker
            utils = importlib.import_module("bfcl_eval.utils")
            self._is_empty, self._is_calls = (
                utils.is_empty_output,
                utils.is_function_calling_format_output,
            )
            converters = "bfcl_eval.eval_checker.ast_eval.type_convertor"
            self._readers = {
                "simple_java": importlib.import_module(
                    f"{converters}.java_type_converter"
                ).java_type_converter,
                "simple_javascript": importlib.import_module(
                    f"{converters}.js_type_converter"
                ).js_type_converter,
            }
            self._languages = importlib.import_module("bfcl_eval.constants.enums").Language
        finally:
            sys.path.remove(str(folder))

    def judge(self, question: Question, decoded: Decoded | None) -> Said:
        """The verdict on the calls of one answer; None: they could not be decoded."""
        if "relevance" in question.category:
            called = decoded is not None and not self._is_empty(list(decoded))
            return Said(valid=called != ("irrelevance" in question.category))
        if decoded is None or not self._is_calls(list(decoded)):
            return Said(valid=False, reason="ast_decoder")
        language = self._languages[_LANGUAGES.get(question.category, "PYTHON")]
        try:
            said = self._checker(
                list(question.function),
                list(decoded),
                list(question.gold),
                language,
                question.category,
                _MODEL,
            )
        except Exception as error:  # noqa: BLE001 - whatever it raises is what is counted
            return Said(valid=None, reason=f"{type(error).__name__}: {error}")
        return Said(valid=bool(said["valid"]), reason=str(said.get("error_type", "")))

    def read(self, category: str, text: str, schema: Mapping[str, Any]) -> Any:
        """The value that upstream reads in a source text of its Java or JavaScript category."""
        item = schema["items"]["type"] if "items" in schema else None
        return self._readers[category](text, schema["type"], item)


def read_questions(folder: Path, category: str) -> list[Question]:
    """The questions of one category, with their gold answers, from upstream's data folder."""
    name = f"BFCL_v4_{category}.json"
    gold = {row["id"]: row["ground_truth"] for row in _rows(folder / "possible_answer" / name)}
    return [
        Question(
            task_id=row["id"],
            category=category,
            function=row["function"],
            gold=gold.get(row["id"], ()),
        )
        for row in _rows(folder / name)
    ]


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
