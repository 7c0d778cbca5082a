// The load of `npm run bench etcd`: a client of etcd's API that costs little itself, so that servers show.
//
//	go run load.go -address HOST:PORT -do range|put|watch|watchers [-streams 64] [-connections 1] [-seconds 3] [-keys 10000]
//
// Calls have a deadline each, and random keys. `watch` opens -keys watches on one stream and puts one key every
// millisecond. `watchers` puts -keys keys below each of 10 prefixes; 10 clients watch each prefix, from before the puts
// (with -past: after them, from the revision of the first). It prints lines of JSON: {"type":"measuring"} after a warm-up of a second, and {"type":"result", …}.
package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
)

// bytesCodec passes messages on as they are: what protocol buffers cost a client is not what is measured.
type bytesCodec struct{}

func (bytesCodec) Marshal(v interface{}) ([]byte, error) { return *v.(*[]byte), nil }
func (bytesCodec) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (bytesCodec) Name() string { return "proto" }

type result struct {
	Type   string  `json:"type"`
	Ops    int64   `json:"ops"`
	Errors int64   `json:"errors"`
	P50Ms  float64 `json:"p50Ms"`
	P99Ms  float64 `json:"p99Ms"`
	// Seconds that were measured, where the load itself decides.
	Seconds float64 `json:"seconds,omitempty"`
}

var (
	address     = flag.String("address", "", "of the server")
	do          = flag.String("do", "range", "range, put, watch or watchers")
	connections = flag.Int("connections", 1, "")
	streams     = flag.Int("streams", 64, "calls at a time on each connection")
	seconds     = flag.Float64("seconds", 3, "after the warm-up")
	keys        = flag.Int("keys", 10000, "different keys, or watches")
	fill        = flag.Bool("fill", false, "put all keys first")
	past        = flag.Bool("past", false, "watchers start after the puts")
)

const (
	warmUp   = time.Second
	valueLen = 64
)

func main() {
	flag.Parse()
	if *do == "watchers" {
		watchers()
		return
	}
	conns := make([]*grpc.ClientConn, *connections)
	for i := range conns {
		conns[i] = dial()
	}
	if *fill {
		fillKeys(conns[0])
	}
	if *do == "watch" {
		watch(conns[0])
	} else {
		calls(conns)
	}
}

func dial() *grpc.ClientConn {
	conn, err := grpc.Dial(*address, grpc.WithInsecure(), grpc.WithBlock(), grpc.WithTimeout(10*time.Second),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(bytesCodec{})))
	if err != nil {
		fail(err)
	}
	return conn
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func say(v interface{}) {
	line, _ := json.Marshal(v)
	fmt.Println(string(line))
}

func keyOf(i int) []byte { return []byte(fmt.Sprintf("bench/key/%07d", i)) }

// field appends field `number` of a message, of bytes.
func field(out []byte, number byte, value []byte) []byte {
	out = append(out, number<<3|2)
	var size [binary.MaxVarintLen64]byte
	out = append(out, size[:binary.PutUvarint(size[:], uint64(len(value)))]...)
	return append(out, value...)
}

var value = make([]byte, valueLen)

func putRequest(i int) []byte   { return field(field(nil, 1, keyOf(i)), 2, value) }
func rangeRequest(i int) []byte { return field(nil, 1, keyOf(i)) }

func call(conn *grpc.ClientConn, method string, request []byte, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var response []byte
	return conn.Invoke(ctx, method, &request, &response)
}

func fillKeys(conn *grpc.ClientConn) {
	var wait sync.WaitGroup
	for w := 0; w < 64; w++ {
		wait.Add(1)
		go func(w int) {
			defer wait.Done()
			for i := w; i < *keys; i += 64 {
				if err := call(conn, "/etcdserverpb.KV/Put", putRequest(i), 10*time.Second); err != nil {
					fail(err)
				}
			}
		}(w)
	}
	wait.Wait()
}

func calls(conns []*grpc.ClientConn) {
	method, request := "/etcdserverpb.KV/Range", rangeRequest
	if *do == "put" {
		method, request = "/etcdserverpb.KV/Put", putRequest
	}
	var ops, errors int64
	var measuring, over int32
	var mutex sync.Mutex
	var latencies []float64
	var wait sync.WaitGroup
	for c, conn := range conns {
		for s := 0; s < *streams; s++ {
			wait.Add(1)
			go func(conn *grpc.ClientConn, seed int64) {
				defer wait.Done()
				random := rand.New(rand.NewSource(seed))
				mine := make([]float64, 0, 1<<14)
				for atomic.LoadInt32(&over) == 0 {
					began := time.Now()
					// Each deadline differs, so each header block does.
					timeout := 5*time.Second + time.Duration(random.Intn(1000000))*time.Microsecond
					err := call(conn, method, request(random.Intn(*keys)), timeout)
					if atomic.LoadInt32(&measuring) == 0 {
						continue
					}
					if err != nil {
						atomic.AddInt64(&errors, 1)
						fmt.Fprintln(os.Stderr, err)
						continue
					}
					atomic.AddInt64(&ops, 1)
					mine = append(mine, float64(time.Since(began))/1e6)
				}
				mutex.Lock()
				latencies = append(latencies, mine...)
				mutex.Unlock()
			}(conn, int64(c*1000+s+1))
		}
	}
	time.Sleep(warmUp)
	say(map[string]string{"type": "measuring"})
	atomic.StoreInt32(&measuring, 1)
	time.Sleep(time.Duration(*seconds * float64(time.Second)))
	atomic.StoreInt32(&measuring, 0)
	done := atomic.LoadInt64(&ops)
	say(map[string]string{"type": "measured"})
	atomic.StoreInt32(&over, 1)
	wait.Wait()
	sort.Float64s(latencies)
	say(result{"result", done, errors, quantile(latencies, 0.5), quantile(latencies, 0.99), 0})
}

func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1))]
}

// watch counts events; each put makes one.
func watch(conn *grpc.ClientConn) {
	stream, err := conn.NewStream(context.Background(),
		&grpc.StreamDesc{StreamName: "Watch", ServerStreams: true, ClientStreams: true}, "/etcdserverpb.Watch/Watch")
	if err != nil {
		fail(err)
	}
	for i := 0; i < *keys; i++ {
		request := field(nil, 1, field(nil, 1, keyOf(i)))
		if err := stream.SendMsg(&request); err != nil {
			fail(err)
		}
	}
	var mutex sync.Mutex
	sent := make([]time.Time, *keys)
	var latencies []float64
	var events, created int64
	var measuring int32
	opened := make(chan struct{})
	go func() {
		for {
			var response []byte
			if err := stream.RecvMsg(&response); err != nil {
				fail(err)
			}
			if created < int64(*keys) {
				if created++; created == int64(*keys) {
					close(opened)
				}
				continue
			}
			if atomic.LoadInt32(&measuring) == 0 {
				continue
			}
			mutex.Lock()
			for _, key := range keysIn(response) {
				events++
				latencies = append(latencies, float64(time.Since(sent[key]))/1e6)
			}
			mutex.Unlock()
		}
	}()
	<-opened
	var wait sync.WaitGroup
	end := time.Now().Add(warmUp + time.Duration(*seconds*float64(time.Second)))
	ticker := time.NewTicker(time.Millisecond)
	var errors int64
	begun := time.Now()
	told := false
	for i := 0; time.Now().Before(end); i++ {
		<-ticker.C
		if !told && time.Since(begun) > warmUp {
			told = true
			say(map[string]string{"type": "measuring"})
			atomic.StoreInt32(&measuring, 1)
		}
		key := i % *keys
		mutex.Lock()
		sent[key] = time.Now()
		mutex.Unlock()
		wait.Add(1)
		go func() {
			defer wait.Done()
			if err := call(conn, "/etcdserverpb.KV/Put", putRequest(key), 10*time.Second); err != nil {
				atomic.AddInt64(&errors, 1)
			}
		}()
	}
	wait.Wait()
	time.Sleep(200 * time.Millisecond)
	say(map[string]string{"type": "measured"})
	mutex.Lock()
	done := events
	sort.Float64s(latencies)
	say(result{"result", done, errors, quantile(latencies, 0.5), quantile(latencies, 0.99), 0})
	mutex.Unlock()
}

var prefix = []byte("bench/key/")

// keysIn returns the numbers of the keys in a response; each event has one.
func keysIn(response []byte) []int {
	var keys []int
	for i := 0; i+len(prefix)+7 <= len(response); i++ {
		if string(response[i:i+len(prefix)]) == string(prefix) {
			key := 0
			for _, digit := range response[i+len(prefix) : i+len(prefix)+7] {
				key = 10*key + int(digit-'0')
			}
			keys = append(keys, key)
		}
	}
	return keys
}

const (
	watchedPrefixes   = 10
	watchersPerPrefix = 10
	putsInFlight      = 64
)

// watchers is two rounds of `etcd-runner watcher` without its limit of puts; the first one warms up. Latencies are of
// whole watches: until all keys were seen, from the first put, or with -past from the connection of the first client.
func watchers() {
	putter := dial()
	watchRound(putter, func() {})
	elapsed, latencies := watchRound(putter, func() { say(map[string]string{"type": "measuring"}) })
	say(map[string]string{"type": "measured"})
	sort.Float64s(latencies)
	events := int64(watchedPrefixes * watchersPerPrefix * *keys)
	say(result{"result", events, 0, quantile(latencies, 0.5), quantile(latencies, 0.99), elapsed})
}

// watchRound returns the seconds until all watches have seen all keys, and the milliseconds of each. It calls measuring
// when they begin.
func watchRound(putter *grpc.ClientConn, measuring func()) (float64, []float64) {
	round := fmt.Sprintf("round/%d/", time.Now().UnixNano())
	under := func(p int) string { return fmt.Sprintf("%s%d/", round, p) }
	first := revisionOf(putter, []byte(round)) + 1
	var created, seen sync.WaitGroup
	created.Add(watchedPrefixes * watchersPerPrefix)
	seen.Add(watchedPrefixes * watchersPerPrefix)
	var mutex sync.Mutex
	var latencies []float64
	var began time.Time
	open := func(start uint64) {
		for p := 0; p < watchedPrefixes; p++ {
			for w := 0; w < watchersPerPrefix; w++ {
				go func(p int) {
					watchAll(under(p), start, created.Done)
					mutex.Lock()
					latencies = append(latencies, float64(time.Since(began))/1e6)
					mutex.Unlock()
					seen.Done()
				}(p)
			}
		}
	}
	begin := func() {
		measuring()
		began = time.Now()
	}
	if *past {
		putAll(putter, under)
		begin()
		open(first)
	} else {
		open(0)
		created.Wait()
		begin()
		putAll(putter, under)
	}
	seen.Wait()
	return time.Since(began).Seconds(), latencies
}

func putAll(conn *grpc.ClientConn, under func(int) string) {
	var wait sync.WaitGroup
	total := watchedPrefixes * *keys
	for s := 0; s < putsInFlight; s++ {
		wait.Add(1)
		go func(s int) {
			defer wait.Done()
			for i := s; i < total; i += putsInFlight {
				key := append([]byte(under(i%watchedPrefixes)), keyOf(i/watchedPrefixes)...)
				if err := call(conn, "/etcdserverpb.KV/Put", field(field(nil, 1, key), 2, value), time.Minute); err != nil {
					fail(err)
				}
			}
		}(s)
	}
	wait.Wait()
}

// watchAll returns when a client of its own has seen every key once; keys are put only once.
func watchAll(under string, start uint64, created func()) {
	conn := dial()
	stream, err := conn.NewStream(context.Background(),
		&grpc.StreamDesc{StreamName: "Watch", ServerStreams: true, ClientStreams: true}, "/etcdserverpb.Watch/Watch")
	if err != nil {
		fail(err)
	}
	end := []byte(under)
	end[len(end)-1]++
	create := field(field(nil, 1, []byte(under)), 2, end)
	if start > 0 {
		var number [binary.MaxVarintLen64]byte
		create = append(append(create, 3<<3), number[:binary.PutUvarint(number[:], start)]...)
	}
	request := field(nil, 1, create)
	if err := stream.SendMsg(&request); err != nil {
		fail(err)
	}
	seen := make(map[int]bool, *keys)
	for n := 0; len(seen) < *keys; n++ {
		var response []byte
		if err := stream.RecvMsg(&response); err != nil {
			fail(err)
		}
		if n == 0 {
			created()
		}
		for _, key := range keysIn(response) {
			seen[key] = true
		}
	}
	conn.Close()
}

// revisionOf puts a key and returns the revision in the header of the response: field 3 of field 1.
func revisionOf(conn *grpc.ClientConn, key []byte) uint64 {
	request := field(nil, 1, key)
	var response []byte
	if err := conn.Invoke(context.Background(), "/etcdserverpb.KV/Put", &request, &response); err != nil {
		fail(err)
	}
	size, n := binary.Uvarint(response[1:])
	header := response[1+n : 1+n+int(size)]
	for len(header) > 0 {
		number, n := binary.Uvarint(header[1:])
		if header[0] == 3<<3 {
			return number
		}
		header = header[1+n:]
	}
	fail(fmt.Errorf("no revision in the header %x", response))
	return 0
}
