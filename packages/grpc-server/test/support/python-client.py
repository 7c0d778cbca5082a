"""The contract of a gRPC server, seen through Python's grpcio (grpc-core).

Usage: python3 python-client.py PORT
Prints one line of JSON for each case: its name, and what was wrong with it or null.
"""
import json
import sys
import threading
import time

import grpc

ADDRESS = f"127.0.0.1:{sys.argv[1]}"
OPTIONS = [("grpc.max_receive_message_length", 64 << 20), ("grpc.use_local_subchannel_pool", 1)]
CASES = []


def case(check):
    CASES.append(check)
    return check


class Client:
    def __init__(self, options=(), **more):
        self.channel = grpc.insecure_channel(ADDRESS, [*OPTIONS, *options], **more)
        path = "/test.Contract/"
        self.echo = self.channel.unary_unary(path + "Echo")
        self.unary = self.channel.unary_unary(path + "Unary")
        self.collect = self.channel.stream_unary(path + "Collect")
        self.produce = self.channel.unary_stream(path + "Produce")
        self.chat = self.channel.stream_stream(path + "Chat")
        self.missing = self.channel.unary_unary(path + "Missing")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()


def instructions(**fields):
    return json.dumps(fields).encode()


def expect(got, wanted, what):
    assert got == wanted, f"{what}: {got!r} instead of {wanted!r}"


def failure(call):
    try:
        call()
    except grpc.RpcError as error:
        return error
    raise AssertionError("the call did not fail")


@case
def unary_calls_of_all_sizes():
    with Client() as client:
        for size in [0, 1, 1000, 16379, 65535, 65536, 1_000_000, 4 << 20]:
            expect(client.echo(b"x" * size), b"x" * size, f"{size} bytes")


@case
def many_calls_at_once():
    with Client() as client:
        calls = [client.echo.future(bytes([index % 256]) * (index * 13 % 3000)) for index in range(500)]
        for index, call in enumerate(calls):
            expect(call.result(), bytes([index % 256]) * (index * 13 % 3000), f"call {index}")


@case
def statuses_with_details_and_trailers():
    with Client() as client:
        for code in grpc.StatusCode:
            number = code.value[0]
            if number == 0:
                continue
            wanted = f"Grüße, {number} % 世界\n"
            request = instructions(fail={"code": number, "message": wanted}, trailers=[["x-bytes-bin", "AAH/"]])
            error = failure(lambda: client.unary(request))
            expect(error.code(), code, "code")
            expect(error.details(), wanted, "details")
            expect(dict(error.trailing_metadata())["x-bytes-bin"], b"\x00\x01\xff", "trailer")


@case
def unknown_methods_are_unimplemented():
    with Client() as client:
        expect(failure(lambda: client.missing(b"")).code(), grpc.StatusCode.UNIMPLEMENTED, "code")


@case
def metadata_both_ways():
    with Client() as client:
        sent = (("x-text", "value"), ("x-many", "a"), ("x-many", "b"), ("x-bytes-bin", b"\x00\xff"))
        answer, call = client.unary.with_call(instructions(reflect=True, head=[["x-head", "h"]]), metadata=sent)
        got = [tuple(pair) for pair in json.loads(answer)["metadata"]]
        assert ("x-text", "value") in got, got
        assert ("x-bytes-bin", "AP8=") in got, got
        expect(dict(call.initial_metadata())["x-head"], "h", "initial metadata")


@case
def deadlines():
    with Client() as client:
        left = json.loads(client.unary(instructions(reflect=True), timeout=60))["deadlineMs"]
        # grpc-core rounds a timeout up.
        assert 30_000 < left < 62_000, left
        error = failure(lambda: client.unary(instructions(wait=True), timeout=0.2))
        expect(error.code(), grpc.StatusCode.DEADLINE_EXCEEDED, "code")


@case
def cancellation():
    with Client() as client:
        call = client.unary.future(instructions(wait=True))
        client.echo(b"")
        assert call.cancel()
        expect(client.echo(b"next"), b"next", "next call")


@case
def client_streams():
    with Client() as client:
        answer = client.collect(b"x" * 1000 for _ in range(3000))
        expect(json.loads(answer), {"count": 3000, "bytes": 3_000_000}, "answer")
        expect(json.loads(client.collect(iter([b"one", b"stop"]))), {"count": 2, "bytes": 7}, "early answer")
        expect(json.loads(client.collect(iter([]))), {"count": 0, "bytes": 0}, "no message")


@case
def server_streams_read_slowly():
    with Client() as client:
        count = 0
        for message in client.produce(instructions(count=400, bytes=50_000)):
            expect(len(message), 50_000, "length")
            count += 1
            if count % 100 == 0:
                time.sleep(0.05)
        expect(count, 400, "messages")


@case
def server_streams_that_fail():
    with Client() as client:
        call = client.produce(instructions(count=3, bytes=10, fail={"code": 10, "message": "at the end"}))
        got = []

        def read():
            got.extend(call)

        expect(failure(read).code(), grpc.StatusCode.ABORTED, "code")
        expect(len(got), 3, "messages")


@case
def server_streams_that_are_cancelled():
    with Client() as client:
        call = client.produce(instructions(count=1_000_000, bytes=1000))
        next(call)
        call.cancel()
        expect(client.echo(b"next"), b"next", "next call")


@case
def streams_in_both_directions():
    with Client() as client:
        turn = threading.Semaphore(1)

        def requests():
            for index in range(300):
                turn.acquire()
                yield b"%d" % index

        for index, answer in enumerate(client.chat(requests())):
            expect(answer, b"%d" % index, "answer")
            turn.release()
        answers = list(client.chat(b"y" * (index * 37 % 5000) for index in range(2000)))
        expect([len(answer) for answer in answers], [index * 37 % 5000 for index in range(2000)], "lengths")


@case
def compression_by_gzip():
    with Client(compression=grpc.Compression.Gzip) as client:
        for size in [0, 100, 500_000]:
            expect(client.echo(b"again" * size), b"again" * size, f"{size} times")


@case
def pings_of_a_client_that_measures_its_bandwidth():
    # grpc-core pings as often as it reads much. Pings that keep a connection alive come on top.
    options = [("grpc.keepalive_time_ms", 10_000), ("grpc.http2.bdp_probe", 1)]
    with Client(options) as client:
        until = time.monotonic() + 2
        while time.monotonic() < until:
            total = sum(len(message) for message in client.produce(instructions(count=50, bytes=20_000)))
            expect(total, 1_000_000, "bytes")
            expect(client.echo(b"x" * 300_000), b"x" * 300_000, "echo")


for check in CASES:
    try:
        check()
        problem = None
    except Exception as error:  # every problem of a case is a result
        problem = f"{type(error).__name__}: {error}"
    print(json.dumps({"name": check.__name__, "problem": problem}), flush=True)
