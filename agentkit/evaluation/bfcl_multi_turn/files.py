"""Where the questions, the tool definitions and the simulators of BFCL's multi-turn part lie."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentkit.errors import DatasetError
from agentkit.evaluation.bfcl import RELEASE, WHEEL_SHA256
from agentkit.fetch import PackageFile, Progress, cache_directory, fetch_package_files

CATEGORIES = (
    "multi_turn_base",
    "multi_turn_miss_func",
    "multi_turn_miss_param",
    "multi_turn_long_context",
)
"""The categories; their names are also what the ids of their questions begin with."""

SIMULATORS: Mapping[str, str] = {
    "GorillaFileSystem": "gorilla_file_system",
    "MathAPI": "math_api",
    "MessageAPI": "message_api",
    "TwitterAPI": "posting_api",
    "TicketAPI": "ticket_api",
    "TradingBot": "trading_bot",
    "TravelAPI": "travel_booking",
    "VehicleControlAPI": "vehicle_control",
}
"""Module of each simulated class, and name of the file that describes its tools.

Upstream: ``bfcl_eval/constants/executable_backend_config.py``.
"""

FILES_SHA256 = "2a4f624dc68bbb2117606eeb8fe069406b5092827380a76321107a91956fd26f"
"""Digest of release ``RELEASE``: of all files that are taken out of it, one after the other."""

_SHARED_MODULES = ("long_context",)  # what several simulators import
_DATA = "bfcl_eval/data"
_SOURCE = "bfcl_eval/eval_checker/multi_turn_eval/func_source_code"
_SIMULATORS_FOLDER = "func_source_code"
_DEFINITIONS_FOLDER = "multi_turn_func_doc"


@dataclass(frozen=True, kw_only=True, slots=True)
class MultiTurnFiles:
    """The two folders that the benchmark is read from.

    Attributes:
        data: Holds ``BFCL_v4_multi_turn_base.json`` and the like, ``possible_answer`` and
            ``multi_turn_func_doc``.
        simulators: Holds the Python modules that simulate the tools.
    """

    data: Path
    simulators: Path

    def questions(self, category: str) -> Path:
        """The questions of one category."""
        return self.data / _question_file(category)

    def answers(self, category: str) -> Path:
        """The gold calls of one category."""
        return self.data / _answer_file(category)

    def definitions(self, module: str) -> Path:
        """The tool definitions of one simulator."""
        return self.data / _DEFINITIONS_FOLDER / f"{module}.json"


def fetch_bfcl_multi_turn(cache_dir: Path | None = None, progress: Progress | None = None) -> Path:
    """Download the questions and the simulators, unless they are there already.

    They come out of the public package ``bfcl_eval``, whose checksum is compared before anything
    is taken out of it. The package is not installed.

    Args:
        cache_dir: Where to keep them; None is agentkit's folder in the user's cache.
        progress: Told how many bytes have arrived.

    Returns:
        The folder to give to ``load_bfcl_multi_turn``.

    Raises:
        FetchError: The download failed, or what arrived is not release ``RELEASE``.
    """
    folder = (cache_dir or cache_directory()) / f"bfcl-multi-turn-{RELEASE}"
    fetch_package_files(
        f"bfcl_eval=={RELEASE}",
        sha256=WHEEL_SHA256,
        files=list(_package_files()),
        destination=folder,
        progress=progress,
    )
    return folder


def release_of(files: MultiTurnFiles) -> str:
    """``RELEASE`` when every file is what that release holds, else an empty text.

    An installed package or a folder of one's own may hold anything, and numbers are only
    comparable on the same questions and simulators.
    """
    digest = hashlib.sha256()
    for path in _all_files(files):
        digest.update(path.read_bytes() if path.is_file() else b"absent")
    return RELEASE if digest.hexdigest() == FILES_SHA256 else ""


def installed_bfcl() -> Path | None:
    """The folder of an installed ``bfcl_eval``, found without importing it; None without one."""
    from importlib.util import find_spec

    spec = find_spec("bfcl_eval")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) if places else None


def find_files(folder: Path) -> MultiTurnFiles:
    """The files below a folder, however it is laid out.

    Args:
        folder: What ``fetch_bfcl_multi_turn`` returned, the folder of the package ``bfcl_eval``,
            or the folder that the package lies in.

    Raises:
        DatasetError: None of these.
    """
    package = Path(_SOURCE).relative_to("bfcl_eval")
    layouts = (
        (folder, folder / _SIMULATORS_FOLDER),
        (folder / "data", folder / package),
        (folder / _DATA, folder / _SOURCE),
    )
    for data, simulators in layouts:
        if simulators.is_dir() and (data / _DEFINITIONS_FOLDER).is_dir():
            return MultiTurnFiles(data=data, simulators=simulators)
    raise DatasetError(
        f"{folder} holds no multi-turn part of BFCL: expected the folders {_SIMULATORS_FOLDER} and "
        f"{_DEFINITIONS_FOLDER}, or the package bfcl_eval; give the folder that "
        "fetch_bfcl_multi_turn() or installed_bfcl() returns"
    )


def _all_files(files: MultiTurnFiles) -> Iterator[Path]:
    for category in CATEGORIES:
        yield files.questions(category)
        yield files.answers(category)
    for module in SIMULATORS.values():
        yield files.definitions(module)
    for module in (*SIMULATORS.values(), *_SHARED_MODULES):
        yield files.simulators / f"{module}.py"


def _package_files() -> Iterator[PackageFile]:
    for category in CATEGORIES:
        for name in (_question_file(category), _answer_file(category)):
            yield PackageFile(path=f"{_DATA}/{name}", saved_as=name)
    for module in SIMULATORS.values():
        name = f"{_DEFINITIONS_FOLDER}/{module}.json"
        yield PackageFile(path=f"{_DATA}/{name}", saved_as=name)
    for module in (*SIMULATORS.values(), *_SHARED_MODULES):
        yield PackageFile(
            path=f"{_SOURCE}/{module}.py", saved_as=f"{_SIMULATORS_FOLDER}/{module}.py"
        )


def _question_file(category: str) -> str:
    return f"BFCL_v4_{category}.json"


def _answer_file(category: str) -> str:
    return f"possible_answer/{_question_file(category)}"
