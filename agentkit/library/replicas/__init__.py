"""Replicas: the newest library of a store at hand, however far or unwell the store is."""

from __future__ import annotations

from agentkit.library.replicas.replica import Replica, replica_of
from agentkit.library.replicas.status import ReplicaState, ReplicaStatus, WhenStale

__all__ = ["Replica", "ReplicaState", "ReplicaStatus", "WhenStale", "replica_of"]
