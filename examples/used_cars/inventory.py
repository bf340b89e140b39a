"""A small inventory of used cars in SQLite, as a dealer's application would have it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

_SCHEMA = """
create table if not exists cars (
    stock_number text primary key, make text not null, model text not null, body text not null,
    year integer not null, kilometres integer not null, price_eur integer not null
)
"""

_CARS = [
    ("C-101", "Toyota", "Corolla Touring", "estate", 2021, 41_000, 19_900),
    ("C-102", "Skoda", "Octavia Combi", "estate", 2020, 62_000, 17_500),
    ("C-103", "Volkswagen", "Golf", "hatchback", 2019, 78_000, 14_900),
    ("C-104", "Volvo", "V60", "estate", 2019, 88_000, 21_400),
    ("C-105", "Mazda", "CX-5", "suv", 2022, 30_500, 27_900),
    ("C-106", "Dacia", "Sandero", "hatchback", 2021, 35_000, 9_800),
    ("C-107", "Hyundai", "Kona Electric", "suv", 2021, 28_000, 22_300),
    ("C-108", "Ford", "Focus Turnier", "estate", 2018, 95_000, 11_900),
    ("C-109", "Volkswagen", "Passat 330", "estate", 2020, 57_000, 20_900),
    ("C-110", "Volkswagen", "Passat 380", "estate", 2022, 24_000, 27_900),
]


@dataclass(frozen=True, kw_only=True)
class Car:
    """One car on the yard. Distances are in kilometres, prices in euro."""

    stock_number: str
    make: str
    model: str
    body: str
    year: int
    kilometres: int
    price_eur: int


class Inventory:
    """The cars on the yard.

    Args:
        path: The database file; it is created with a few cars when it is empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._connection() as connection:
            connection.execute(_SCHEMA)
            (count,) = connection.execute("select count(*) from cars").fetchone()
            if not count:
                connection.executemany("insert into cars values (?, ?, ?, ?, ?, ?, ?)", _CARS)

    def search(
        self, *, query: str = "", body: str | None, max_price_eur: int | None, limit: int = 5
    ) -> list[Car]:
        """Cars that fit, cheapest first; ``query`` is a part of make and model."""
        with self._connection() as connection:
            rows = connection.execute(
                "select * from cars where instr(lower(make || ' ' || model), lower(:query)) "
                "and (:body is null or body = :body) "
                "and (:price is null or price_eur <= :price) order by price_eur limit :limit",
                {"query": query, "body": body, "price": max_price_eur, "limit": limit},
            )
            return [Car(**row) for row in rows]

    def get(self, stock_number: str) -> Car | None:
        """One car, or None."""
        with self._connection() as connection:
            query = "select * from cars where stock_number = ?"
            row = connection.execute(query, (stock_number,)).fetchone()
            return None if row is None else Car(**row)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        # One connection per use: tools run in threads, and sqlite3 connections stay in theirs.
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.row_factory = sqlite3.Row
            yield connection
