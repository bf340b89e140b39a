"""Tables of what ``composites.py`` has measured: shares, paired differences and intervals."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from intervals import interval

Counts = Mapping[str, float]

CONTROLS = {
    "primitives, offered composites": ("primitives",),
    "rewritten": ("primitives",),
    "mixed": ("primitives",),
    "unrewarded": ("none", "mixed"),
    "gated": ("none", "mixed", "unrewarded"),
    "ungated": ("none", "mixed", "unrewarded", "gated"),
}
"""What each column is compared with."""


def line(tasks: Sequence[Counts]) -> str:
    """Success, calls per solved task, share of composites, and shortened rollouts that failed."""
    solved = [one for one in tasks if one["passed"]]
    calls = sum(one["calls"] for one in tasks)
    composites = sum(one["composite_calls"] for one in tasks)
    shortened = [one for one in tasks if one["saved"]]
    lost = sum(not one["passed"] for one in shortened)
    per_solved = sum(one["calls"] for one in solved) / max(1, len(solved))
    return (
        f"passed {len(solved):3d}/{len(tasks)} ({len(solved) / max(1, len(tasks)):5.1%})  "
        f"calls per solved {per_solved:.2f}  composite calls {composites / max(1, calls):5.1%}  "
        f"shortened {len(shortened)}, of these failed {lost}"
    )


def summary(output: Path) -> None:
    """Print what the parts in a folder come to."""
    records = [json.loads(path.read_text()) for path in sorted(output.glob("*-*.json"))]
    for record in records:
        if record["part"] == "cold":
            print(f"seed {record['seed']}: {_library(record)}")
    _held_out(records)
    attempts = [one for record in records for one in _attempts(record)]
    if attempts:
        print(f"attempts at temperature 1, before rewards: {line(attempts)}")
        print("\n".join(payments(attempts)))
    print("rollouts of training")
    for name in dict.fromkeys(one["part"] for one in records):
        watched = [rollout for one in records if one["part"] == name for rollout in _watched(one)]
        if watched:
            print(f"{name:32} {line(watched)}")


def _held_out(records: Sequence[Mapping[str, Any]]) -> None:
    found: dict[str, dict[tuple[int, str], Counts]] = {}
    for record in records:
        for name, tasks in record["found"].items():
            keyed = {(record["seed"], task): one for task, one in tasks.items()}
            found.setdefault(name, {}).update(keyed)
    print("held-out questions, policy's own rollouts at temperature 0")
    for name, tasks in found.items():
        print(f"{name:32} {line(list(tasks.values()))}")
        for control in CONTROLS.get(name, ()):
            if control in found:
                print(f"{'':32} {_against(tasks, found[control], control)}")


def _attempts(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The attempts of a part, each with its group."""
    return [{**one, "group": (record["seed"], one["task"])} for one in record.get("attempts", ())]


def payments(attempts: Sequence[Mapping[str, Any]], *, weight: float = 0.2) -> Iterator[str]:
    """What each reward would pay for the same attempts, and whom it would reinforce.

    An attempt is reinforced when its reward is above the mean of its group.
    """
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for one in attempts:
        groups.setdefault(one["group"], []).append(one)
    paid = {"result alone": (0.0, 0.0), "gated": (weight, 0.0), "ungated": (weight, weight)}
    for name, credit in paid.items():
        failed = shortened = spread = 0
        for group in groups.values():
            worth = [_worth(one, *credit) for one in group]
            mean = sum(worth) / len(worth)
            spread += max(worth) > min(worth)
            raised = [one for one, value in zip(group, worth, strict=True) if value > mean + 1e-9]
            failed += sum(not one["passed"] for one in raised)
            shortened += sum(bool(one["passed"] and one["saved"]) for one in raised)
        yield (
            f"{name:14} groups with a spread {spread}/{len(groups)}; reinforced: "
            f"failed attempts {failed}, shortened ones that passed {shortened}"
        )


def _worth(one: Mapping[str, Any], passed: float, failed: float) -> float:
    """The result, and for each call saved what is paid where it passed and where it failed."""
    return float(one["passed"]) + one["saved"] * (passed if one["passed"] else failed)


def _watched(record: Mapping[str, Any]) -> Sequence[Counts]:
    found: Sequence[Counts] = record.get("rollouts", ())
    return found


def _library(record: Mapping[str, Any]) -> str:
    composites = [one for one in record["library"] if one["flat"] > 1]
    depths = [one["depth"] for one in composites]
    return (
        f"{len(composites)} composites, "
        f"depth {max(depths, default=0)} at most, {sum(one > 1 for one in depths)} deeper than 1"
    )


def _against(
    own: Mapping[tuple[int, str], Counts], control: Mapping[tuple[int, str], Counts], name: str
) -> str:
    """Paired differences: of success over all questions, of calls over those that both solve."""
    keys = [key for key in own if key in control]
    solved = [key for key in keys if own[key]["passed"] and control[key]["passed"]]
    success = _change(own, control, keys, "passed")
    calls = _change(own, control, solved, "calls")
    return f"against {name}: success {success}; calls, of {len(solved)} solved by both: {calls}"


def _change(
    own: Mapping[tuple[int, str], Counts],
    control: Mapping[tuple[int, str], Counts],
    keys: Sequence[tuple[int, str]],
    figure: str,
) -> str:
    """How much a figure changed from the control on."""
    if not keys:
        return "none"
    changes: dict[int, list[float]] = {}
    for key in keys:
        changes.setdefault(key[0], []).append(own[key][figure] - control[key][figure])
    found = interval(changes)
    return f"{found.mean:+.3f} [{found.low:+.3f}, {found.high:+.3f}]"
