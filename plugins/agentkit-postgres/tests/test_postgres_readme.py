"""What the README shows is so: its code runs and prints what it says, and so does its SQL."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path

import psycopg
import pytest
from support.postgres_server import drop_schema, with_schema

from agentkit import open_store
from agentkit_postgres import PostgresStore

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
RUNNER = Path(__file__).parents[3] / "tests" / "docs" / "test_pages.py"
ADDRESS = re.compile(r"postgresql://ada:secret@db\.example[^\s\"]*")

ROLES = ("ada", "bot", "reader")


@pytest.fixture
def store_of_readme(own_server):
    """URL of the store that the README tells of, on a server with the users that it names."""
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        for role in ROLES:
            connection.execute(f"CREATE ROLE {role}".encode())
        yield with_schema(own_server.url, "agentkit")
        drop_schema(own_server.url, "agentkit")
        for role in ROLES:
            connection.execute(f"DROP ROLE {role}".encode())


def test_the_readme_runs(store_of_readme, tmp_path, monkeypatch):
    """Who types the blocks from top to bottom sees what it shows, at an address of their own."""
    spec = importlib.util.spec_from_file_location("pages_of_plugins", RUNNER)
    assert spec is not None
    assert spec.loader is not None
    pages = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "pages_of_plugins", pages)
    spec.loader.exec_module(pages)
    page = tmp_path / "README.md"
    page.write_text(ADDRESS.sub(store_of_readme, README), encoding="utf-8")
    pages.run_page(page, tmp_path, weights=False)


def test_the_sql_of_the_readme_runs(store_of_readme):
    """Every statement is one that the server takes."""
    open_store(store_of_readme).close()
    blocks = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2
    with psycopg.connect(store_of_readme.partition("?")[0], autocommit=True) as connection:
        for block in blocks:
            connection.execute(block.encode())


def test_every_method_is_listed():
    """The list at the end names each public method of the store."""
    methods = [name for name in vars(PostgresStore) if not name.startswith("_")]
    assert [name for name in methods if f"`{name}`" not in README] == []
