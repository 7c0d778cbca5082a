// Package remora is a client of Remora's locks and keys. Copy this folder into your module; it needs nothing else.
package remora

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Client talks to one cluster. Goroutines may share it.
type Client struct {
	gateways  *gateways
	namespace string
	timeout   time.Duration
}

// New returns a client. It does not connect yet.
func New(o Options) (*Client, error) {
	if o.Namespace == "" {
		o.Namespace = "default"
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.Timeout < 0 || o.Timeout > timeoutMax {
		return nil, fmt.Errorf("remora: Timeout must be above 0 and at most %v", timeoutMax)
	}
	g, err := newGateways(o)
	if err != nil {
		return nil, err
	}
	return &Client{gateways: g, namespace: o.Namespace, timeout: o.Timeout}, nil
}

// AcquireOption changes how a lock is acquired.
type AcquireOption func(*acquireOptions)

type acquireOptions struct{ wait, ttl time.Duration }

// Wait is how long to wait while others hold the lock, at most 10 minutes. Default: not at all.
func Wait(d time.Duration) AcquireOption { return func(o *acquireOptions) { o.wait = d } }

// TTL is how long the lock outlives its last renewal, at least a second. Default: 10 s.
func TTL(d time.Duration) AcquireOption { return func(o *acquireOptions) { o.ttl = d } }

// Acquire acquires a lock. ErrLockBusy: others held it. ErrUnavailable: not acquired. ErrUnknownOutcome: nobody can be
// told to give it back; if it was granted, it ends with its TTL.
func (c *Client) Acquire(ctx context.Context, name string, options ...AcquireOption) (*Lock, error) {
	o := acquireOptions{ttl: 10 * time.Second}
	for _, set := range options {
		set(&o)
	}
	if o.wait < 0 || o.wait > 10*time.Minute {
		return nil, errors.New("remora: Wait must be 0 to 10 minutes")
	}
	path := "/v1/locks/" + escaped(c.namespace) + "/" + escaped(name)
	token := newID()
	body := func(left time.Duration) any {
		acquire := Acquire{Token: token, TTL: millis(o.ttl)}
		if o.wait > 0 {
			acquire.Wait = millis(left - c.timeout) // the rest is for gateways that fail
		}
		return acquire
	}
	// A gateway that does not answer for half the TTL is left: another one finds the place by the token.
	call := request{method: "POST", path: path + "/acquire", body: body, timeout: o.wait + c.timeout, patience: o.ttl / 2}
	var grant Grant
	err := c.gateways.call(ctx, call, &grant)
	var lock *Lock
	if err == nil {
		lock, err = newLock(ctx, c.gateways, path, grant)
	}
	if err != nil {
		return nil, c.giveBack(path, token, err)
	}
	return lock, nil
}

// giveBack gives up what an acquire that failed may still wait for or hold, also if its context is over.
func (c *Client) giveBack(path, token string, err error) error {
	cause := release(context.Background(), c.gateways, path, token)
	if cause != nil && (errors.Is(err, ErrLockBusy) || errors.Is(err, ErrUnavailable)) {
		return &outcomeError{ErrUnknownOutcome, fmt.Errorf("%w; it could not be given up: %v", err, cause)}
	}
	if cause == nil && errors.Is(err, ErrUnknownOutcome) {
		return &outcomeError{ErrUnavailable, fmt.Errorf("not acquired: %w", errors.Unwrap(err))}
	}
	return err
}

// CheckVersion tells whether the lock is held by the grant with this version. For diagnosis: it may change at once.
func (c *Client) CheckVersion(ctx context.Context, name string, version int64) (bool, error) {
	item := CheckCheck{Namespace: c.namespace, Name: Bytes(name), Version: version}
	var checked Checked
	if err := c.call(ctx, "POST", "/v1/check", Check{Checks: []CheckCheck{item}}, &checked); err != nil {
		return false, err
	}
	return len(checked.Current) == 1 && checked.Current[0], nil
}

// Get reads a key. ErrKeyNotFound: there is no such key.
func (c *Client) Get(ctx context.Context, key string) (*KvRead, error) {
	var read KvRead
	if err := c.call(ctx, "GET", "/v1/kv/"+escaped(key), nil, &read); err != nil {
		return nil, err
	}
	return &read, nil
}

// Put writes a key and returns its new revision. The call has a request id, so that a repeated attempt is carried out
// once.
func (c *Client) Put(ctx context.Context, key string, value []byte) (int64, error) {
	return c.put(ctx, key, KvPut{Value: value})
}

// PutIf writes a key only if it is unchanged since it was read at this ModRevision (0: only if it is absent), and
// returns ErrKeyChanged otherwise.
func (c *Client) PutIf(ctx context.Context, key string, value []byte, modRevision int64) (int64, error) {
	return c.put(ctx, key, KvPut{Value: value, IfModRevision: &modRevision})
}

func (c *Client) put(ctx context.Context, key string, put KvPut) (int64, error) {
	put.RequestID = newID()
	var done KvPutDone
	err := c.call(ctx, "PUT", "/v1/kv/"+escaped(key), put, &done)
	return done.ModRevision, err
}

func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	r := request{method: method, path: path, timeout: c.timeout}
	r.patience = c.timeout / time.Duration(len(c.gateways.addresses))
	if body != nil {
		r.body = func(time.Duration) any { return body }
	}
	return c.gateways.call(ctx, r, answer)
}

func escaped(name string) string {
	return strings.ReplaceAll(url.QueryEscape(name), "+", "%20")
}

func millis(d time.Duration) *float64 {
	ms := float64(d.Milliseconds())
	if ms < 1 {
		ms = 1
	}
	return &ms
}
