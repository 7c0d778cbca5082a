package remora

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const renewalsPerTTL = 3

// Lock is a held lock, which a goroutine renews.
//
// K1. The holder counts on the lock until validMs after it *sent* the last renewal that succeeded. validMs is the TTL
// less the drift of clocks, so this moment comes before the cluster can give the lock to anybody else.
// K2. Err compares the clock whenever it is called. A process that was paused sees that the lock is lost at its first
// call, before any timer has fired. The wall clock counts too, because the monotonic one stands still while the machine
// is suspended.
// K3. A lost lock stays lost, also if a late answer says that it was renewed.
type Lock struct {
	gateways *gateways
	path     string
	grant    Grant
	ctx      context.Context
	cancel   context.CancelFunc

	mu    sync.Mutex
	sent  time.Time     // when the last renewal that succeeded was sent
	valid time.Duration // how long it counts
	timer *time.Timer   // fires when that is over
	lost  error         // why the lock is not held any more
}

func newLock(ctx context.Context, g *gateways, path string, grant Grant) (*Lock, error) {
	l := &Lock{gateways: g, path: path, grant: grant}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	// The answer may have waited in this machine for long, so the time of its arrival says nothing (K1).
	l.renew(ctx, validity(grant.ValidMs))
	if err := l.Err(); err != nil {
		return nil, err
	}
	go l.keep()
	return l, nil
}

// Version is the fencing version: send it with every write, and let the resource refuse lower ones.
func (l *Lock) Version() int64 { return l.grant.Version }

// Context is canceled as soon as the lock is not certainly held: it was lost, taken away or released.
func (l *Lock) Context() context.Context { return l.ctx }

// Err returns nil while the lock is certainly held, and then why it is not.
func (l *Lock) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost == nil && l.remaining() <= 0 {
		l.end(fmt.Errorf("%w: it could not be renewed in time", ErrLockLost))
	}
	return l.lost
}

// ValidUntil is until when the holder can count on the lock without another renewal.
func (l *Lock) ValidUntil() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent.Add(l.valid)
}

// Release gives the lock back. A lock that is lost already is no error. After ErrUnavailable and ErrUnknownOutcome it
// ends with its TTL, at the latest.
func (l *Lock) Release(ctx context.Context) error {
	l.mu.Lock()
	l.end(fmt.Errorf("%w: it was released", ErrLockLost))
	l.mu.Unlock()
	return release(ctx, l.gateways, l.path, l.grant.Token)
}

func (l *Lock) keep() {
	ticker := time.NewTicker(validity(l.grant.ValidMs) / renewalsPerTTL)
	defer ticker.Stop()
	for {
		select {
		case <-l.ctx.Done():
			return
		case <-ticker.C:
			if l.Err() == nil {
				l.renew(l.ctx, time.Until(l.ValidUntil()))
			}
		}
	}
}

// renew renews the lock, or tries to for so long. Nothing but Err tells how it went.
func (l *Lock) renew(ctx context.Context, timeout time.Duration) {
	sent := time.Now()
	body := Renew{Session: l.grant.Session, Token: l.grant.Token, Version: l.grant.Version}
	var session Session
	err := l.gateways.call(ctx, request{
		method: "POST", path: l.path + "/renew",
		body:     func(time.Duration) any { return body },
		timeout:  timeout,
		patience: timeout / time.Duration(renewalsPerTTL*len(l.gateways.addresses)),
	}, &session)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case errors.Is(err, ErrLockLost):
		l.end(err)
	case err != nil || l.lost != nil || (!l.sent.IsZero() && l.remaining() <= 0): // K3
	default:
		l.sent, l.valid = sent, validity(session.ValidMs)
		if l.timer != nil {
			l.timer.Stop()
		}
		l.timer = time.AfterFunc(l.remaining(), func() { _ = l.Err() })
	}
}

// remaining counts by the clock that has moved further. l.mu is held.
func (l *Lock) remaining() time.Duration {
	now := time.Now()
	passed, byWall := now.Sub(l.sent), now.Round(0).Sub(l.sent.Round(0))
	if byWall > passed {
		passed = byWall
	}
	return l.valid - passed
}

// end records why the lock is not held any more. l.mu is held.
func (l *Lock) end(reason error) {
	if l.lost == nil {
		l.lost = reason
		if l.timer != nil {
			l.timer.Stop()
		}
		l.cancel()
	}
}

// release gives up what was acquired with this token, or its place in the queue.
func release(ctx context.Context, g *gateways, path, token string) error {
	const timeout = 5 * time.Second
	var released Released
	return g.call(ctx, request{
		method: "POST", path: path + "/release",
		body:    func(time.Duration) any { return Release{Token: token} },
		timeout: timeout, patience: timeout / time.Duration(len(g.addresses)),
	}, &released)
}

func validity(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
