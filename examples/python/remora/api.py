"""The bodies of Remora's HTTP API. Generated from docs/reference/openapi.json by `npm run docs`."""

from __future__ import annotations

from typing import NotRequired, TypedDict, Union


class Base64(TypedDict):
    base64: str


Bytes = Union[str, Base64]  # text where the bytes are UTF-8


AcquireKeywords = TypedDict("AcquireKeywords", {"pass": NotRequired[bool]})


class Acquire(AcquireKeywords):
    # How long the session outlives its last renewal. Default: 30 s. In milliseconds.
    ttl: NotRequired[float]
    # How long to wait in the queue while others hold the lock. Default: not at all. In milliseconds.
    wait: NotRequired[float]
    # Unique for each acquire and hard to guess: a GUID. Any caller that knows it may release the lock. If you
    # choose a token, you can repeat the call after a lost answer, at any node: it keeps its place in the
    # queue, and its grant. Without a token, the call ends with its connection.
    token: NotRequired[str]
    # The session that the lock belongs to; it requires a token. Default: the call opens a session for the
    # lock.
    session: NotRequired[str]
    # Shares the lock with other callers that share it. Default: exclusive.
    shared: NotRequired[bool]
    # The number of permits of a semaphore to acquire at once. Default: 1 if capacity is given.
    permits: NotRequired[int]
    # The number of permits of the semaphore, if it is unused and has no set capacity.
    capacity: NotRequired[int]
    # Enters a double barrier: shares the lock, and waits until so many callers do. Call leave to leave it.
    parties: NotRequired[int]
    # Shown with the lock. At most 4096 bytes.
    data: NotRequired[Bytes]
    # Whether the data stay with the lock after the hold ends.
    keepData: NotRequired[bool]
    # How long the lock stays blocked if the session ends without a release. Default: not at all. In
    # milliseconds.
    lockDelay: NotRequired[float]
    # Shown with the session. At most 16 entries, and 4 KiB in all.
    attributes: NotRequired[dict[str, str]]


class Check(TypedDict):
    checks: list[CheckCheck]


class CheckCheck(TypedDict):
    # Separates users of one cluster.
    namespace: NotRequired[str]
    # 1 to 1024 bytes.
    name: Bytes
    # The fencing version. It grows with each grant of the lock; pass it to the resource that the lock
    # protects.
    version: int


class Checked(TypedDict):
    # In the order of the checks. The locks of one range are checked at one moment after the call started.
    current: list[bool]


class Grant(TypedDict):
    # The id of a session. Opaque.
    session: str
    # The secret of the owner: unique for each acquire, and never shown to other clients.
    token: str
    # The fencing version. It grows with each grant of the lock; pass it to the resource that the lock
    # protects.
    version: int
    # How long the session outlives its last renewal, as granted.
    ttlMs: int
    # How long the holder can rely on the session if clocks drift by up to 5 %: from when it sent the renewal;
    # after an acquire, from when it got the answer.
    validMs: int
    # Wall time of the grant at the server, in ms since 1970, for display. 0: a barrier was passed.
    lockTimeMs: int
    # The data that an earlier holder left with the lock.
    keptData: NotRequired[Bytes]


class Holder(TypedDict):
    # The id of a session. Opaque.
    session: str
    # Distinguishes the owners of one session. It is derived from the token, which cannot be derived from it.
    ownerId: str
    # One of exclusive, shared, permits.
    mode: NotRequired[str]
    # The number of permits that it has.
    permits: NotRequired[int]
    # The fencing version. It grows with each grant of the lock; pass it to the resource that the lock
    # protects.
    version: int
    # How often the owner has entered the lock.
    depth: int
    # Wall time of the grant at the server, in ms since 1970, for display. 0: a barrier was passed.
    lockTimeMs: int
    # Shown with the lock. At most 4096 bytes.
    data: Bytes
    # Whether the data stay with the lock after the hold ends.
    keepData: NotRequired[bool]
    # How long the lock stays blocked after the session has ended.
    lockDelayMs: NotRequired[int]
    # Whether the session has ended and the lock is still blocked.
    delayed: NotRequired[bool]
    # How long the session outlives its last renewal, as granted.
    ttlMs: NotRequired[int]
    # The time until the session ends unless it is renewed.
    remainingMs: NotRequired[int]
    # The condition that client and cluster keep to; absent if the session has only a TTL.
    condition: NotRequired[HolderCondition]


class HolderCondition(TypedDict):
    # The interval of the client's heartbeats.
    heartbeatMs: int
    # The cluster ends the session after this many missed heartbeats.
    serverMisses: int
    # The client stops after this many heartbeats without an answer.
    holderMisses: int


class KvEventChanges(TypedDict):
    # The revision of all of these changes.
    revision: int
    events: list[KvEventChangesEvent]


class KvEventChangesEvent(TypedDict):
    type: str
    # The key: any bytes, at least one.
    key: Bytes
    # The revision at which the key was created.
    createRevision: NotRequired[int]
    # The revision of the last change of the key.
    modRevision: int
    # 1 for a key just created; it grows with each put.
    version: NotRequired[int]
    # The lease that the key belongs to, in hexadecimal: it is deleted when the lease ends.
    # `/v1/sessions/{lease}.0` shows it.
    lease: NotRequired[str]
    # The length of the value. Absent: it was not read.
    valueBytes: NotRequired[int]
    # The value: any bytes. Base64 is shorter than text with many control characters.
    value: NotRequired[Bytes]


class KvEventLive(TypedDict):
    # Changes above this revision follow.
    revision: int


class KvPut(TypedDict):
    # The value: any bytes. Base64 is shorter than text with many control characters.
    value: Bytes
    # Write only if this is the revision of the last change of the key; 0: if the key is absent.
    ifModRevision: NotRequired[int]
    # Write only if this is the version of the key; 0: if the key is absent.
    ifVersion: NotRequired[int]
    # Deletes the key when this lease ends. Default: the key belongs to no lease.
    lease: NotRequired[str]
    # A new GUID, so that you can repeat the call after a lost answer: within half a minute it is carried out
    # once, however often it is sent, and each call returns the outcome.
    requestId: NotRequired[str]


class KvPutDone(TypedDict):
    # The revision of the change.
    modRevision: int


class KvRead(TypedDict):
    # The key: any bytes, at least one.
    key: Bytes
    # The revision at which the key was created.
    createRevision: int
    # The revision of the last change of the key.
    modRevision: int
    # 1 for a key just created; it grows with each put.
    version: int
    # The lease that the key belongs to, in hexadecimal: it is deleted when the lease ends.
    # `/v1/sessions/{lease}.0` shows it.
    lease: NotRequired[str]
    # The length of the value. Absent: it was not read.
    valueBytes: int
    # The value: any bytes. Base64 is shorter than text with many control characters.
    value: Bytes
    # The revision at which the keys were read; pages of one list have the same one.
    revision: int


class Refusal(TypedDict):
    error: RefusalError


class RefusalError(TypedDict):
    # For programs to branch on; a code never changes its meaning.
    code: str
    # For people: what is wrong, and what is expected.
    message: str
    # no: the call would be refused again; same: repeat it unchanged, at any node; later: repeat it after a
    # pause. One of no, same, later.
    retry: str
    holder: NotRequired[Holder]
    # With KEY_CHANGED, for one key: the key as it is; null if it is absent. Values above 64 KiB are left out.
    current: NotRequired[RefusalErrorCurrent]
    # With KEY_NOT_FOUND: the revision at which there was no such key.
    revision: NotRequired[int]
    # With COMPACTED: the oldest revision that can be read.
    compactRevision: NotRequired[int]


class RefusalErrorCurrent(TypedDict):
    # The key: any bytes, at least one.
    key: Bytes
    # The revision at which the key was created.
    createRevision: int
    # The revision of the last change of the key.
    modRevision: int
    # 1 for a key just created; it grows with each put.
    version: int
    # The lease that the key belongs to, in hexadecimal: it is deleted when the lease ends.
    # `/v1/sessions/{lease}.0` shows it.
    lease: NotRequired[str]
    # The length of the value. Absent: it was not read.
    valueBytes: NotRequired[int]
    # The value: any bytes. Base64 is shorter than text with many control characters.
    value: NotRequired[Bytes]


class Release(TypedDict):
    # The id of a session. Opaque.
    session: NotRequired[str]
    # The secret of the owner: unique for each acquire, and never shown to other clients.
    token: str
    # The fencing version. It grows with each grant of the lock; pass it to the resource that the lock
    # protects.
    version: NotRequired[int]
    # How long the session outlives its last renewal, as granted.
    ttlMs: NotRequired[int]
    # How long the holder can rely on the session if clocks drift by up to 5 %: from when it sent the renewal;
    # after an acquire, from when it got the answer.
    validMs: NotRequired[int]
    # Wall time of the grant at the server, in ms since 1970, for display. 0: a barrier was passed.
    lockTimeMs: NotRequired[int]
    # The data that an earlier holder left with the lock.
    keptData: NotRequired[Bytes]


class Released(TypedDict):
    # False if the lock was not held any more; a place in the queue is given up in any case.
    released: bool
    # Why the lock was not held. One of LOCK_NOT_HELD, LOCK_WRONG_OWNER, SESSION_EXPIRED.
    code: NotRequired[str]


class Renew(TypedDict):
    # The id of a session. Opaque.
    session: str
    # The secret of the owner: unique for each acquire, and never shown to other clients.
    token: NotRequired[str]
    # The fencing version. It grows with each grant of the lock; pass it to the resource that the lock
    # protects.
    version: int
    # How long the session outlives its last renewal, as granted.
    ttlMs: NotRequired[int]
    # How long the holder can rely on the session if clocks drift by up to 5 %: from when it sent the renewal;
    # after an acquire, from when it got the answer.
    validMs: NotRequired[int]
    # Wall time of the grant at the server, in ms since 1970, for display. 0: a barrier was passed.
    lockTimeMs: NotRequired[int]
    # The data that an earlier holder left with the lock.
    keptData: NotRequired[Bytes]


class Session(TypedDict):
    # The id of a session. Opaque.
    session: str
    # How long the session outlives its last renewal, as granted.
    ttlMs: int
    # How long the holder can rely on the session if clocks drift by up to 5 %: from when it sent the renewal;
    # after an acquire, from when it got the answer.
    validMs: int
