"""Labels that agentkit itself puts into ``Episode.metadata``, beside those of callers.

While a change of a tool is tried on real requests, these say which episode belongs to which side of
the experiment. So gates are functions of stored episodes, and can be worked out again at any time.
"""

from __future__ import annotations

from collections.abc import Mapping

EXPERIMENT = "experiment"
"""Id of the proposal that was being tried."""

ARM = "arm"
"""``candidate``: the run used the proposed definition; ``control``: the one that there was."""

CANDIDATE = "candidate_digest"
"""Digest of the proposed definition; a proposal moves to another one when its tool changes."""

LEFT_EXPERIMENT = "left_experiment"
"""Id of the proposal whose experiment the conversation was taken out of."""

LEFT_BECAUSE = "left_because"
"""Why it was: ``rolled_back``, ``pinned`` and so on."""

SHADOW_OF = "shadow_of"
"""Id of the episode that a shadow run repeats. Nothing was executed, and no user saw it."""

VIEW_OF = "view_of"
"""Id of an episode of which this record is another view: the part that a shadow run repeats, or a
copy with a verdict. Nothing happened a second time."""

TRACE_ID = "trace_id"
"""Id of the trace that the run is a part of, in hexadecimal digits, when it was traced."""

SPAN_ID = "span_id"
"""Id of the run's span in it."""

TRACE_LABELS = frozenset({TRACE_ID, SPAN_ID})
"""Where one run is found in a tracing system."""

ROUTE_LABELS = frozenset({EXPERIMENT, ARM, CANDIDATE, LEFT_EXPERIMENT, LEFT_BECAUSE})
"""What a router says about one run."""


def is_extra_record(metadata: Mapping[str, str]) -> bool:
    """Whether a record tells of something that no user saw, or that another record tells too.

    Such records belong to no conversation, and whoever learns from episodes leaves them out.

    Example:
        >>> is_extra_record({"shadow_of": "e1"}), is_extra_record({"arm": "control"})
        (True, False)
    """
    return SHADOW_OF in metadata or VIEW_OF in metadata
