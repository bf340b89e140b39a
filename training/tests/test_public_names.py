"""Public names are what they say, whatever was imported before them."""

import pkgutil
import subprocess
import sys

import agentkit_training


def test_no_public_name_is_that_of_a_folder():
    """Importing a folder binds its name in the package, where it would hide the public one."""
    folders = {one.name for one in pkgutil.iter_modules(agentkit_training.__path__)}
    assert folders.isdisjoint(agentkit_training.__all__)


def test_functions_are_functions_after_everything_was_imported():
    """In the order in which a formatter puts names, settings come before what takes them."""
    program = (
        "from agentkit_training import CoevolutionSettings, SftSettings, coevolve, sft\n"
        "print(CoevolutionSettings().steps, SftSettings().epochs, callable(coevolve), callable(sft))"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert told.stdout.split()[-2:] == ["True", "True"]
