"""``agentkit check``: whatever is wrong with a library and its store, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict

import click
from click.core import ParameterSource

from agentkit.cli.add import edit_words, fault_words
from agentkit.cli.check_composites import TriedCalls, try_worked_calls
from agentkit.cli.check_security import Finding, security_findings
from agentkit.cli.loading import load_tools
from agentkit.cli.options import command, common_options, flag, tools_option
from agentkit.cli.output import one_line, plural, print_json, print_text, say, slow_step
from agentkit.cli.project import current_project
from agentkit.cli.stores import (
    author,
    commit,
    is_there,
    new_proposal_id,
    opened_to_read,
)
from agentkit.errors import AgentKitError
from agentkit.evaluation.results.texts import shown
from agentkit.evolution.dry_run import InsertPolicy
from agentkit.evolution.hand_edits import EditedStore
from agentkit.library import Library, LibraryChange, Store
from agentkit.library.checking import StoreCheck, check_store
from agentkit.library.dag import in_order
from agentkit.library.memory import MemoryStore
from agentkit.library.opening import open_to_read
from agentkit.library.pins import library_faults, pin_faults, repinned, with_current_pins
from agentkit.library.signing import key_texts, read_verifier

_SHOWN = 20
_INDENT = " " * 6
_AMOUNTS = ("versions", "tools", "events", "episodes")
_REPINNED = {"changed_child", "unpinned_call", "uncalled_pin", "effects"}
"""Faults that moving pins and joining effects anew fixes."""


@command()
@click.argument("names", nargs=-1, metavar="[TOOL]...")
@tools_option
@flag(
    "--repin",
    "with_repin",
    help="First pin composites, and those above them, to the tools as they are now. It says that "
    "you looked at what changed; nothing is validated by it.",
)
@common_options
def check(
    names: Sequence[str],
    targets: Sequence[str],
    *,
    with_repin: bool,
    store_url: str,
    as_json: bool,
) -> None:
    """Report what is wrong with the library and its store; the exit status is 1 when something is.

    Everything is read: the store itself, every definition with its digest, the chain of events and
    its signatures, every episode; then composites: circles of calls, children that are missing or
    have changed, programs, effects and conditions; then files that people edited; then what a
    stranger could use: files that everybody can read or change, keys in the project's files, MCP
    servers that nobody approved, events without a signature among signed ones. With TOOL only these
    composites are looked at. Notes leave the exit status at 0. Where a project has no store yet,
    its files are looked at.

    Nothing is written without --repin. With --tools, or in a project that names tools,
    the worked calls of composites are tried.

    A key for the signatures of events
    comes from the variable AGENTKIT_AUDIT_KEY, or from the file that AGENTKIT_AUDIT_KEY_FILE names.

    Examples:
      agentkit check
      agentkit check net_total --tools calculator.py
      agentkit check --repin
      agentkit check --store sqlite:///backup.db --json
    """
    moved = _repin(store_url, names) if with_repin else ()
    checked: StoreCheck | None = None
    found: list[Finding] = []
    with _opened(store_url, found, has_names=bool(names)) as store:
        if not names:
            checked = _checked(store)
            found += _of_store(store, checked)
        is_damaged = any(one.code == "damage" for one in found)
        library = _library(store, is_damaged=is_damaged)
        tried = TriedCalls()
        if targets:
            tried = try_worked_calls(library, names, load_tools(targets), InsertPolicy())
        found += [
            Finding(place=one.tool, code=one.code, message=one.message, advice=one.advice)
            for one in (*library_faults(library, names or None), *tried.faults)
        ]
        if not names and not is_damaged:
            found += security_findings(current_project(), store_url, library, store.events())
    composites = sum(library[name].definition.is_composite for name in names or library.tools)
    faults = [one for one in found if one.severity != "note"]
    notes = [one for one in found if one.severity == "note"]
    if as_json:
        amounts = {} if checked is None else checked.to_json()
        record = {
            "is_sound": not faults,
            "library_version": library.version,
            "faults": [asdict(one) for one in faults],
            "notes": [asdict(one) for one in notes],
            "store": {name: amounts.get(name) for name in _AMOUNTS} if amounts else None,
            "composites": composites,
            "worked_calls": {"held": tried.held, "not_tried": tried.untried},
            "repinned": list(moved),
        }
        print_json(record)
    else:
        if moved:
            say(f"pinned anew: {', '.join(moved)}; library version {library.version}")
        _print(faults, notes, _amounts(checked, composites, tried))
        if is_damaged:
            say("a copy restores what is damaged: 'agentkit store copy BACKUP NEW', or of an")
            say("artifact 'agentkit import FILE --restore --store NEW'")
    if faults:
        raise click.exceptions.Exit(1)


def _repin(store_url: str, names: Sequence[str]) -> tuple[str, ...]:
    """Commit composites pinned to what the library has now, and say which they were."""
    moved: tuple[str, ...] = ()
    proposal_id = new_proposal_id("repin")

    def build(library: Library) -> LibraryChange | None:
        nonlocal moved
        faults = library_faults(library, names or None)
        stale = {fault.tool for fault in faults if fault.code in _REPINNED}
        order = in_order(sorted(stale), library.dag.children)
        fresh = [with_current_pins(library, library[name].definition) for name in order]
        upserts = [one for one in repinned(library, fresh) if one != library[one.name].definition]
        moved = tuple(definition.name for definition in upserts)
        reason = f"pin {', '.join(moved)} to the tools as they are"
        change = LibraryChange(
            proposal_id=proposal_id, upserts=tuple(upserts), author=author(), reason=reason
        )
        return change if upserts else None

    with opened_to_read(store_url) as store:
        commit(store, build, operation="repin")
    return moved


@contextmanager
def _opened(url: str, found: list[Finding], *, has_names: bool) -> Iterator[Store]:
    """The store; an empty one in a project that has made none yet, whose files are looked at.

    Raises:
        StoreLookupError: There is no such store, and it was asked for by name, or for its tools.
    """
    source = click.get_current_context().get_parameter_source("store_url")
    is_asked = has_names or source in {ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT}
    if is_asked or not current_project().keys or is_there(url):
        with closing(open_to_read(url)) as store:
            yield store
        return
    message = f"there is no store at {url} yet, so only the project's files were looked at"
    found.append(_note(url, message, "'agentkit tools add' makes it"))
    yield MemoryStore()


def _checked(store: Store) -> StoreCheck:
    texts = key_texts()
    verifier = read_verifier(texts) if texts else None
    return check_store(store, verifier=verifier, progress=slow_step)


def _of_store(store: Store, checked: StoreCheck) -> Iterator[Finding]:
    """What the store itself is damaged by, what people edited in its files, and its notes."""
    pins = set()
    if any(one.place.startswith("tool ") for one in checked.faults):
        pins = {f"{one.message}; {one.advice}" for one in pin_faults(store.load())}
    damage = [one for one in checked.faults if one.message not in pins]  # pins are told later
    for one in damage:
        yield Finding(place=one.place, code="damage", message=one.message)
    edits = store.edits() if isinstance(store, EditedStore) and not damage else ()
    for edit in edits:
        if edit.faults:
            advice = "correct the file, or let git bring it back"
            message = fault_words(edit)
            yield Finding(place=edit.name, code="edit", message=message, advice=advice)
        else:
            message = f"{edit.file.name}: {edit_words(edit)} by hand"
            yield _note(edit.name, message, "'agentkit tools add --edited' suggests it", "edit")
    edited = tuple(f"{edit.file}: " for edit in edits)
    yield from (_note("store", one) for one in checked.notes if not one.startswith(edited))


def _note(place: str, message: str, advice: str = "", code: str = "note") -> Finding:
    return Finding(place=place, code=code, message=message, advice=advice, severity="note")


def _library(store: Store, *, is_damaged: bool) -> Library:
    """The library, as far as it can be read."""
    try:
        return store.load()
    except AgentKitError as error:
        if not is_damaged:
            raise
        say(f"composites are not looked at: {one_line(shown(str(error), 300))}")
        return Library()


def _amounts(checked: StoreCheck | None, composites: int, tried: TriedCalls) -> str:
    parts = []
    if checked is not None:
        newest = f" ({plural(checked.tools, 'tool')} in the newest)"
        parts += [
            plural(checked.versions, "version") + (newest if checked.versions else ""),
            plural(checked.events, "event"),
            plural(checked.episodes, "episode"),
        ]
    parts.append(plural(composites, "composite"))
    if tried != TriedCalls():
        parts.append(f"{plural(tried.held, 'worked call')} held")
    if tried.untried:
        parts.append(f"{tried.untried:,} not tried (an answer of a tool is missing)")
    return ", ".join(parts)


def _print(faults: Sequence[Finding], notes: Sequence[Finding], amounts: str) -> None:
    if not faults and not notes:
        click.echo(f"nothing is wrong: {amounts}")
        return
    click.echo(f"read  {amounts}")
    _print_findings(notes, "worth knowing")
    _print_findings(faults, "what is wrong")
    click.echo()
    told = plural(len(faults), "fault") if faults else "nothing is wrong"
    click.secho(told, fg="red" if faults else None, bold=bool(faults))


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
