// What one unary call costs our gRPC server, and grpc-js's: an echo of 20 bytes over loopback, loaded by h2load
// (Debian: apt-get install nghttp2-client). Needs `npm run build`.
//
//   node bench/grpc-server.mjs [--calls 200000] [--runs 3] [--servers remora,remora-later,grpc-js]
//
// `remora` answers in the method, `remora-later` in the same turn of the event loop after all requests of a read, as a
// backend does that gathers requests. Each row: connections x streams, calls/s, server CPU in microseconds per call.
import { fork, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { GrpcServer } from '@remora/grpc-server';

const METHOD = {
  path: '/test.Echo/Unary',
  requestStream: false,
  responseStream: false,
  requestSerialize: (bytes) => bytes,
  requestDeserialize: (bytes) => bytes,
  responseSerialize: (bytes) => bytes,
  responseDeserialize: (bytes) => bytes,
};
const MESSAGE = Buffer.alloc(20, 'x');
const TICKS_PER_SECOND = 100;
const LEVELS = [
  { connections: 1, streams: 64 },
  { connections: 4, streams: 64 },
  { connections: 1, streams: 1 },
];

const timers = {
  monotonicMs: () => performance.now(),
  setTimer: (delayMs, fn) => {
    const timer = setTimeout(fn, delayMs).unref();
    return { cancel: () => clearTimeout(timer) };
  },
  setImmediate: (fn) => void setImmediate(fn),
};

const SERVERS = {
  remora: () => listen((call) => call.respond(call.request)),
  'remora-later': () => {
    let calls = [];
    listen((call) => {
      if (calls.push(call) > 1) return;
      setImmediate(() => {
        const answered = calls;
        calls = [];
        for (const each of answered) each.respond(each.request);
      });
    });
  },
  'grpc-js': () => {
    const server = new Server();
    server.addService({ Unary: METHOD }, { Unary: (call, done) => done(null, call.request) });
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (_error, port) => process.send(port));
  },
};

function listen(unary) {
  const grpc = new GrpcServer({ timers });
  grpc.addService({ Unary: METHOD }, { Unary: unary });
  const server = createServer((socket) => {
    socket.setNoDelay(true);
    grpc.accept(socket);
  });
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
}

if (process.env.GRPC_SERVER !== undefined) {
  process.on('disconnect', () => process.exit()); // also if the benchmark was killed
  SERVERS[process.env.GRPC_SERVER]();
} else await main();

async function main() {
  const { values } = parseArgs({
    options: {
      calls: { type: 'string', default: '200000' },
      runs: { type: 'string', default: '3' },
      servers: { type: 'string', default: Object.keys(SERVERS).join() },
    },
  });
  const folder = mkdtempSync(join(tmpdir(), 'grpc-server-'));
  const body = join(folder, 'body');
  writeFileSync(body, Buffer.concat([Buffer.from([0, 0, 0, 0, MESSAGE.length]), MESSAGE]));
  for (const name of values.servers.split(',')) {
    const child = fork(fileURLToPath(import.meta.url), [], {
      env: { ...process.env, GRPC_SERVER: name },
      execArgv: process.execArgv,
    });
    const port = await new Promise((resolve) => child.once('message', resolve));
    for (const level of LEVELS) {
      for (let run = 0; run < Number(values.runs); run++) {
        console.log(name.padEnd(13), await measure(child.pid, { ...level, port, body, calls: Number(values.calls) }));
      }
    }
    child.disconnect();
    child.kill('SIGINT');
  }
  rmSync(folder, { recursive: true });
}

async function measure(pid, { connections, streams, port, body, calls }) {
  const count = streams === 1 ? calls / 20 : calls;
  const before = cpuSeconds(pid);
  const out = await h2load([
    ...['-n', count, '-c', connections, '-m', streams, '-t', 1, '-d', body],
    ...['-H', 'content-type: application/grpc', '-H', 'te: trailers', `http://127.0.0.1:${port}${METHOD.path}`],
  ]);
  const microseconds = ((cpuSeconds(pid) - before) / count) * 1e6;
  const [, rate = '?'] = /([\d.]+) req\/s/.exec(out) ?? [];
  const [, answered = '0'] = /(\d+) succeeded/.exec(out) ?? [];
  const load = `${connections} x ${streams}`;
  return `${load.padEnd(7)} ${rate.padStart(10)} calls/s ${microseconds.toFixed(2)} us/call, ${answered} of ${count} answered`;
}

function h2load(args) {
  return new Promise((resolve, reject) => {
    const child = spawn('h2load', args.map(String), { stdio: ['ignore', 'pipe', 'ignore'] });
    let out = '';
    child.on('error', reject);
    child.stdout.on('data', (chunk) => {
      out += chunk;
    });
    child.on('close', () => resolve(out));
  });
}

function cpuSeconds(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}
