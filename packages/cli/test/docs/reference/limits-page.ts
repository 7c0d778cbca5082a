import { AUTH_LIMITS, PASSWORD_LIMITS, TOKEN_LIFE_MS } from '@remora/auth';
import { describeOptions, FRAME_STREAM_DEFAULTS, formatDurationMs } from '@remora/base';
import { HANDSHAKE_LIMITS, HANDSHAKES_PER_TURN } from '@remora/base/node';
import { GRPC_LIMIT_TABLE } from '@remora/grpc-server';
import {
  BARRIER_WAITERS_MAX,
  CHECKS_MAX,
  DATA_BYTES_MAX,
  DEPTH_MAX,
  FORCED_BY_BYTES_MAX,
  FORCED_REASON_BYTES_MAX,
  LIST_LIMIT_MAX,
  LIST_OWNERS_MAX,
  LOCK_DELAY_MAX_MS,
  NAME_BYTES_MAX,
  NAMESPACE_BYTES_MAX,
  PERMITS_MAX,
  REASON_BYTES_MAX,
  REVOKE_MAX_MS,
  REVOKER_BYTES_MAX,
  SHARERS_MAX,
  SHOW_OWNERS_MAX,
  TOKEN_BYTES_MAX,
  WAITERS_MAX,
} from '@remora/lock';
import { QUEUE_BYTES_MAX } from '../../../../auth/src/audit/audit-log.ts';
import { PASSWORD_BYTES_MAX } from '../../../../auth/src/credentials/password-hash.ts';
import { CHAIN_LENGTH_MAX } from '../../../../base/src/node/tls/peer-certificate.ts';
import { CHOICES_MAX } from '../../../../client/src/lock/lock-choice.ts';
import { JSON_LEVELS_MAX, JSON_VALUES_MAX } from '../../../../gateway/src/etcd/json/json-reader.ts';
import { ETCD_LIMITS } from '../../../../gateway/src/etcd/limits.ts';
import { KEY_SCANS_MAX } from '../../../../gateway/src/etcd/maintenance/key-scans.ts';
import { CLIENT_SERVER_LIMITS, grpcLimits } from '../../../../gateway/src/node/grpc/client-server.ts';
import { API_LIMITS } from '../../../src/node/ports/http-server.ts';
import { nodeSchema } from '../../../src/node-options.ts';
import { code, table } from './table.ts';

const count = (n: number) => n.toLocaleString('en-US');
const bytes = (n: number) => `${count(n)} bytes`;

const LOCKS: readonly (readonly [string, string])[] = [
  ['name of a lock', `1 to ${bytes(NAME_BYTES_MAX)}`],
  ['namespace', bytes(NAMESPACE_BYTES_MAX)],
  ['token of an owner', bytes(TOKEN_BYTES_MAX)],
  ['data of a lock', bytes(DATA_BYTES_MAX)],
  ['lock-delay', formatDurationMs(LOCK_DELAY_MAX_MS)],
  ['levels of re-entry', count(DEPTH_MAX)],
  ['waiters of one lock', count(WAITERS_MAX)],
  ['holders that share one lock; one more waits', count(SHARERS_MAX)],
  ['waiters at one barrier, or passed without confirming it', count(BARRIER_WAITERS_MAX)],
  ['permits of a semaphore', count(PERMITS_MAX)],
  ['locks in one `lockAll`', count(CHOICES_MAX)],
  ['`by` and `reason` of a forced release', `${bytes(FORCED_BY_BYTES_MAX)}, ${bytes(FORCED_REASON_BYTES_MAX)}`],
  ['`by` and `reason` of a revocation', `${bytes(REVOKER_BYTES_MAX)}, ${bytes(REASON_BYTES_MAX)}`],
  ['time of a revocation', formatDurationMs(REVOKE_MAX_MS)],
  ['holders and waiters that `show` returns', count(SHOW_OWNERS_MAX)],
  ['holders and waiters per lock that `list` returns', count(LIST_OWNERS_MAX)],
  ['locks on one page of `list`', count(LIST_LIMIT_MAX)],
  ['versions in one check', count(CHECKS_MAX)],
];

const ETCD: readonly (readonly [string, string, string])[] = [
  ['levels of nested transactions', count(ETCD_LIMITS.txnDepthMax), 'refused as too many operations'],
  ['watches on one stream', count(ETCD_LIMITS.watchesPerStreamMax), 'the watch is canceled'],
  ['requests of one stream of watches without an answer', count(ETCD_LIMITS.watchRequestsPendingMax), 'not read'],
  ['heartbeats of one stream without an answer', count(ETCD_LIMITS.keepAlivesPendingMax), 'not read'],
  ['bytes of events in a fragment, about', bytes(ETCD_LIMITS.fragmentBytes), 'another fragment follows'],
  ['`HashKV`, `Hash` and `Snapshot` of one node at a time', count(KEY_SCANS_MAX), 'refused as too many requests'],
  ['levels of JSON', count(JSON_LEVELS_MAX), 'refused'],
  ['values in JSON', count(JSON_VALUES_MAX), 'refused'],
];

const PEER_HELLO_MS = FRAME_STREAM_DEFAULTS.probeMs + FRAME_STREAM_DEFAULTS.probeTimeoutMs;
const LOG_INS: readonly (readonly [string, string, string])[] = [
  ['TLS handshakes in progress at a port', count(HANDSHAKE_LIMITS.max), 'the one that has been silent longest ends'],
  ['the same of one address (IPv6: of one /64)', count(HANDSHAKE_LIMITS.perAddressMax), 'the same'],
  [
    'time for a handshake at the client port',
    formatDurationMs(CLIENT_SERVER_LIMITS.helloMs),
    'the connection is closed',
  ],
  ['time for a handshake at the HTTP port', formatDurationMs(API_LIMITS.headersTimeoutMs), 'the same'],
  ['time for a handshake at the peer port', formatDurationMs(PEER_HELLO_MS), 'the same'],
  ['handshakes that begin in one turn of the event loop', count(HANDSHAKES_PER_TURN), 'the others wait in order'],
  ['certificates in a chain', count(CHAIN_LENGTH_MAX), 'refused'],
  ['log-ins that wait for their turn at a node', count(PASSWORD_LIMITS.waitingMax), 'refused as too many'],
  ['the same of one address (IPv6: one /64)', count(PASSWORD_LIMITS.ofAddressMax), 'refused as too many'],
  ['the same for one user', count(PASSWORD_LIMITS.ofUserMax), 'refused as too many'],
  ['a password', bytes(PASSWORD_BYTES_MAX), 'refused'],
  ['validity of a token', formatDurationMs(TOKEN_LIFE_MS), 'the client logs in again'],
  ['users, roles', `${count(AUTH_LIMITS.usersMax)}, ${count(AUTH_LIMITS.rolesMax)}`, 'refused'],
  ['permissions of a role, roles of a user', count(AUTH_LIMITS.grantsMax), 'refused'],
  ['lines of the audit log in memory', bytes(QUEUE_BYTES_MAX), 'dropped; a line and a metric count them'],
];

/** Limits of the gRPC server, with the values of a node. */
const GRPC = Object.entries({ ...GRPC_LIMIT_TABLE }).map(([name, { value, unit, what, beyond }]) => {
  const own: Readonly<Partial<Record<string, number>>> = grpcLimits(CLIENT_SERVER_LIMITS);
  const max = own[name] ?? value;
  const text = unit === 'ms' ? formatDurationMs(max) : unit === 'bytes' ? bytes(max) : count(max);
  return [code(name), text, what, beyond];
});

export function limitsPage(): string {
  const options = describeOptions(nodeSchema)
    .filter(({ group }) => group === 'Limits')
    .map(({ key, defaultText = '', desc }) => [code(`--${key}`), code(defaultText), desc]);
  return `# Limits

Every queue, cache and request has a bound. A request beyond a bound is rejected, and nothing is changed.

## Limits of a node

These are [options](node-options.md). [Limit the load](../how-to/cluster/limit-load.md) tells how to choose them.

${table(['Option', 'Default', 'Meaning'], options)}

## Limits of locks

${table(['What', 'At most'], LOCKS)}

## Limits of connecting and logging in

${table(['What', 'At most', 'Beyond it'], LOG_INS)}

## Limits of etcd's API

${table(['What', 'At most', 'Beyond it'], ETCD)}

## Limits of gRPC connections

The metric \`remora_grpc_limits_reached_total\` counts by these names.

${table(['Name', 'At most', 'Of what', 'Beyond it'], GRPC)}

## Limits of other interfaces

- The SDK: [Requests and retries](sdk.md#requests-and-retries), [durations](sdk.md#connecting)
- HTTP: [Who may call](../how-to/locks/lock-over-http.md#who-may-call)
`;
}
