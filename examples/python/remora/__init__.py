"""A client of Remora for Python 3.11 and later. Copy this folder into your project; it needs nothing else."""

from .client import Change, Client, Pair
from .gateways import KeyChanged, LockBusy, LockLost, RemoraError, Unavailable, UnknownOutcome
from .lock import Lock, Lost

__all__ = [
    "Change",
    "Client",
    "KeyChanged",
    "Lock",
    "LockBusy",
    "LockLost",
    "Lost",
    "Pair",
    "RemoraError",
    "Unavailable",
    "UnknownOutcome",
]
