"""A filing cabinet, in the manner of upstream's simulators. Written for these tests."""

from copy import deepcopy

from bfcl_eval.eval_checker.multi_turn_eval.func_source_code.spare_papers import SPARE_PAPERS

DEFAULT_STATE = {"owner": "nobody", "stamps": set(), "drawers": {"desk": {}}}


class Directory:
    """A drawer. Two are equal when their names and papers are."""

    def __init__(self, name, parent):
        self.name = name
        self.parent = parent
        self.papers = {}

    def __eq__(self, other):
        return isinstance(other, Directory) and vars(self)["papers"] == vars(other)["papers"]

    def __hash__(self):
        return hash(self.name)


class FilingCabinet:
    """Drawers that hold papers; one of them is open."""

    def __init__(self):
        self._api_description = "A filing cabinet."

    def _load_scenario(self, scenario, *, long_context=False):
        start = deepcopy(DEFAULT_STATE)
        self.long_context = long_context
        self.owner = scenario.get("owner", start["owner"])
        self.stamps = start["stamps"]
        self.by_number = {int(key): text for key, text in scenario.get("by_number", {}).items()}
        self.drawers = {}
        for name, papers in scenario.get("drawers", start["drawers"]).items():
            self.drawers[name] = Directory(name, self)
            self.drawers[name].papers.update(papers)
        self._open = next(iter(self.drawers.values()))
        if long_context:
            self._open.papers["spares"] = SPARE_PAPERS  # shared by all cabinets, as upstream does

    def open_drawer(self, drawer: str):
        """Open a drawer."""
        if drawer not in self.drawers:
            return {"error": f"there is no drawer {drawer}"}
        self._open = self.drawers[drawer]
        return {"open": drawer}

    def list_papers(self):
        """The titles in the open drawer."""
        return {"titles": list(self._open.papers)}

    def file_paper(self, title: str, text: str = ""):
        """Put a paper into the open drawer."""
        self._open.papers[title] = text

    def read_paper(self, title: str):
        """The text of a paper."""
        return self._open.papers[title]

    def move_paper(self, title: str, drawer: str):
        """Move a paper from the open drawer to another one."""
        if title not in self._open.papers or drawer not in self.drawers:
            return {"error": f"{title} can not be moved to {drawer}"}
        self.drawers[drawer].papers[title] = self._open.papers.pop(title)
        return {"moved": title}

    def stamp(self, number: int):
        """Put a numbered stamp on the open drawer."""
        self.stamps.add(number)
        return sorted(self.stamps)

    def take_spare(self, count: int):
        """Take some of the spare papers."""
        self._open.papers["spares"]["sheets"] -= count
        return {"left": self._open.papers["spares"]["sheets"]}

    def count_spares(self):
        """The spare papers: the table itself, as some of upstream's tools return theirs."""
        return self._open.papers["spares"]

    def shred(self, title: str):
        """Destroy a paper of the open drawer."""
        self._open.papers.pop(title)
        return {"shredded": title}
