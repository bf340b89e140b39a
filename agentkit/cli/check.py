"""``agentkit check``: whatever is wrong with a library and its store, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import click
from click.core import ParameterSource

from agentkit.cli.check_composites import TriedCalls, repin, try_worked_calls
from agentkit.cli.check_security import Finding, security_findings
from agentkit.cli.edits import edit_words, fault_words
from agentkit.cli.loading import load_tools
from agentkit.cli.options import json_option, store_option
from agentkit.cli.output import one_line, plural, print_json, print_text, say
from agentkit.cli.progress import slow_progress
from agentkit.cli.project import current_project
from agentkit.cli.stores import is_there, opened_untouched
from agentkit.errors import AgentKitError
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.hand_edits import EditedStore
from agentkit.evolution.insert_outcomes import InsertPolicy
from agentkit.library import Library, Store
from agentkit.library.checking import StoreCheck, check_store
from agentkit.library.memory import MemoryStore
from agentkit.library.pins import library_faults, pin_faults
from agentkit.library.signing import KEY_FILE_VARIABLE, KEY_VARIABLE, key_texts, read_verifier

_SHOWN = 20
_INDENT = " " * 6


@dataclass(kw_only=True, slots=True)
class _Checked:
    """What a check found, as it comes together."""

    library: Library = field(default_factory=Library)
    store: StoreCheck | None = None
    composites: int = 0
    is_damaged: bool = False
    repinned: tuple[str, ...] = ()
    tried: TriedCalls = field(default_factory=TriedCalls)
    faults: list[Finding] = field(default_factory=list)
    waiting: list[Finding] = field(default_factory=list)
    notes: tuple[str, ...] = ()


@click.command(
    short_help="Report what is wrong, and what to do about it.",
    epilog=f"""\b
Examples:
  agentkit check
  agentkit check net_total --tools calculator.py
  agentkit check --repin
  agentkit check --store sqlite:///backup.db --json

\b
A key for the signatures of events comes from the variable {KEY_VARIABLE},
or from the file that {KEY_FILE_VARIABLE} names.""",
)
@click.argument("names", nargs=-1, metavar="[TOOL]...")
@click.option(
    "--tools",
    "targets",
    multiple=True,
    metavar="MODULE:NAME|FILE.py[:NAME]",
    help="Python code of tools: the worked calls of composites are then tried, with every "
    "condition checked; may be given several times.",
)
@click.option(
    "--run-undeclared",
    is_flag=True,
    help="Also run tools that declare no effects while trying composites: your word that they "
    "touch nothing. Otherwise they answer from their worked calls.",
)
@click.option(
    "--repin",
    "with_repin",
    is_flag=True,
    help="First pin composites, and those above them, to the tools as they are now. It says that "
    "you looked at what changed; nothing is validated by it.",
)
@store_option
@json_option
def check(
    names: Sequence[str],
    targets: Sequence[str],
    *,
    run_undeclared: bool,
    with_repin: bool,
    store_url: str,
    as_json: bool,
) -> None:
    """Report what is wrong with the library and its store; the exit status is 1 when something is.

    Everything is read: the store itself, every definition with its digest, the chain of events and
    its signatures, every episode; then composites: circles of calls, children that are missing or
    have changed, programs, effects and conditions; then files that people edited; then what a
    stranger could use: files that everybody can read or change, keys in the project's files, MCP
    servers that nobody approved, tools that act unasked, servers without keys, events without a
    signature among signed ones. With TOOL only these composites are looked at. Notes leave the exit
    status at 0. Where a project has no store yet, its files are looked at.

    Nothing is written without --repin.
    """
    policy = InsertPolicy(run_undeclared=run_undeclared)
    found = _Checked(repinned=repin(store_url, names) if with_repin else ())
    with _opened(store_url, found, has_names=bool(names)) as store:
        if not names:
            _look_at_store(store, found)
        if found.is_damaged:
            _load_damaged(store, found)
        else:
            found.library = store.load()
            events = store.events()
            if not names:
                for one in security_findings(current_project(), store_url, found.library, events):
                    (found.waiting if one.severity == "note" else found.faults).append(one)
        _look_at_composites(found, names, targets, policy)
        if not names and isinstance(store, EditedStore) and not found.is_damaged:
            _look_at_edits(store, found)
    if as_json:
        print_json(_as_json(found))
    else:
        _print(found)
    if found.faults:
        raise click.exceptions.Exit(1)


@contextmanager
def _opened(url: str, found: _Checked, *, has_names: bool) -> Iterator[Store]:
    """The store; an empty one in a project that has made none yet, whose files are looked at.

    Raises:
        StoreLookupError: There is no such store, and it was asked for by name, or for its tools.
    """
    source = click.get_current_context().get_parameter_source("store_url")
    is_asked = has_names or source in {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
    if is_asked or not current_project().keys or is_there(url):
        with opened_untouched(url) as store:
            yield store
        return
    yield MemoryStore()
    told = f"there is no store at {url} yet, so only the project's files were looked at"
    found.notes += (f"{told}; 'agentkit tools add' makes it",)


def _look_at_store(store: Store, found: _Checked) -> None:
    texts = key_texts()
    verifier = read_verifier(texts) if texts else None
    with slow_progress() as begin:
        found.store = check_store(store, verifier=verifier, progress=begin)
    found.notes = found.store.notes
    pins = _of_pins(store, found.store)
    for one in found.store.faults:
        if one.message not in pins:  # those are told with the composites
            found.is_damaged = True
            found.faults.append(Finding(place=one.place, code="damage", message=one.message))


def _of_pins(store: Store, checked: StoreCheck) -> set[str]:
    if not any(one.place.startswith("tool ") for one in checked.faults):
        return set()
    return {f"{one.message}; {one.advice}" for one in pin_faults(store.load())}


def _load_damaged(store: Store, found: _Checked) -> None:
    """The library of a damaged store, as far as it can be read; why not is told already."""
    try:
        found.library = store.load()
    except AgentKitError as error:
        say(f"composites are not looked at: {one_line(shown(str(error), 300))}")


def _look_at_composites(
    found: _Checked, names: Sequence[str], targets: Sequence[str], policy: InsertPolicy
) -> None:
    library = found.library
    faults = library_faults(library, names or None)
    if targets:
        found.tried = try_worked_calls(library, names, load_tools(targets), policy)
    found.composites = sum(library[name].definition.is_composite for name in names or library.tools)
    found.faults += [
        Finding(place=one.tool, code=one.code, message=one.message, advice=one.advice)
        for one in (*faults, *found.tried.faults)
    ]


def _look_at_edits(store: EditedStore, found: _Checked) -> None:
    edits = store.edits()
    edited = tuple(f"{edit.file}: " for edit in edits)
    found.notes = tuple(note for note in found.notes if not note.startswith(edited))
    for edit in edits:
        if edit.faults:
            advice = f"correct the file, or 'agentkit tools add --discard {edit.name}'"
            finding = Finding(
                place=edit.name, code="edit", message=fault_words(edit), advice=advice
            )
            found.faults.append(finding)
            continue
        message = f"{edit.file.name}: {edit_words(edit)} by hand"
        advice = "'agentkit tools add --edited' suggests it"
        found.waiting.append(
            Finding(place=edit.name, code="edit", message=message, advice=advice, severity="note")
        )


def _print(found: _Checked) -> None:
    if found.repinned:
        say(f"pinned anew: {', '.join(found.repinned)}; library version {found.library.version}")
    if not (found.faults or found.waiting or found.notes):
        click.echo(f"nothing is wrong: {_amounts(found)}")
        return
    click.echo(f"read  {_amounts(found)}")
    for note in found.notes[:_SHOWN]:
        print_text(f"note: {shown(note)}", indent=_INDENT)
    if len(found.notes) > _SHOWN:
        click.echo(f"{_INDENT}... and {len(found.notes) - _SHOWN:,} more notes (--json names all)")
    _print_findings(found.waiting, "what waits")
    _print_findings(found.faults, "what is wrong")
    click.echo()
    if found.faults:
        click.secho(f"{plural(len(found.faults), 'fault')}", fg="red", bold=True)
    else:
        click.echo("nothing is wrong")
    if found.is_damaged:
        say("a copy restores what is damaged: 'agentkit store copy BACKUP NEW', or of an artifact")
        say("'agentkit import FILE --restore --store NEW'")


def _amounts(found: _Checked) -> str:
    parts = []
    if found.store is not None:
        newest = f" ({plural(found.store.tools, 'tool')} in the newest)"
        parts += [
            plural(found.store.versions, "version") + (newest if found.store.versions else ""),
            plural(found.store.events, "event"),
            plural(found.store.episodes, "episode"),
        ]
    parts.append(plural(found.composites, "composite"))
    if found.tried.held or found.tried.untried or found.tried.faults:
        parts.append(f"{plural(found.tried.held, 'worked call')} held")
    if found.tried.untried:
        parts.append(f"{found.tried.untried:,} not tried (an answer of a tool is missing)")
    return ", ".join(parts)


def _print_findings(findings: Sequence[Finding], title: str) -> None:
    """Each finding in sentences: a table would break the commands over lines."""
    if not findings:
        return
    click.echo(f"\n{title}")
    for one in findings[:_SHOWN]:
        print_text(f"{shown(one.place)}: {shown(one.message, 600)}", indent="  ")
        if one.advice:
            print_text(one.advice, indent=_INDENT)
    if len(findings) > _SHOWN:
        click.echo(f"  ... and {len(findings) - _SHOWN:,} more (--json names all)")


def _as_json(found: _Checked) -> dict[str, Any]:
    store = None
    if found.store is not None:
        store = found.store.to_json()
        store = {key: store[key] for key in ("versions", "tools", "events", "episodes")}
    return {
        "is_sound": not found.faults,
        "library_version": found.library.version,
        "faults": [asdict(one) for one in found.faults],
        "waiting": [asdict(one) for one in found.waiting],
        "notes": list(found.notes),
        "store": store,
        "composites": found.composites,
        "worked_calls": {"held": found.tried.held, "not_tried": found.tried.untried},
        "repinned": list(found.repinned),
    }
