"""What a simulated tool returned, as the text that upstream shows the model and compares."""

from __future__ import annotations

import json


def response_text(value: object) -> str:
    """The text of a returned value.

    The rules are those of ``execute_multi_turn_func_call`` in
    ``bfcl_eval/eval_checker/multi_turn_eval/multi_turn_utils.py``: text as it is; a dict as JSON,
    or as Python writes it where JSON can not hold it; anything else as Python writes it, so
    ``None`` and lists too.

    Raises:
        ValueError: The value is an integer of more digits than Python writes.
    """
    if isinstance(value, str):
        return value
    if type(value) is dict:
        try:
            return json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            return str(value)
    return str(value)
