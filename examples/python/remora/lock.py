"""A held lock: its renewals, and how its holder learns that it is lost.

K1. The holder counts on the lock until `validMs` after it *sent* the last renewal that succeeded. `validMs` is the TTL
    less the drift of clocks, so this moment comes before the cluster can give the lock to anybody else.
K2. `lost` compares the clock whenever it is asked. A process that was paused sees that the lock is lost in its first
    instruction, before any thread has run.
K3. A lost lock stays lost, also if a late answer says that it was renewed.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from .api import Grant, Release, Renew, Session
from .gateways import Gateways, LockLost, RemoraError, Unavailable, UnknownOutcome, now

RENEWALS_PER_TTL = 3
RELEASE_SECONDS = 5.0


class Lost(threading.Event):
    """Set as soon as the lock is not certainly held: lost, taken away or released. `reason` says which."""

    def __init__(self) -> None:
        super().__init__()
        self.reason = ""
        self._until = 0.0
        self._guard = threading.Lock()

    def is_set(self) -> bool:
        with self._guard:
            if not super().is_set() and now() >= self._until:
                self._end("it could not be renewed in time")
            return super().is_set()

    def wait(self, timeout: float | None = None) -> bool:
        end = float("inf") if timeout is None else now() + timeout
        while not self.is_set() and now() < end:
            super().wait(max(0.0, min(end, self._until) - now()))
        return self.is_set()

    def remaining(self) -> float:
        """For how many seconds the holder can still count on the lock without another renewal."""
        return 0.0 if self.is_set() else max(0.0, self._until - now())

    def extend(self, until: float) -> None:
        with self._guard:
            if not super().is_set() and (self._until == 0.0 or now() < self._until):  # K3
                self._until = max(self._until, until)

    def end(self, reason: str) -> None:
        with self._guard:
            self._end(reason)

    def _end(self, reason: str) -> None:
        if not super().is_set():
            self.reason = reason
            self.set()


class Lock:
    """A held lock, which a thread renews. `Client.lock` returns it."""

    def __init__(self, gateways: Gateways, path: str, grant: Grant) -> None:
        self._gateways = gateways
        self._path = path
        self._grant = grant
        self.lost = Lost()
        # The answer may have waited in this machine for long, so the time of its arrival says nothing (K1).
        self._renew(grant["validMs"] / 1000)
        if self.lost.is_set():
            raise LockLost("LOCK_NOT_HELD", f"the lock was granted and lost again: {self.lost.reason}")
        threading.Thread(target=self._keep, name=f"remora renews {path}", daemon=True).start()

    @property
    def version(self) -> int:
        """The fencing version: send it with every write, and let the resource refuse lower ones."""
        return self._grant["version"]

    @property
    def valid_until_ms(self) -> int:
        """Until when the holder can count on the lock, as wall time in ms since 1970. For display."""
        return int((time.time() + self.lost._until - now()) * 1000)

    def raise_if_lost(self) -> None:
        if self.lost.is_set():
            raise LockLost("LOCK_NOT_HELD", self.lost.reason)

    def release(self) -> None:
        """Releases the lock. A lock that is lost already is no error.

        UnknownOutcome or Unavailable: no gateway confirmed it. The lock then ends with its TTL, at the latest.
        """
        self.lost.end("it was released")
        release(self._gateways, self._path, self._grant["token"])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self.release()
        except (Unavailable, UnknownOutcome):
            pass  # the work is done, and nothing renews the lock any more

    def _keep(self) -> None:
        valid = self._grant["validMs"] / 1000
        while not self.lost.wait(valid / RENEWALS_PER_TTL):
            self._renew(self.lost.remaining())

    def _renew(self, seconds: float) -> None:
        """Renews the lock, or tries to for so long. Nothing but `lost` tells how it went."""
        sent = now()
        grant = self._grant
        body: Renew = {"session": grant["session"], "token": grant["token"], "version": grant["version"]}
        patience = max(0.1, seconds / (RENEWALS_PER_TTL * len(self._gateways)))
        try:
            session: Session = self._gateways.call(
                "POST", f"{self._path}/renew", dict(body), seconds=seconds, patience=patience
            )
        except LockLost as error:
            self.lost.end(str(error))
        except RemoraError:
            pass  # the clock decides (K1)
        else:
            self.lost.extend(sent + session["validMs"] / 1000)


def release(gateways: Gateways, path: str, token: str, seconds: float = RELEASE_SECONDS) -> None:
    """Releases what was acquired with this token, or gives up its place in the queue."""
    body: Release = {"token": token}
    gateways.call("POST", f"{path}/release", dict(body), seconds=seconds)
