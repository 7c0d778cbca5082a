package remora

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// lockAt returns a lock whose last renewal was sent so long ago, at a gateway that answers renewals.
func lockAt(t *testing.T, ago time.Duration) *Lock {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"session":"ab.1","ttlMs":70000,"validMs":60000}`)
	}))
	t.Cleanup(server.Close)
	g, err := newGateways(Options{Addresses: []string{server.URL}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Lock{gateways: g, ctx: ctx, cancel: cancel, sent: time.Now().Add(-ago), valid: time.Minute}
}

func TestTheClockAloneTellsThatALockIsLost(t *testing.T) {
	lock := lockAt(t, 2*time.Minute) // as if the process was paused: no timer has fired
	if err := lock.Err(); !errors.Is(err, ErrLockLost) {
		t.Errorf("Err() = %v, want ErrLockLost", err)
	}
	if lock.Context().Err() == nil {
		t.Error("the context is not canceled")
	}
}

func TestALateRenewalDoesNotBringALockBack(t *testing.T) {
	lock := lockAt(t, 2*time.Minute)
	lock.renew(context.Background(), time.Minute)
	if err := lock.Err(); !errors.Is(err, ErrLockLost) {
		t.Errorf("Err() = %v, want ErrLockLost", err)
	}
}

func TestARenewalExtendsALock(t *testing.T) {
	lock := lockAt(t, 50*time.Second)
	lock.renew(context.Background(), time.Minute)
	if left := time.Until(lock.ValidUntil()); left < 30*time.Second {
		t.Errorf("valid for %v after a renewal, want about a minute", left)
	}
	if err := lock.Err(); err != nil {
		t.Error(err)
	}
}
