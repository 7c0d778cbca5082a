// The floor to measure against: what a replicated, fsynced acquire+release costs on this machine with nothing but
// the parts that cannot be left out. Four processes: a client, a leader and two followers. Batched gRPC streams, one
// log write + fdatasync per batch on each replica, the reply after a quorum, a Map as state machine. No elections,
// terms, ranges, sessions, checks or recovery: it is a yardstick, not a design.
//
//   node bench/bare-pipeline.mjs [--inflight 1,64,256] [--seconds 4]
//
// By itself it prints one JSON line per level: cycles/s (a cycle is acquire + release), p50/p99 ms. `pnpm bench` runs
// the same roles (in the environment: BARE_ROLE) and measures their processes from outside.
import { fork } from 'node:child_process';
import { fdatasync, mkdtempSync, openSync, rmSync, writev } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client, credentials, Server, ServerCredentials } from '@grpc/grpc-js';
import { Packr } from 'msgpackr';

const packr = new Packr({ useRecords: false });
const pack = (value) => packr.pack(value);
const unpack = (bytes) => packr.unpack(bytes);
const limits = { 'grpc.max_receive_message_length': 1 << 26, 'grpc.max_send_message_length': 1 << 26 };
const service = {
  Pipe: {
    path: '/bare/Pipe',
    requestStream: true,
    responseStream: true,
    requestSerialize: pack,
    requestDeserialize: unpack,
    responseSerialize: pack,
    responseDeserialize: unpack,
  },
};
const ACQUIRE = 0;
const RELEASE = 1;
const VALUE = 'x'.repeat(64);
const WARM_UP_MS = 1500;

/** One write and one fdatasync under way at a time; what arrives meanwhile forms the next batch. */
function openLog(path) {
  const fd = openSync(path, 'w');
  let waiting = [];
  let busy = false;
  const fail = (error) => {
    if (error) throw error;
  };
  const flush = () => {
    busy = true;
    const batch = waiting;
    waiting = [];
    const synced = (error) => {
      fail(error);
      busy = false;
      for (const { done } of batch) done();
      if (waiting.length > 0) flush();
    };
    writev(
      fd,
      batch.map(({ bytes }) => bytes),
      (error) => {
        fail(error);
        fdatasync(fd, synced);
      },
    );
  };
  return {
    append(bytes, done) {
      waiting.push({ bytes, done });
      if (!busy) flush();
    },
  };
}

function serve(onCall) {
  const server = new Server(limits);
  const onPipe = (call) => {
    onCall(call);
    call.on('end', () => call.end());
  };
  server.addService(service, { Pipe: onPipe });
  server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, port) => {
    if (error) throw error;
    process.send({ type: 'listening', port });
  });
}

function dial(port) {
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure(), limits);
  return client.makeBidiStreamRequest(service.Pipe.path, pack, unpack);
}

function follower(path) {
  const log = openLog(path);
  const held = new Map();
  const apply = (ops, index) => {
    for (const [, kind, key] of ops) kind === ACQUIRE ? held.set(key, index) : held.delete(key);
  };
  serve((call) => {
    call.on('data', ({ index, ops }) => {
      log.append(pack(ops), () => {
        call.write({ index });
        apply(ops, index);
      });
    });
  });
}

function leader(path, followerPorts) {
  const log = openLog(path);
  const held = new Map();
  const open = new Map();
  const followers = followerPorts.map(dial);
  let next = 1;
  let gathered = [];
  let scheduled = false;

  const apply = ([, kind, key], index) => {
    if (kind === RELEASE) return held.delete(key);
    if (held.has(key)) return false;
    held.set(key, index);
    return true;
  };
  const acknowledged = (index) => {
    const batch = open.get(index);
    if (batch === undefined || ++batch.acks < 2) return;
    open.delete(index);
    const replies = new Map();
    for (const { call, op } of batch.ops) {
      const granted = apply(op, index);
      const list = replies.get(call);
      if (list === undefined) replies.set(call, [[op[0], granted, index]]);
      else list.push([op[0], granted, index]);
    }
    for (const [call, list] of replies) call.write(list);
  };
  const propose = () => {
    scheduled = false;
    const ops = gathered;
    gathered = [];
    const index = next++;
    const raw = ops.map(({ op }) => op);
    open.set(index, { acks: 0, ops });
    for (const each of followers) each.write({ index, ops: raw });
    log.append(pack(raw), () => acknowledged(index));
  };

  for (const each of followers) each.on('data', ({ index }) => acknowledged(index));
  serve((call) => {
    call.on('data', (ops) => {
      for (const op of ops) gathered.push({ call, op });
      if (!scheduled) setImmediate(propose);
      scheduled = true;
    });
  });
}

function client(port, inflight, seconds) {
  const stream = dial(port);
  const waiting = new Map();
  const latencies = [];
  let id = 0;
  let gathered = [];
  let scheduled = false;
  let stop = false;

  stream.on('data', (replies) => {
    for (const reply of replies) {
      const resolve = waiting.get(reply[0]);
      waiting.delete(reply[0]);
      resolve(reply);
    }
  });
  const flush = () => {
    scheduled = false;
    const message = gathered;
    gathered = [];
    stream.write(message);
  };
  const call = (kind, key) =>
    new Promise((resolve) => {
      const n = id++;
      waiting.set(n, resolve);
      gathered.push([n, kind, key, VALUE]);
      if (!scheduled) setImmediate(flush);
      scheduled = true;
    });
  const work = async (worker) => {
    for (let n = 0; !stop; n++) {
      const key = `lock/${worker}/${n % 100}`;
      const begun = performance.now();
      await call(ACQUIRE, key);
      await call(RELEASE, key);
      latencies.push(performance.now() - begun);
    }
  };
  for (let worker = 0; worker < inflight; worker++) void work(worker);
  const finish = (begun) => {
    stop = true;
    process.send({ type: 'measured' });
    const elapsed = (performance.now() - begun) / 1000;
    const done = latencies.length;
    latencies.sort((a, b) => a - b);
    const at = (quantile) => latencies[Math.floor(done * quantile)] ?? 0;
    const result = { opsPerSecond: done / elapsed, p50Ms: at(0.5), p99Ms: at(0.99), ops: done, errors: 0 };
    process.send({ type: 'result', result }, () => process.exit());
  };
  setTimeout(() => {
    latencies.length = 0;
    const begun = performance.now();
    process.send({ type: 'measuring' });
    setTimeout(finish, seconds * 1000, begun);
  }, WARM_UP_MS);
}

function start(role) {
  return fork(fileURLToPath(import.meta.url), [], { env: { ...process.env, BARE_ROLE: role } });
}

/** Resolves with the first message of a type that `child` sends. */
function message(child, type) {
  return new Promise((resolve) => {
    child.on('message', (received) => {
      if (received.type === type) resolve(received);
    });
  });
}

async function standAlone(option) {
  const dir = mkdtempSync(join(tmpdir(), 'bare-'));
  const children = [];
  const server = async (role) => {
    const child = start(role);
    children.push(child);
    return (await message(child, 'listening')).port;
  };
  const ports = [await server(`follower ${join(dir, 'f1')}`), await server(`follower ${join(dir, 'f2')}`)];
  const port = await server(`leader ${join(dir, 'l')} ${ports.join(' ')}`);
  for (const inflight of option('inflight', '1,64,256').split(',')) {
    const child = start(`client ${port} ${inflight} ${option('seconds', '4')}`);
    const { result } = await message(child, 'result');
    console.log(JSON.stringify({ inflight: Number(inflight), ...result }));
  }
  for (const child of children) child.kill();
  rmSync(dir, { recursive: true });
}

const [role, ...rest] = (process.env.BARE_ROLE ?? 'main').split(' ');
if (role === 'follower') follower(rest[0]);
else if (role === 'leader') leader(rest[0], rest.slice(1).map(Number));
else if (role === 'client') client(...rest.map(Number));
else {
  await standAlone((name, fallback) => {
    const at = process.argv.indexOf(`--${name}`);
    return at < 0 ? fallback : (process.argv[at + 1] ?? fallback);
  });
}
if (role !== 'main') {
  process.on('disconnect', () => process.exit());
  process.on('SIGTERM', () => process.exit()); // a profile is written on the way out
}
