import type { Bytes } from '@remora/base';
import { lockSpan, namespaceSpan } from '@remora/lock';
import { type Command, KV_SPACE, kvRoutingKey, LEASE_SPACE, type Query } from '@remora/protocol';

/** The key by which a command or query finds its range. */
export function routingKey(request: Command | Query): Bytes {
  switch (request.type) {
    case 'kv':
      return kvRoutingKey(request.op.key);
    case 'range':
      return kvRoutingKey(request.op.key);
    case 'txn':
    case 'readTxn': {
      const { compare, success, failure } = request.txn;
      for (const part of [...compare, ...success, ...failure]) if ('key' in part) return kvRoutingKey(part.key);
      return Buffer.from([KV_SPACE]);
    }
    case 'leaseGrant':
    case 'leaseRevoke':
    case 'leaseExpire':
    case 'leaseKeepAlive':
    case 'leaseTimeToLive': {
      const key = Buffer.alloc(9, LEASE_SPACE);
      key.writeBigInt64BE(request.id, 1);
      return key;
    }
    case 'lockAwait':
    case 'grantEnd':
      return lockSpan(request.lock).start;
    case 'lock':
      return 'command' in request ? lockSpan(request.command.lock).start : lockQueryKey(request.query);
    case 'leases':
      return Buffer.from([LEASE_SPACE]);
    case 'split':
      return request.at;
    case 'compact':
    case 'noop':
    case 'closedRevision':
    case 'status':
      return Buffer.from([KV_SPACE]);
  }
}

function lockQueryKey(query: Extract<Query, { type: 'lock' }>['query']): Bytes {
  if (query.type === 'show') return lockSpan(query.lock).start;
  if (query.type === 'list') return namespaceSpan(query.namespace, query.prefix).start;
  const first = query.checks[0];
  return first === undefined ? Buffer.from([LEASE_SPACE + 1]) : lockSpan(first.lock).start;
}
