"""Calls to Remora's gateways over HTTP.

G1. A call goes to one gateway after another until one of them answers it, or its time is over.
G2. Only calls that may be repeated come here: they read, or carry an identity (a lock's token, a `requestId`), so that
    the cluster carries them out once however often they are sent.
G3. When the time is over, `Unavailable` means that nothing was changed. If an attempt may have reached the cluster and
    its answer was lost, the error is `UnknownOutcome`.
"""

from __future__ import annotations

import base64
import http.client
import ipaddress
import json
import random
import ssl
import time
from contextlib import contextmanager
from typing import Any, Callable, Iterable, Iterator
from urllib.parse import urlsplit

PAUSE_SECONDS = 0.1
PAUSE_SECONDS_MAX = 1.0
NOT_DONE = (429, 503)  # the call was not carried out
NOT_KNOWN = (500, 502, 504)  # it may have been
# Refusals that say nothing about an earlier attempt with the same identity.
UNRELATED = (400, 401, 403)

if hasattr(time, "CLOCK_BOOTTIME"):  # Linux: also counts the time in which the machine is suspended

    def now() -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

else:
    now = time.monotonic


class RemoraError(Exception):
    """A call was refused. Branch on `code`; docs/reference/errors.md lists all codes."""

    def __init__(self, code: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.details = details or {}


class Unavailable(RemoraError):
    """No gateway carried out the call in time. Nothing was changed."""


class UnknownOutcome(RemoraError):
    """The call may or may not have been carried out. Look before you repeat it."""


class LockBusy(RemoraError):
    """Others held the lock for the whole time to wait. The caller does not hold it."""


class LockLost(RemoraError):
    """The lock is not held any more."""


class KeyChanged(RemoraError):
    """The key is not as the condition says; `details["current"]` is the key as it is. Nothing was changed."""


BY_CODE: dict[str, type[RemoraError]] = {
    "LOCK_BUSY": LockBusy,
    "LOCK_TIMEOUT": LockBusy,
    "LOCK_NOT_HELD": LockLost,
    "SESSION_EXPIRED": LockLost,
    "KEY_CHANGED": KeyChanged,
}


class NotSent(Exception):
    """There was no connection, so the gateway has not seen the call."""


class Gateways:
    """The gateways of one cluster. Threads may share it."""

    def __init__(
        self,
        addresses: Iterable[str],
        *,
        user: str | None = None,
        password: str | None = None,
        token: str | None = None,
        ca_file: str | None = None,
        cert_file: str | None = None,
        key_file: str | None = None,
    ) -> None:
        self._tls = ssl.create_default_context(cafile=ca_file)
        if cert_file is not None:
            self._tls.load_cert_chain(cert_file, key_file)
        self._headers = {"content-type": "application/json", **_credentials(user, password, token)}
        self._gateways = [_Gateway(address, self._tls) for address in addresses]
        if not self._gateways:
            raise ValueError("name at least one gateway, such as http://127.0.0.1:7482")
        for gateway in self._gateways:
            if "authorization" in self._headers and gateway.is_readable_by_others():
                raise ValueError(f"{gateway.address} would get the password or token in plain text: use https://")
        self._current = 0

    def __len__(self) -> int:
        return len(self._gateways)

    def call(
        self,
        method: str,
        path: str,
        body: Callable[[float], dict[str, Any]] | dict[str, Any] | None = None,
        *,
        seconds: float,
        patience: float | None = None,
    ) -> Any:
        """Returns the answer (G1). `patience` is for one gateway; `body` may depend on the seconds that are left."""
        end = now() + seconds
        is_unknown = False
        last = "there was no time to ask a gateway"
        tries = 0
        while (left := end - now()) > 0:
            at = self._current
            content = body(left) if callable(body) else body
            try:
                timeout = min(left, patience or seconds / len(self._gateways))
                with self._gateways[at].ask(method, path, content, self._headers, timeout) as response:
                    status, answer = response.status, json.loads(response.read())
            except NotSent as error:
                last = str(error)
            except (OSError, http.client.HTTPException, ValueError) as error:
                last = f"{self._gateways[at].address} did not answer: {error!r}"
                is_unknown = True
            else:
                if status == 200:
                    return answer
                refused = refusal(status, answer)
                if status not in NOT_DONE + NOT_KNOWN:
                    # This attempt changed nothing. An earlier one, whose answer was lost, may have.
                    raise unknown(refused) if is_unknown and status in UNRELATED else refused
                last = str(refused)
                is_unknown = is_unknown or status in NOT_KNOWN
            self._leave(at)
            tries += 1
            if tries % len(self._gateways) == 0:
                pause = min(PAUSE_SECONDS_MAX, PAUSE_SECONDS * tries) * random.uniform(0.5, 1.0)
                time.sleep(max(0.0, min(pause, end - now())))
        raise UnknownOutcome("UNKNOWN_OUTCOME", last) if is_unknown else Unavailable("UNAVAILABLE", last)

    def lines(self, path: str, headers: dict[str, str], silence: float) -> Iterator[bytes]:
        """Yields the lines of a stream of server-sent events, from one gateway, until it ends or falls silent."""
        at = self._current
        try:
            with self._gateways[at].ask("GET", path, None, {**self._headers, **headers}, silence) as response:
                if response.status == 200:
                    while line := response.readline():
                        yield line.rstrip(b"\r\n")
                elif response.status not in NOT_DONE + NOT_KNOWN:
                    raise refusal(response.status, json.loads(response.read()))
        except (NotSent, OSError, http.client.HTTPException):
            pass
        self._leave(at)

    def _leave(self, at: int) -> None:
        """The next call begins at another gateway, unless a thread has changed that meanwhile."""
        if self._current == at:
            self._current = (at + 1) % len(self._gateways)


class _Gateway:
    def __init__(self, address: str, tls: ssl.SSLContext) -> None:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        if parts.scheme not in ("http", "https") or parts.hostname is None or parts.path not in ("", "/"):
            raise ValueError(f"{address} is no address of a gateway; one is like https://10.0.0.1:7482")
        self.address = f"{parts.scheme}://{parts.netloc}"
        self._host, self._port = parts.hostname, parts.port or 7482
        self._tls = tls if parts.scheme == "https" else None

    def is_readable_by_others(self) -> bool:
        if self._tls is not None or self._host == "localhost":
            return False
        try:
            return not ipaddress.ip_address(self._host).is_loopback
        except ValueError:
            return True

    @contextmanager
    def ask(
        self, method: str, path: str, body: dict[str, Any] | None, headers: dict[str, str], seconds: float
    ) -> Iterator[http.client.HTTPResponse]:
        """Each call has a connection of its own: none can turn out to be closed after the call was sent."""
        if self._tls is None:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=seconds)
        else:
            connection = http.client.HTTPSConnection(self._host, self._port, timeout=seconds, context=self._tls)
        try:
            try:
                connection.connect()
            except OSError as error:
                raise NotSent(f"no connection to {self.address}: {error}") from error
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            yield connection.getresponse()
        finally:
            connection.close()


def _credentials(user: str | None, password: str | None, token: str | None) -> dict[str, str]:
    if token is not None:
        if user is not None:
            raise ValueError("give either a token, or a user and a password")
        return {"authorization": f"Bearer {token}"}
    if user is None:
        return {}
    pair = base64.b64encode(f"{user}:{password or ''}".encode()).decode()
    return {"authorization": f"Basic {pair}"}


def refusal(status: int, answer: Any) -> RemoraError:
    try:
        error = answer["error"]
        return BY_CODE.get(error["code"], RemoraError)(error["code"], error["message"], error)
    except (TypeError, KeyError):
        return RemoraError("INTERNAL", f"an answer with status {status} that is not Remora's: {answer!r}")


def unknown(error: RemoraError) -> UnknownOutcome:
    return UnknownOutcome("UNKNOWN_OUTCOME", f"an earlier attempt may have been carried out; a repeated one: {error}")
