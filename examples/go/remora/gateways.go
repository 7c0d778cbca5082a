package remora

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mrand "math/rand"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// Options of a client. Credentials are User and Password, a Token, or a client certificate.
type Options struct {
	// Addresses of gateways, such as https://10.0.0.1:7482. A call goes to the next one when one fails.
	Addresses []string
	// Namespace of the locks. Default: "default".
	Namespace string
	// Timeout of one call, at most 25 s, because a repeated change is recognized for half a minute. Default: 10 s.
	Timeout        time.Duration
	User, Password string
	Token          string
	// CAFile has the certificate of the authority that the gateways' certificates come from. PEM.
	CAFile string
	// CertFile and KeyFile are the client's own certificate and key. PEM.
	CertFile, KeyFile string
}

const (
	timeoutMax = 25 * time.Second
	pause      = 100 * time.Millisecond
	pauseMax   = time.Second
)

// gateways sends calls to the gateways of one cluster.
//
// G1. A call goes to one gateway after another until one of them answers it, or its time is over.
// G2. Only calls that may be repeated come here: they read, or carry an identity (a lock's token, a requestId), so that
// the cluster carries them out once however often they are sent.
// G3. When the time is over, ErrUnavailable means that nothing was changed. If an attempt may have reached the cluster
// and its answer was lost, the error is ErrUnknownOutcome.
type gateways struct {
	addresses     []string
	authorization string
	http          *http.Client
	current       atomic.Int64
}

// request is one call. The body may depend on the time that is left.
type request struct {
	method, path string
	body         func(left time.Duration) any
	timeout      time.Duration
	// patience is the time for one gateway.
	patience time.Duration
}

func newGateways(o Options) (*gateways, error) {
	g := &gateways{authorization: authorization(o)}
	if len(o.Addresses) == 0 {
		return nil, errors.New("remora: name at least one gateway, such as http://127.0.0.1:7482")
	}
	for _, address := range o.Addresses {
		base, err := baseOf(address)
		if err != nil {
			return nil, err
		}
		if g.authorization != "" && isReadableByOthers(base) {
			return nil, fmt.Errorf("remora: %s would get the password or token in plain text: use https://", address)
		}
		g.addresses = append(g.addresses, base.String())
	}
	config, err := tlsConfig(o)
	if err != nil {
		return nil, err
	}
	// Node.js closes an idle connection after 5 s; a call on a connection that is just being closed loses its answer.
	transport := &http.Transport{TLSClientConfig: config, IdleConnTimeout: 3 * time.Second, MaxIdleConnsPerHost: 8}
	g.http = &http.Client{Transport: transport}
	return g, nil
}

// call fills in the answer (G1).
func (g *gateways) call(ctx context.Context, r request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	isUnknown := false
	last := errors.New("there was no time to ask a gateway")
	for tries := 1; ctx.Err() == nil; tries++ {
		at := g.current.Load()
		status, sent, err := g.try(ctx, at, r, answer)
		switch {
		case err == nil:
			return nil
		case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable: // nothing was changed
		case status == 0 || (status >= 500 && status != http.StatusNotImplemented): // no answer, or none that tells
			isUnknown = isUnknown || sent
		case isUnknown && (status == 400 || status == 401 || status == 403):
			// It says nothing about an earlier attempt, whose answer was lost.
			return &outcomeError{ErrUnknownOutcome, err}
		default:
			return err
		}
		last = err
		g.leave(at)
		if tries%len(g.addresses) == 0 {
			sleep(ctx, time.Duration(tries)*pause)
		}
	}
	if isUnknown {
		return &outcomeError{ErrUnknownOutcome, last}
	}
	return &outcomeError{ErrUnavailable, last}
}

func (g *gateways) try(ctx context.Context, at int64, r request, answer any) (status int, sent bool, err error) {
	end, _ := ctx.Deadline()
	ctx, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	var content []byte
	if r.body != nil {
		if content, err = json.Marshal(r.body(time.Until(end))); err != nil {
			return 0, false, err
		}
	}
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { sent = true }}
	response, err := g.ask(httptrace.WithClientTrace(ctx, trace), at, r.method, r.path, bytes.NewReader(content))
	if err != nil {
		return 0, sent, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, true, err
	}
	if response.StatusCode != http.StatusOK {
		if err := refusalOf(response.Status, data); err.Code != "" {
			return response.StatusCode, true, err
		}
		return 0, true, fmt.Errorf("status %s, from something that is not Remora", response.Status)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		return 0, true, err
	}
	return http.StatusOK, true, nil
}

func (g *gateways) ask(ctx context.Context, at int64, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, g.addresses[at]+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("content-type", "application/json")
	if g.authorization != "" {
		req.Header.Set("authorization", g.authorization)
	}
	return g.http.Do(req)
}

// leave makes the next call begin at another gateway, unless a call has changed that meanwhile.
func (g *gateways) leave(at int64) {
	g.current.CompareAndSwap(at, (at+1)%int64(len(g.addresses)))
}

func sleep(ctx context.Context, d time.Duration) {
	if d > pauseMax {
		d = pauseMax
	}
	select {
	case <-ctx.Done():
	case <-time.After(d/2 + time.Duration(mrand.Int63n(int64(d/2)))):
	}
}

func baseOf(address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	base, err := url.Parse(strings.TrimSuffix(address, "/"))
	if err != nil || base.Hostname() == "" || base.Path != "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("remora: %s is no address of a gateway; one is like https://10.0.0.1:7482", address)
	}
	if base.Port() == "" {
		base.Host = net.JoinHostPort(base.Hostname(), "7482")
	}
	return base, nil
}

func isReadableByOthers(base *url.URL) bool {
	ip := net.ParseIP(base.Hostname())
	return base.Scheme == "http" && base.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback())
}

func authorization(o Options) string {
	switch {
	case o.Token != "":
		return "Bearer " + o.Token
	case o.User != "":
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(o.User+":"+o.Password))
	}
	return ""
}

func tlsConfig(o Options) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.CAFile != "" {
		pem, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("remora: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("remora: %s has no certificate in PEM", o.CAFile)
		}
	}
	if o.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("remora: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// newID returns an identity that nobody can guess.
func newID() string {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		panic(err) // the system has no randomness
	}
	return fmt.Sprintf("%x", id)
}
