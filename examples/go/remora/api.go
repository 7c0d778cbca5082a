// Code generated from docs/reference/openapi.json by `npm run docs`. DO NOT EDIT.

package remora

type Acquire struct {
	// How long the session outlives its last renewal. Default: 30 s. In milliseconds.
	TTL *float64 `json:"ttl,omitempty"`
	// How long to wait in the queue while others hold the lock. Default: not at all. In milliseconds.
	Wait *float64 `json:"wait,omitempty"`
	// Unique for each acquire and hard to guess: a GUID. Any caller that knows it may release the lock. If you
	// choose a token, you can repeat the call after a lost answer, at any node: it keeps its place in the queue,
	// and its grant. Without a token, the call ends with its connection.
	Token string `json:"token,omitempty"`
	// The session that the lock belongs to; it requires a token. Default: the call opens a session for the lock.
	Session string `json:"session,omitempty"`
	// Shares the lock with other callers that share it. Default: exclusive.
	Shared bool `json:"shared,omitempty"`
	// The number of permits of a semaphore to acquire at once. Default: 1 if capacity is given.
	Permits *int64 `json:"permits,omitempty"`
	// The number of permits of the semaphore, if it is unused and has no set capacity.
	Capacity *int64 `json:"capacity,omitempty"`
	// Waits at a barrier until the lock has no holder, and holds nothing afterwards. If you choose a token, call
	// release to confirm the answer, or let the session end.
	Pass bool `json:"pass,omitempty"`
	// Enters a double barrier: shares the lock, and waits until so many callers do. Call leave to leave it.
	Parties *int64 `json:"parties,omitempty"`
	// Shown with the lock. At most 4096 bytes.
	Data *Bytes `json:"data,omitempty"`
	// Whether the data stay with the lock after the hold ends.
	KeepData bool `json:"keepData,omitempty"`
	// How long the lock stays blocked if the session ends without a release. Default: not at all. In
	// milliseconds.
	LockDelay *float64 `json:"lockDelay,omitempty"`
	// Shown with the session. At most 16 entries, and 4 KiB in all.
	Attributes map[string]string `json:"attributes,omitempty"`
}

type Check struct {
	Checks []CheckCheck `json:"checks"`
}

type CheckCheck struct {
	// Separates users of one cluster.
	Namespace string `json:"namespace,omitempty"`
	// 1 to 1024 bytes.
	Name Bytes `json:"name"`
	// The fencing version. It grows with each grant of the lock; pass it to the resource that the lock protects.
	Version int64 `json:"version"`
}

type Checked struct {
	// In the order of the checks. The locks of one range are checked at one moment after the call started.
	Current []bool `json:"current"`
}

type Grant struct {
	// The id of a session. Opaque.
	Session string `json:"session"`
	// The secret of the owner: unique for each acquire, and never shown to other clients.
	Token string `json:"token"`
	// The fencing version. It grows with each grant of the lock; pass it to the resource that the lock protects.
	Version int64 `json:"version"`
	// How long the session outlives its last renewal, as granted.
	TTLMs int64 `json:"ttlMs"`
	// How long the holder can rely on the session if clocks drift by up to 5 %: from when it sent the renewal;
	// after an acquire, from when it got the answer.
	ValidMs int64 `json:"validMs"`
	// Wall time of the grant at the server, in ms since 1970, for display. 0: a barrier was passed.
	LockTimeMs int64 `json:"lockTimeMs"`
	// The data that an earlier holder left with the lock.
	KeptData *Bytes `json:"keptData,omitempty"`
}

type Holder struct {
	// The id of a session. Opaque.
	Session string `json:"session"`
	// Distinguishes the owners of one session. It is derived from the token, which cannot be derived from it.
	OwnerID string `json:"ownerId"`
	// One of exclusive, shared, permits.
	Mode string `json:"mode,omitempty"`
	// The number of permits that it has.
	Permits *int64 `json:"permits,omitempty"`
	// The fencing version. It grows with each grant of the lock; pass it to the resource that the lock protects.
	Version int64 `json:"version"`
	// How often the owner has entered the lock.
	Depth int64 `json:"depth"`
	// Wall time of the grant at the server, in ms since 1970, for display. 0: a barrier was passed.
	LockTimeMs int64 `json:"lockTimeMs"`
	// Shown with the lock. At most 4096 bytes.
	Data Bytes `json:"data"`
	// Whether the data stay with the lock after the hold ends.
	KeepData bool `json:"keepData,omitempty"`
	// How long the lock stays blocked after the session has ended.
	LockDelayMs *int64 `json:"lockDelayMs,omitempty"`
	// Whether the session has ended and the lock is still blocked.
	Delayed bool `json:"delayed,omitempty"`
	// How long the session outlives its last renewal, as granted.
	TTLMs *int64 `json:"ttlMs,omitempty"`
	// The time until the session ends unless it is renewed.
	RemainingMs *int64 `json:"remainingMs,omitempty"`
	// The condition that client and cluster keep to; absent if the session has only a TTL.
	Condition *HolderCondition `json:"condition,omitempty"`
}

type HolderCondition struct {
	// The interval of the client's heartbeats.
	HeartbeatMs int64 `json:"heartbeatMs"`
	// The cluster ends the session after this many missed heartbeats.
	ServerMisses int64 `json:"serverMisses"`
	// The client stops after this many heartbeats without an answer.
	HolderMisses int64 `json:"holderMisses"`
}

type KvEventChanges struct {
	// The revision of all of these changes.
	Revision int64 `json:"revision"`

	Events []KvEventChangesEvent `json:"events"`
}

type KvEventChangesEvent struct {
	Type string `json:"type"`
	// The key: any bytes, at least one.
	Key Bytes `json:"key"`
	// The revision at which the key was created.
	CreateRevision *int64 `json:"createRevision,omitempty"`
	// The revision of the last change of the key.
	ModRevision int64 `json:"modRevision"`
	// 1 for a key just created; it grows with each put.
	Version *int64 `json:"version,omitempty"`
	// The lease that the key belongs to, in hexadecimal: it is deleted when the lease ends.
	// `/v1/sessions/{lease}.0` shows it.
	Lease string `json:"lease,omitempty"`
	// The length of the value. Absent: it was not read.
	ValueBytes *int64 `json:"valueBytes,omitempty"`
	// The value: any bytes. Base64 is shorter than text with many control characters.
	Value *Bytes `json:"value,omitempty"`
}

type KvEventLive struct {
	// Changes above this revision follow.
	Revision int64 `json:"revision"`
}

type KvPut struct {
	// The value: any bytes. Base64 is shorter than text with many control characters.
	Value Bytes `json:"value"`
	// Write only if this is the revision of the last change of the key; 0: if the key is absent.
	IfModRevision *int64 `json:"ifModRevision,omitempty"`
	// Write only if this is the version of the key; 0: if the key is absent.
	IfVersion *int64 `json:"ifVersion,omitempty"`
	// Deletes the key when this lease ends. Default: the key belongs to no lease.
	Lease string `json:"lease,omitempty"`
	// A new GUID, so that you can repeat the call after a lost answer: within half a minute it is carried out
	// once, however often it is sent, and each call returns the outcome.
	RequestID string `json:"requestId,omitempty"`
}

type KvPutDone struct {
	// The revision of the change.
	ModRevision int64 `json:"modRevision"`
}

type KvRead struct {
	// The key: any bytes, at least one.
	Key Bytes `json:"key"`
	// The revision at which the key was created.
	CreateRevision int64 `json:"createRevision"`
	// The revision of the last change of the key.
	ModRevision int64 `json:"modRevision"`
	// 1 for a key just created; it grows with each put.
	Version int64 `json:"version"`
	// The lease that the key belongs to, in hexadecimal: it is deleted when the lease ends.
	// `/v1/sessions/{lease}.0` shows it.
	Lease string `json:"lease,omitempty"`
	// The length of the value. Absent: it was not read.
	ValueBytes int64 `json:"valueBytes"`
	// The value: any bytes. Base64 is shorter than text with many control characters.
	Value Bytes `json:"value"`
	// The revision at which the keys were read; pages of one list have the same one.
	Revision int64 `json:"revision"`
}

type Refusal struct {
	Error RefusalError `json:"error"`
}

type RefusalError struct {
	// For programs to branch on; a code never changes its meaning.
	Code string `json:"code"`
	// For people: what is wrong, and what is expected.
	Message string `json:"message"`
	// no: the call would be refused again; same: repeat it unchanged, at any node; later: repeat it after a
	// pause. One of no, same, later.
	Retry string `json:"retry"`

	Holder *Holder `json:"holder,omitempty"`
	// With KEY_CHANGED, for one key: the key as it is; null if it is absent. Values above 64 KiB are left out.
	Current *RefusalErrorCurrent `json:"current,omitempty"`
	// With KEY_NOT_FOUND: the revision at which there was no such key.
	Revision *int64 `json:"revision,omitempty"`
	// With COMPACTED: the oldest revision that can be read.
	CompactRevision *int64 `json:"compactRevision,omitempty"`
}

type RefusalErrorCurrent struct {
	// The key: any bytes, at least one.
	Key Bytes `json:"key"`
	// The revision at which the key was created.
	CreateRevision int64 `json:"createRevision"`
	// The revision of the last change of the key.
	ModRevision int64 `json:"modRevision"`
	// 1 for a key just created; it grows with each put.
	Version int64 `json:"version"`
	// The lease that the key belongs to, in hexadecimal: it is deleted when the lease ends.
	// `/v1/sessions/{lease}.0` shows it.
	Lease string `json:"lease,omitempty"`
	// The length of the value. Absent: it was not read.
	ValueBytes *int64 `json:"valueBytes,omitempty"`
	// The value: any bytes. Base64 is shorter than text with many control characters.
	Value *Bytes `json:"value,omitempty"`
}

type Release struct {
	// The id of a session. Opaque.
	Session string `json:"session,omitempty"`
	// The secret of the owner: unique for each acquire, and never shown to other clients.
	Token string `json:"token"`
	// The fencing version. It grows with each grant of the lock; pass it to the resource that the lock protects.
	Version *int64 `json:"version,omitempty"`
	// How long the session outlives its last renewal, as granted.
	TTLMs *int64 `json:"ttlMs,omitempty"`
	// How long the holder can rely on the session if clocks drift by up to 5 %: from when it sent the renewal;
	// after an acquire, from when it got the answer.
	ValidMs *int64 `json:"validMs,omitempty"`
	// Wall time of the grant at the server, in ms since 1970, for display. 0: a barrier was passed.
	LockTimeMs *int64 `json:"lockTimeMs,omitempty"`
	// The data that an earlier holder left with the lock.
	KeptData *Bytes `json:"keptData,omitempty"`
}

type Released struct {
	// False if the lock was not held any more; a place in the queue is given up in any case.
	Released bool `json:"released"`
	// Why the lock was not held. One of LOCK_NOT_HELD, LOCK_WRONG_OWNER, SESSION_EXPIRED.
	Code string `json:"code,omitempty"`
}

type Renew struct {
	// The id of a session. Opaque.
	Session string `json:"session"`
	// The secret of the owner: unique for each acquire, and never shown to other clients.
	Token string `json:"token,omitempty"`
	// The fencing version. It grows with each grant of the lock; pass it to the resource that the lock protects.
	Version int64 `json:"version"`
	// How long the session outlives its last renewal, as granted.
	TTLMs *int64 `json:"ttlMs,omitempty"`
	// How long the holder can rely on the session if clocks drift by up to 5 %: from when it sent the renewal;
	// after an acquire, from when it got the answer.
	ValidMs *int64 `json:"validMs,omitempty"`
	// Wall time of the grant at the server, in ms since 1970, for display. 0: a barrier was passed.
	LockTimeMs *int64 `json:"lockTimeMs,omitempty"`
	// The data that an earlier holder left with the lock.
	KeptData *Bytes `json:"keptData,omitempty"`
}

type Session struct {
	// The id of a session. Opaque.
	Session string `json:"session"`
	// How long the session outlives its last renewal, as granted.
	TTLMs int64 `json:"ttlMs"`
	// How long the holder can rely on the session if clocks drift by up to 5 %: from when it sent the renewal;
	// after an acquire, from when it got the answer.
	ValidMs int64 `json:"validMs"`
}
