package remora

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// silence is how long a stream may say nothing. One that is alive has a line every 15 s.
const silence = 40 * time.Second

// Change is a change of a key. Type is "put" or "delete".
type Change = KvEventChangesEvent

// Watch calls back for the changes of all keys with the prefix, each once and in order, from after the revision since,
// or from now on if it is 0. It continues at another gateway where a stream has ended. It returns when the context is
// over, when onChange returns an error, and with ErrCompacted if changes since then are gone: read the keys again.
func (c *Client) Watch(ctx context.Context, prefix string, since int64, onChange func(Change) error) error {
	path := "/v1/kv-events?prefix=" + escaped(prefix)
	w := watch{since: since, onChange: onChange}
	for ctx.Err() == nil {
		from := path
		if w.since > 0 {
			from += "&since=" + strconv.FormatInt(w.since, 10)
		}
		if err := w.follow(ctx, c.gateways, from); !errors.Is(err, errStreamEnded) {
			return err
		}
		sleep(ctx, 2*pause)
	}
	return ctx.Err()
}

var errStreamEnded = errors.New("remora: the stream has ended")

type watch struct {
	since    int64
	onChange func(Change) error
}

// follow reads one stream of server-sent events, from one gateway.
func (w *watch) follow(ctx context.Context, g *gateways, path string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	at := g.current.Load()
	response, err := g.ask(ctx, at, "GET", path, nil)
	if err != nil {
		g.leave(at)
		return errStreamEnded
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		g.leave(at)
		if response.StatusCode == 429 || response.StatusCode >= 503 {
			return errStreamEnded
		}
		body, _ := io.ReadAll(response.Body)
		return refusalOf(response.Status, body)
	}
	lines, event := bufio.NewReader(response.Body), ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			g.leave(at)
			return errStreamEnded
		}
		quiet.Reset(silence)
		field, rest, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ": ")
		switch field {
		case "event":
			event = rest
		case "data":
			if err := w.handle(event, []byte(rest)); err != nil {
				return err
			}
		}
	}
}

func (w *watch) handle(event string, data []byte) error {
	if event == "error" {
		return refusalOf(event, data)
	}
	var changes KvEventChanges // other events have the revision only
	if err := json.Unmarshal(data, &changes); err != nil {
		return err
	}
	for _, change := range changes.Events {
		if err := w.onChange(change); err != nil {
			return err
		}
	}
	if changes.Revision > w.since {
		w.since = changes.Revision
	}
	return nil
}

// Bytes is sent as text where it is UTF-8, and as base64 otherwise.
type Bytes []byte

type encodedBytes struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		return json.Marshal(string(b))
	}
	return json.Marshal(map[string]string{"base64": base64.StdEncoding.EncodeToString(b)})
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*b = Bytes(text)
		return nil
	}
	var encoded encodedBytes
	err := json.Unmarshal(data, &encoded)
	*b = encoded.Base64
	return err
}
