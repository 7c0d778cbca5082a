"""Uses Remora's locks and keys from Python: `python3 example.py --help`."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from typing import Callable

from remora import Client, KeyChanged, LockLost, RemoraError


def hold(client: Client, name: str, wait: float, ttl: float) -> None:
    """Holds a lock until standard input ends."""
    over = threading.Event()

    def read() -> None:
        sys.stdin.read()
        over.set()

    threading.Thread(target=read, daemon=True).start()
    with client.lock(name, wait=wait, ttl=ttl) as lock:
        print(f"held {name} version {lock.version}", flush=True)
        while not over.is_set():
            if lock.lost.wait(0.05):
                print(f"lost {name} version {lock.version} valid-until {lock.valid_until_ms}", flush=True)
                raise LockLost("LOCK_NOT_HELD", lock.lost.reason)
    print(f"released {name}", flush=True)


def count(client: Client, name: str, key: str, times: int) -> None:
    """Increments a number under a lock. Without the lock, programs would overwrite each other's changes."""
    for _ in range(times):
        with client.lock(name, wait=60) as lock:
            pair = client.get(key)
            number = int(pair.value) if pair else 0
            lock.raise_if_lost()  # the work so far may have taken long
            # A process that is paused here, and loses the lock, finds that the next holder has changed the key.
            client.put(key, str(number + 1), if_mod_revision=pair.mod_revision if pair else 0)
            print(f"counted {number + 1} version {lock.version}", flush=True)


def put(client: Client, key: str, value: str, if_mod_revision: int | None) -> None:
    try:
        print(f"revision {client.put(key, value, if_mod_revision=if_mod_revision)}")
    except KeyChanged as error:
        current = error.details["current"]
        sys.exit(f"changed by others at revision {current['modRevision'] if current else 'unknown: it is absent'}")


def get(client: Client, key: str) -> None:
    pair = client.get(key)
    if pair is None:
        sys.exit(f"{key} is absent")
    print(f"{pair.value.decode(errors='backslashreplace')} revision {pair.mod_revision}")


def watch(client: Client, prefix: str, since: int | None) -> None:
    for change in client.watch(prefix, since=since):
        kind = "delete" if change.value is None else "put"
        print(f"{kind} {change.key!s} {(change.value or b'').decode()}", flush=True)


def check(client: Client, name: str, version: int) -> None:
    print("current" if client.check_version(name, version) else "stale")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Locks and keys of Remora.",
        epilog="Environment: REMORA_HTTP (gateways, separated by commas), REMORA_USER and REMORA_PASSWORD or "
        "REMORA_TOKEN; REMORA_CA, REMORA_CERT and REMORA_KEY (files); REMORA_TIMEOUT (seconds for one call).",
    )
    commands = parser.add_subparsers(required=True)

    def command(run: Callable[..., None], *arguments: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(run.__name__, help=run.__doc__)
        for argument in arguments:
            sub.add_argument(argument, type=int if argument in ("times", "version") else str)
        sub.set_defaults(run=run)
        return sub

    holding = command(hold, "name")
    holding.add_argument("--wait", type=float, default=0.0, help="seconds to wait for the lock")
    holding.add_argument("--ttl", type=float, default=10.0, help="seconds that the lock outlives its last renewal")
    command(count, "name", "key", "times")
    command(get, "key")
    command(put, "key", "value").add_argument("--if-mod-revision", type=int)
    command(watch, "prefix").add_argument("--since", type=int)
    command(check, "name", "version")
    arguments = vars(parser.parse_args())
    run = arguments.pop("run")
    env = os.environ.get
    client = Client(
        env("REMORA_HTTP", "http://127.0.0.1:7482").split(","),
        timeout=float(env("REMORA_TIMEOUT", "10")),
        user=env("REMORA_USER"),
        password=env("REMORA_PASSWORD"),
        token=env("REMORA_TOKEN"),
        ca_file=env("REMORA_CA"),
        cert_file=env("REMORA_CERT"),
        key_file=env("REMORA_KEY"),
    )
    try:
        run(client, **arguments)
    except RemoraError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
