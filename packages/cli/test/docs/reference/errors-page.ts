import { ERROR_TABLE, type ErrorCode, type RetryAdvice } from '@remora/base';
import { EXIT_CODES } from '../../../src/exit-codes.ts';
import { code, table } from './table.ts';

/** What a code says to the caller. The code's class, number and retry advice come from the table itself. */
const MEANINGS: Readonly<Record<ErrorCode, string>> = {
  INVALID_ARGUMENT: 'an option or argument is wrong; the message names it and says what would be right',
  EMPTY_KEY: 'a key is empty',
  DUPLICATE_KEY: 'the transaction could change a key twice',
  TOO_MANY_OPERATIONS: 'the transaction has more operations than `--txn-ops-max`, or is nested too deep',
  REQUEST_TOO_LARGE: 'the request is larger than `--request-bytes-max`',
  COMPACTED: 'the revision is compacted: read the present state and continue from there',
  FUTURE_REVISION: 'the revision does not exist yet',
  KEY_NOT_FOUND: 'there is no such key (HTTP API)',
  KEY_CHANGED: 'the key is not as the condition of the change says: nothing was written (HTTP API)',
  LEASE_NOT_FOUND: 'the lease has ended or never existed',
  LEASE_EXISTS: 'a lease with this id exists',
  LEASE_TTL_TOO_LARGE: 'the TTL of the lease is too large',
  SESSION_EXPIRED: 'the session has ended, and with it its locks',
  LOCK_NOT_HELD: 'the lock is not held by this grant',
  LOCK_WRONG_OWNER: 'another owner holds the lock',
  LOCK_BUSY: 'the lock is taken, and the caller did not want to wait',
  LOCK_CANCELED: 'the acquire was cancelled, or its token was used already',
  LOCK_TIMEOUT: 'the lock was not granted within `wait`',
  LOCK_DEPTH_EXCEEDED: 'the holder has entered the lock `depthMax` times',
  FENCED: 'the version is not the current one: nothing was written',
  LOCK_KIND_MISMATCH: 'the name is used as another kind of lock, or by a waiter at its barrier',
  LOCK_UPGRADE_CONFLICT: 'another reader waits for an upgrade already',
  LOCK_SELF_WAIT: 'the task that asks for the lock holds it itself; only the SDK says so',
  LOCK_PERMITS_EXCEEDED: 'more permits are wanted than there are in total',
  UNAUTHENTICATED: 'authentication is on, and the caller has not logged in, or no longer is',
  PERMISSION_DENIED: 'no role of the user allows it; the message names what is missing',
  AUTH_REFUSED: 'users, roles or permissions are not as the change assumes; the message says what to do',
  RANGE_NOT_FOUND: 'the range has ended or is not on this node',
  NOT_LEADER: 'another node leads the range',
  STALE_AUTH: 'users or roles were changed; the gateway decides again whether the request is allowed',
  STALE_EPOCH: 'the range was split, merged or moved since the route was looked up',
  UNAVAILABLE: 'nobody can serve the request at the moment',
  RESOURCE_EXHAUSTED: 'a limit is reached; the message names it',
  DEADLINE_EXCEEDED: 'the time of the request is over, and it was not done',
  CANCELED: 'the caller cancelled the request',
  UNIMPLEMENTED: 'Remora does not have this call; the message says what to use',
  UNKNOWN_OUTCOME: 'the answer is lost: the request may have been applied',
  RESULT_LOST: 'the request was applied, and its result is lost for good: read what it changed',
  WRONG_CLUSTER: 'the other side belongs to another cluster',
  NODE_CONFLICT: 'the other side knows another node under this id',
  VERSION_REFUSED: 'the releases of the two sides do not go together; the message says which one to replace',
  INTERNAL: 'a defect; please report it with the log of the node',
};

const ADVICE: Readonly<Record<RetryAdvice, string>> = {
  no: 'repeating the same request changes nothing',
  sameRequest: 'repeat it as it is, under the same request id; the SDK does so until its time is over',
  refreshRoute: 'look up the route again and repeat it under the same request id; gateway and SDK do so by themselves',
  later: 'repeat it after a pause',
};

export function errorsPage(): string {
  const codes = Object.entries(ERROR_TABLE).map(([name, { grpc, retry }]) => {
    return [code(name), MEANINGS[name as ErrorCode], code(retry), String(grpc)];
  });
  const exits = Object.values(EXIT_CODES).map((exit) => [String(exit.code), exit.means]);
  return `# Errors

Branch on an error's \`code\`. Codes are stable; texts are not:

\`\`\`ts
import { RemoraError } from 'remora';

try {
  await remora.lock('orders/42').acquire({ wait: '1s' });
} catch (error) {
  if (!(error instanceof RemoraError) || error.code !== 'LOCK_TIMEOUT') throw error;
}
\`\`\`

## Codes

${table(['Code', 'Meaning', 'Retry', 'gRPC status'], codes)}

The etcd API answers with etcd's own statuses and texts.

| \`retry\` | What the caller may do |
| --- | --- |
${Object.entries(ADVICE)
  .map(([advice, text]) => `| ${code(advice)} | ${text} |`)
  .join('\n')}

\`UNKNOWN_OUTCOME\` and \`RESULT_LOST\` are never reported as a failure. \`outcomeUnknown\` of an error is true for the first, \`mayBeApplied\` for both.

## Exit codes

${table(['Exit code', 'Meaning'], exits)}
`;
}
