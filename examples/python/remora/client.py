"""Locks and keys of a Remora cluster, with nothing but Python's standard library."""

from __future__ import annotations

import base64
import json
import time
import uuid
from dataclasses import dataclass
from typing import Any, Iterator
from urllib.parse import quote

from .api import Acquire, Bytes, Check, Checked, Grant, KvEventChanges, KvPut, KvPutDone, KvRead
from .gateways import PAUSE_SECONDS, Gateways, LockBusy, RemoraError, Unavailable, UnknownOutcome, refusal
from .lock import Lock, release

# Ranges remember a `requestId` for half a minute; a call must not be repeated for longer.
CALL_SECONDS_MAX = 25.0
WAIT_SECONDS_MAX = 600.0
# A stream that is alive has a line every 15 s.
SILENCE_SECONDS = 40.0


@dataclass(frozen=True)
class Pair:
    """A key with its value, as it was read."""

    key: str | bytes
    value: bytes
    mod_revision: int


@dataclass(frozen=True)
class Change:
    """A change of a key. `value` is None for a deletion."""

    key: str | bytes
    value: bytes | None
    mod_revision: int


class Client:
    """Talks to the gateways in `addresses`, such as `["https://10.0.0.1:7482", "https://10.0.0.2:7482"]`.

    Credentials are `user` and `password`, a `token`, or a client certificate (`cert_file`, `key_file`). `ca_file` has
    the certificate of the authority that the gateways' certificates come from. `timeout` is for one call, in seconds.
    """

    def __init__(
        self, addresses: list[str], *, timeout: float = 10.0, namespace: str = "default", **access: str | None
    ) -> None:
        if not 0 < timeout <= CALL_SECONDS_MAX:
            raise ValueError(f"timeout must be above 0 and at most {CALL_SECONDS_MAX:g} seconds")
        self._gateways = Gateways(addresses, **access)
        self._timeout = timeout
        self._namespace = namespace

    def lock(self, name: str | bytes, *, wait: float = 0.0, ttl: float = 10.0) -> Lock:
        """Acquires a lock, and waits for it for up to `wait` seconds. Use it as a context manager.

        LockBusy: others held it. Unavailable: not acquired. UnknownOutcome: nobody can be told to give it back; if it
        was granted, it ends with its TTL.
        """
        if not 0 <= wait <= WAIT_SECONDS_MAX:
            raise ValueError(f"wait must be 0 to {WAIT_SECONDS_MAX:g} seconds")
        path = f"/v1/locks/{_quoted(self._namespace)}/{_quoted(name)}"
        token = str(uuid.uuid4())
        grace = self._timeout  # after the wait, for gateways that fail

        def body(left: float) -> dict[str, Any]:
            acquire: Acquire = {"token": token, "ttl": _ms(ttl)}
            if wait > 0:
                acquire["wait"] = max(1, _ms(left - grace))
            return dict(acquire)

        try:
            # A gateway that does not answer for half the TTL is left: another one finds the place by the token.
            grant: Grant = self._gateways.call(
                "POST", f"{path}/acquire", body, seconds=wait + grace, patience=ttl / 2
            )
            return Lock(self._gateways, path, grant)
        except BaseException as error:
            self._give_back(path, token, error)
            raise

    def check_version(self, name: str | bytes, version: int) -> bool:
        """Whether the lock is held by the grant with this version. For diagnosis: it may change at once."""
        check: Check = {"checks": [{"namespace": self._namespace, "name": _encoded(name), "version": version}]}
        checked: Checked = self._call("POST", "/v1/check", dict(check))
        return checked["current"][0]

    def get(self, key: str | bytes) -> Pair | None:
        try:
            read: KvRead = self._call("GET", f"/v1/kv/{_quoted(key)}")
        except RemoraError as error:
            if error.code == "KEY_NOT_FOUND":
                return None
            raise
        return Pair(_key(read["key"]), _decoded(read["value"]), read["modRevision"])

    def put(self, key: str | bytes, value: str | bytes, *, if_mod_revision: int | None = None) -> int:
        """Writes a key and returns its new revision.

        `if_mod_revision` writes only if the key is unchanged since it was read (0: only if it is absent), and raises
        KeyChanged otherwise. The call has a request id, so that a repeated attempt is carried out once.
        """
        put: KvPut = {"value": _encoded(value), "requestId": str(uuid.uuid4())}
        if if_mod_revision is not None:
            put["ifModRevision"] = if_mod_revision
        done: KvPutDone = self._call("PUT", f"/v1/kv/{_quoted(key)}", dict(put))
        return done["modRevision"]

    def watch(self, prefix: str | bytes, *, since: int | None = None) -> Iterator[Change]:
        """Yields the changes of all keys with the prefix, each once and in order, from after revision `since`.

        Continues at another gateway where a stream has ended. RemoraError with COMPACTED: read the keys again.
        """
        path = f"/v1/kv-events?prefix={_quoted(prefix)}"
        while True:
            headers = {} if since is None else {"last-event-id": str(since)}
            for event, data in _events(self._gateways.lines(path, headers, SILENCE_SECONDS)):
                if event == "error":
                    raise refusal(200, data)
                since = max(since or 0, data["revision"])
                if event == "events":
                    changes: KvEventChanges = data
                    for each in changes["events"]:
                        value = _decoded(each["value"]) if each["type"] == "put" else None
                        yield Change(_key(each["key"]), value, each["modRevision"])
            time.sleep(PAUSE_SECONDS)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return self._gateways.call(method, path, body, seconds=self._timeout)

    def _give_back(self, path: str, token: str, error: BaseException) -> None:
        """After an acquire that failed, it may still wait for the lock or hold it."""
        try:
            release(self._gateways, path, token)
        except RemoraError as cause:
            if isinstance(error, (LockBusy, Unavailable)):
                raise UnknownOutcome("UNKNOWN_OUTCOME", f"{error}; it could not be given up: {cause}") from error
        else:
            if isinstance(error, UnknownOutcome):
                raise Unavailable("UNAVAILABLE", f"not acquired: {error}") from error


def _events(lines: Any) -> Iterator[tuple[str, Any]]:
    """Server-sent events: their types and data."""
    event = ""
    for line in lines:
        field, _, rest = line.partition(b": ")
        if field == b"event":
            event = rest.decode()
        elif field == b"data":
            yield event, json.loads(rest)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)


def _quoted(name: str | bytes) -> str:
    return quote(name, safe="")


def _encoded(value: str | bytes) -> Bytes:
    return value if isinstance(value, str) else {"base64": base64.b64encode(value).decode()}


def _decoded(value: Bytes) -> bytes:
    return value.encode() if isinstance(value, str) else base64.b64decode(value["base64"])


def _key(value: Bytes) -> str | bytes:
    return value if isinstance(value, str) else _decoded(value)
