package remora

import (
	"encoding/json"
	"errors"
	"fmt"
)

var (
	// ErrUnavailable: no gateway carried out the call in time. Nothing was changed.
	ErrUnavailable = errors.New("remora: unavailable")
	// ErrUnknownOutcome: the call may or may not have been carried out. Look before you repeat it.
	ErrUnknownOutcome = errors.New("remora: the outcome is unknown")
	// ErrLockBusy: others held the lock for the whole time to wait. The caller does not hold it.
	ErrLockBusy = errors.New("remora: others hold the lock")
	// ErrLockLost: the lock is not held any more.
	ErrLockLost = errors.New("remora: the lock is lost")
	// ErrKeyNotFound: there is no such key.
	ErrKeyNotFound = errors.New("remora: there is no such key")
	// ErrKeyChanged: the key is not as the condition says. Nothing was changed.
	ErrKeyChanged = errors.New("remora: the key has changed")
	// ErrCompacted: the history that was asked for is gone. Read the keys again.
	ErrCompacted = errors.New("remora: the history was compacted")
)

var byCode = map[string]error{
	"LOCK_BUSY":       ErrLockBusy,
	"LOCK_TIMEOUT":    ErrLockBusy,
	"LOCK_NOT_HELD":   ErrLockLost,
	"SESSION_EXPIRED": ErrLockLost,
	"KEY_NOT_FOUND":   ErrKeyNotFound,
	"KEY_CHANGED":     ErrKeyChanged,
	"COMPACTED":       ErrCompacted,
}

// Error is the refusal of a call. Its codes are those of docs/reference/errors.md; errors.Is finds the common ones.
type Error struct{ RefusalError }

func (e *Error) Error() string { return fmt.Sprintf("remora: %s: %s", e.Code, e.Message) }

func (e *Error) Unwrap() error { return byCode[e.Code] }

// refusalOf reads the body of a refusal. Without a Code, it is none of Remora's.
func refusalOf(status string, body []byte) *Error {
	refusal := Refusal{Error: RefusalError{Message: "status " + status}}
	_ = json.Unmarshal(body, &refusal)
	return &Error{refusal.Error}
}

// outcomeError is ErrUnavailable or ErrUnknownOutcome, with its cause.
type outcomeError struct{ kind, cause error }

func (e *outcomeError) Error() string { return fmt.Sprintf("%v: %v", e.kind, e.cause) }

func (e *outcomeError) Is(target error) bool { return target == e.kind }

func (e *outcomeError) Unwrap() error { return e.cause }
