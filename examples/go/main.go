// Uses Remora's locks and keys from Go: go run . help
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"example.com/remora/remora"
)

const usage = `Locks and keys of Remora.

  hold [--wait 5s] [--ttl 10s] NAME      holds a lock until standard input ends
  count NAME KEY TIMES                   increments a number under a lock
  get KEY
  put [--if-mod-revision N] KEY VALUE
  watch [--since REVISION] PREFIX
  check NAME VERSION

Environment: REMORA_HTTP (gateways, separated by commas), REMORA_USER and REMORA_PASSWORD or REMORA_TOKEN; REMORA_CA,
REMORA_CERT and REMORA_KEY (files); REMORA_TIMEOUT (seconds for one call).
`

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet(args[0], flag.ExitOnError)
	wait := flags.Duration("wait", 0, "how long to wait for the lock")
	ttl := flags.Duration("ttl", 10*time.Second, "how long the lock outlives its last renewal")
	since := flags.Int64("since", 0, "begin after this revision")
	ifModRevision := flags.Int64("if-mod-revision", -1, "write only if the key is unchanged since this revision")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	client, err := remora.New(options())
	if err != nil {
		return err
	}
	given := flags.Args()
	switch name := fmt.Sprintf("%s/%d", args[0], len(given)); name {
	case "hold/1":
		return hold(ctx, client, given[0], *wait, *ttl)
	case "count/3":
		return count(ctx, client, given[0], given[1], given[2])
	case "get/1":
		read, err := client.Get(ctx, given[0])
		if err == nil {
			fmt.Printf("%s revision %d\n", read.Value, read.ModRevision)
		}
		return err
	case "put/2":
		return put(ctx, client, given[0], given[1], *ifModRevision)
	case "watch/1":
		return client.Watch(ctx, given[0], *since, func(change remora.Change) error {
			value := ""
			if change.Value != nil {
				value = string(*change.Value)
			}
			_, err := fmt.Printf("%s %s %s\n", change.Type, change.Key, value)
			return err
		})
	case "check/2":
		return check(ctx, client, given[0], given[1])
	}
	return errors.New(usage)
}

func options() remora.Options {
	addresses := os.Getenv("REMORA_HTTP")
	if addresses == "" {
		addresses = "http://127.0.0.1:7482"
	}
	timeout, _ := strconv.Atoi(os.Getenv("REMORA_TIMEOUT")) // 0: the default
	return remora.Options{
		Addresses: strings.Split(addresses, ","),
		Timeout:   time.Duration(timeout) * time.Second,
		User:      os.Getenv("REMORA_USER"),
		Password:  os.Getenv("REMORA_PASSWORD"),
		Token:     os.Getenv("REMORA_TOKEN"),
		CAFile:    os.Getenv("REMORA_CA"),
		CertFile:  os.Getenv("REMORA_CERT"),
		KeyFile:   os.Getenv("REMORA_KEY"),
	}
}

func hold(ctx context.Context, client *remora.Client, name string, wait, ttl time.Duration) error {
	lock, err := client.Acquire(ctx, name, remora.Wait(wait), remora.TTL(ttl))
	if err != nil {
		return err
	}
	fmt.Printf("held %s version %d\n", name, lock.Version())
	over := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(over)
	}()
	select {
	case <-lock.Context().Done():
		fmt.Printf("lost %s version %d valid-until %d\n", name, lock.Version(), lock.ValidUntil().UnixMilli())
		return lock.Err()
	case <-over:
	}
	if err := lock.Release(ctx); err != nil {
		return err
	}
	fmt.Printf("released %s\n", name)
	return nil
}

// count increments a number under a lock. Without the lock, programs would overwrite each other's changes.
func count(ctx context.Context, client *remora.Client, name, key, times string) error {
	left, err := strconv.Atoi(times)
	for ; err == nil && left > 0; left-- {
		err = countOnce(ctx, client, name, key)
	}
	return err
}

func countOnce(ctx context.Context, client *remora.Client, name, key string) error {
	lock, err := client.Acquire(ctx, name, remora.Wait(time.Minute))
	if err != nil {
		return err
	}
	defer lock.Release(ctx)
	// The context ends with the lock, and with it the calls.
	read, err := client.Get(lock.Context(), key)
	if errors.Is(err, remora.ErrKeyNotFound) {
		read, err = &remora.KvRead{Value: remora.Bytes("0")}, nil
	}
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(string(read.Value))
	if err != nil {
		return err
	}
	// A process that is paused here, and loses the lock, finds that the next holder has changed the key.
	if _, err := client.PutIf(lock.Context(), key, []byte(strconv.Itoa(number+1)), read.ModRevision); err != nil {
		return err
	}
	fmt.Printf("counted %d version %d\n", number+1, lock.Version())
	return nil
}

func put(ctx context.Context, client *remora.Client, key, value string, ifModRevision int64) (err error) {
	var revision int64
	if ifModRevision < 0 {
		revision, err = client.Put(ctx, key, []byte(value))
	} else {
		revision, err = client.PutIf(ctx, key, []byte(value), ifModRevision)
	}
	var refusal *remora.Error
	if errors.Is(err, remora.ErrKeyChanged) && errors.As(err, &refusal) && refusal.Current != nil {
		return fmt.Errorf("changed by others at revision %d", refusal.Current.ModRevision)
	}
	if err == nil {
		fmt.Printf("revision %d\n", revision)
	}
	return err
}

func check(ctx context.Context, client *remora.Client, name, version string) error {
	number, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		return err
	}
	isCurrent, err := client.CheckVersion(ctx, name, number)
	switch {
	case err != nil:
		return err
	case isCurrent:
		fmt.Println("current")
	default:
		fmt.Println("stale")
	}
	return nil
}
