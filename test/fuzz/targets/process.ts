import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  address,
  bytes as byteSize,
  durationMs,
  type Logger,
  nodeClock,
  OptionsError,
  parseOptions,
  SeededRandom,
  ServiceError,
  silentLogger,
} from '@remora/base';
import { type Backend, type BackendDone, createHttpEndpoint, etcdApi, REQUEST_LIMITS } from '@remora/gateway';
import { parseConfig } from '../../../packages/cli/src/config-file.ts';
import { CommandError } from '../../../packages/cli/src/exit-codes.ts';
import { openDataDir } from '../../../packages/cli/src/node/files/data-dir.ts';
import { API_LIMITS, startHttpServer } from '../../../packages/cli/src/node/ports/http-server.ts';
import { nodeSchema } from '../../../packages/cli/src/node-options.ts';
import { durationMs as clientDuration, type Duration } from '../../../packages/client/src/options/duration.ts';
import { ALONE_NODE } from '../../../packages/gateway/test/support/alone-node.ts';
import { NO_AUTHENTICATION } from '../../../packages/gateway/test/support/no-authentication.ts';
import { adminApi } from '../../support/admin-api.ts';
import { PlayedAuth } from '../../support/auth-admin.ts';
import { FuzzViolation, isInvalidArgument, type Target } from '../target.ts';

// The inputs of a process: files, flags, variables, and whatever is sent to its HTTP port.

const texts = (...given: readonly string[]): readonly Uint8Array[] => given.map((text) => Buffer.from(text));
const isOptionsError = (error: unknown): boolean => error instanceof OptionsError || error instanceof CommandError;

const configFile: Target = {
  name: 'config-file',
  runs: 100,
  corpus: () =>
    texts(
      'name: n1\nlog-level: info\nclient-listen: 127.0.0.1:7480\n',
      '{"name": "n1", "roles": ["master", "data"], "election-timeout": "1s"}',
      'initial-cluster:\n  - n1=10.0.0.1:7481\n  - n2=10.0.0.2:7481\ninsecure: [clients]\n',
      'roles: &a [data]\nname: *a\n',
    ),
  decode(bytes) {
    const file = parseConfig('remora.yaml', Buffer.from(bytes).toString('utf8'));
    parseOptions(nodeSchema, { file });
  },
  expected: isOptionsError,
};

const flags: Target = {
  name: 'flags-and-environment',
  corpus: () =>
    texts(
      'name=n1\nlogLevel=debug\nclientListen=127.0.0.1:7480',
      'REMORA_NAME=n1\nREMORA_ELECTION_TIMEOUT=1m30s\nREMORA_INITIAL_CLUSTER=n1=[::1]:7481,n2=h:1',
    ),
  decode(bytes) {
    const given = Buffer.from(bytes)
      .toString('utf8')
      .split('\n')
      .map((line) => [line.split('=', 1)[0] ?? '', line.slice(line.indexOf('=') + 1)] as const);
    const env = Object.fromEntries(given.filter(([name]) => name.startsWith('REMORA_')));
    const named = Object.fromEntries(given.filter(([name]) => Object.hasOwn(nodeSchema.definitions, name)));
    for (const type of [address(), byteSize(), durationMs()]) for (const [, text] of given) type.parse(text);
    parseOptions(nodeSchema, { flags: named, env });
  },
  expected: isOptionsError,
};

const durations: Target = {
  name: 'client-duration',
  corpus: () => texts('250ms', '1.5s', '2m', '1h', '9007199254740991ms', `${'9'.repeat(308)}h`),
  decode(bytes) {
    const text = Buffer.from(bytes).toString('utf8');
    for (const given of [text, Number(text)]) {
      const ms = clientDuration(given as Duration, 'wait');
      if (!(ms >= 0 && ms <= Number.MAX_SAFE_INTEGER)) throw new FuzzViolation(`'${text}' is ${ms} ms`);
    }
  },
  expected: isInvalidArgument,
};

/** Opens a data directory that has these files. */
async function opened(files: Readonly<Record<string, string | Uint8Array>>): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), 'remora-fuzz-'));
  try {
    for (const [name, contents] of Object.entries(files)) await writeFile(join(dir, name), contents);
    const dataDir = await openDataDir({ dir, name: 'n1', random: new SeededRandom(1) });
    await dataDir.close();
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

const IDENTITY = '{"formatVersion":1,"name":"n1","incarnation":"abc","clusterId":"c","nodeId":1}';

const identity: Target = {
  name: 'data-dir-identity',
  runs: 40,
  corpus: () => texts(IDENTITY, '{"formatVersion":1,"name":"n1","incarnation":"abc"}'),
  decode: (bytes) => opened({ 'node.json': bytes }),
  expected: isOptionsError,
};

const peers: Target = {
  name: 'data-dir-peers',
  runs: 40,
  corpus: () => texts('{"formatVersion":1,"peers":{"2":"def","3":"ghi"}}', '{"formatVersion":1,"peers":{}}'),
  decode: (bytes) => opened({ 'node.json': IDENTITY, 'peers.json': bytes }),
  expected: isOptionsError,
};

const http: Target = {
  name: 'http',
  runs: 40,
  corpus: () =>
    texts(
      'GET /health HTTP/1.1\r\nhost: a\r\n\r\n',
      'HEAD /metrics?x=%00 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n',
      'POST /ready HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      'PUT /v1/../health HTTP/1.0\r\ncontent-length: 99999999999\r\n\r\nx',
      `GET /${'a'.repeat(9_000)} HTTP/1.1\r\nhost: a\r\nx: ${'b'.repeat(9_000)}\r\n\r\n`,
      'GET http://[::1/health HTTP/1.1\r\nhost:\r\nupgrade: h2c\r\n\r\n',
      apiCall('POST /v1/locks/default/a%2Fb/acquire', '{"ttl":"5s","wait":0,"data":{"base64":"AP8="},"capacity":2}'),
      apiCall('POST /v1/check', '{"checks":[{"namespace":"n","name":"a","version":7}]}'),
      apiCall('POST /v3/kv/put', '{"key":"Zm9v","value":"YmFy","lease":"5"}'),
      apiCall('POST /v3/watch', '{"create_request":{"key":"Zm9v"}}'),
      'GET /v1/locks/n?prefix=%00&limit=3 HTTP/1.1\r\nhost: a\r\n\r\n',
      'DELETE /v1/sessions/7f.12 HTTP/1.1\r\nhost: a\r\n\r\n',
    ),
  async decode(bytes) {
    const report = { ok: true, reasons: [] };
    const failures: unknown[] = [];
    const logger = { ...silentLogger, error: (fields: unknown) => failures.push(fields) };
    const server = await startHttpServer({
      listen: { host: '127.0.0.1', port: 0 },
      flag: '--http-listen',
      limits: API_LIMITS,
      names: new Set(['a']),
      logger,
      health: () => report,
      ready: () => report,
      metrics: async () => ({ contentType: 'text/plain', body: 'up 1\n' }),
      handlers: [createHttpEndpoint(endpointDeps(logger))],
    });
    try {
      await exchange(server.port, bytes);
      const answer = await exchange(server.port, Buffer.from('GET /health HTTP/1.0\r\nhost: a\r\n\r\n'));
      if (!answer.startsWith('HTTP/1.1 200')) throw new FuzzViolation(`/health answers ${answer.slice(0, 60)}`);
      if (failures.length > 0) throw new FuzzViolation(`the server failed: ${JSON.stringify(failures)}`);
    } finally {
      await server.stop();
    }
  },
  expected: () => false,
};

function endpointDeps(logger: Logger) {
  const ports = { backend: nobody, clock: nodeClock(), random: new SeededRandom(1) };
  const etcd = etcdApi({ ...ports, scheme: 'http', node: ALONE_NODE }, () => false);
  const admin = adminApi(nobody, ports.clock);
  return {
    ...ports,
    admin,
    auth: new PlayedAuth(ports.clock).admin,
    logger,
    etcd,
    identification: NO_AUTHENTICATION,
    requestBytesMax: REQUEST_LIMITS.requestBytesMax,
  };
}

function apiCall(line: string, body: string): string {
  return `${line} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
}

/** Requests that pass the checks of the JSON interface end here. */
const refused = (_asked: unknown, _options: unknown, done: BackendDone<never>): (() => void) => {
  done(new ServiceError('UNAVAILABLE', 'nobody is there'), undefined);
  return () => {};
};
const nobody: Backend = {
  nodeId: 1,
  command: refused,
  query: refused,
  watch: () => ({ cancel() {}, progress() {}, pause() {}, resume() {} }),
  watchLocks: () => ({ cancel() {}, pause() {}, resume() {} }),
  view: () => ({ clusterId: 'c', nodes: [], ranges: [], leaders: [], masterLeader: 0 }),
  rangeTimeMs: () => 0,
  check: () => {},
};

/** Sends only these bytes. Returns what comes back until the server closes. */
function exchange(port: number, bytes: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect({ host: '127.0.0.1', port });
    socket.setEncoding('latin1').on('data', (text: string) => {
      answer += text;
    });
    socket.on('error', () => {}).on('close', () => resolve(answer));
    socket.end(bytes);
  });
}

export const PROCESS_TARGETS: readonly Target[] = [configFile, flags, durations, identity, peers, http];
