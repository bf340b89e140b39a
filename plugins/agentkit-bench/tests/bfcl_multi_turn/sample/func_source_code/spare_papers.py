"""What a cabinet with a long context holds beside."""

SPARE_PAPERS = {"sheets": 500}
