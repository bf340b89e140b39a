"""What questions are about: names, places, things. Made up, and of no corpus."""

from __future__ import annotations

PEOPLE = (
    *("Ann Lee", "Ben Stone", "Clara Hill", "David Marsh", "Eva Wood", "Frank Frost"),
    *("Greta Lake", "Hugo Field", "Ida North", "Jonas Berg", "Karin Dahl", "Leo Engel"),
    *("Maria Falk", "Nils Graf", "Olga Holm", "Paul Jansen", "Rosa Kern", "Simon Lund"),
    *("Tina Moll", "Viktor Nagel", "Wanda Olsen", "Xaver Peck", "Yara Quist", "Zoe Rask"),
    *("Amir Sand", "Bruno Thal", "Carla Urban", "Dora Voss", "Emil Wolf", "Fatima Ziegler"),
)
CITIES = (
    *("Lisbon", "Porto", "Madrid", "Lyon", "Paris", "Geneva", "Milan", "Rome", "Vienna", "Prague"),
    *("Berlin", "Hamburg", "Bremen", "Oslo", "Bergen", "Malmo", "Turku", "Riga", "Tallinn"),
    *("Warsaw", "Krakow", "Athens", "Sofia", "Dublin", "Cork", "Leeds", "York", "Bath", "Ghent"),
)
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
