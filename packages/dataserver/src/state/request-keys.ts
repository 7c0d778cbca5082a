/** Which key a request is about. Used for statistics only, not for decisions. */
import type { Bytes } from '@remora/base';
import { lockPrefix, namespaceSpan, namespacesSpan } from '@remora/lock';
import { type Command, kvRoutingKey, type Query, type RangeRequest, type Txn } from '@remora/protocol';
import { leaseKey } from './keys.ts';

/** The routing key at which a request begins; undefined if the request is about the range as a whole. */
export function keyOfRequest({ body }: Pick<RangeRequest, 'body'>): Bytes | undefined {
  return body.kind === 'query' ? keyOfQuery(body.query) : keyOfCommand(body.command);
}

function keyOfCommand(command: Command): Bytes | undefined {
  switch (command.type) {
    case 'kv':
      return kvRoutingKey(command.op.key);
    case 'txn':
      return keyOfTxn(command.txn);
    case 'lock':
      return lockPrefix(command.command.lock);
    case 'leaseGrant':
    case 'leaseChange':
    case 'leaseCheckpoint':
    case 'leaseRevoke':
    case 'leaseExpire':
      return leaseKey(command.id);
    default:
      return undefined;
  }
}

function keyOfQuery(query: Query): Bytes | undefined {
  switch (query.type) {
    case 'range':
      return kvRoutingKey(query.op.key);
    case 'readTxn':
      return keyOfTxn(query.txn);
    case 'scan':
    case 'history':
      return kvRoutingKey(query.key);
    case 'leaseKeepAlive':
    case 'leaseTimeToLive':
      return leaseKey(query.id);
    case 'lock':
      return keyOfLocks(query.query);
    case 'lockAwait':
    case 'grantEnd':
      return lockPrefix(query.lock);
    default:
      return undefined;
  }
}

function keyOfTxn({ compare, success, failure }: Txn): Bytes | undefined {
  const [first] = [...compare, ...success, ...failure];
  if (first === undefined) return undefined;
  if ('lock' in first) return lockPrefix(first.lock);
  if ('key' in first) return kvRoutingKey(first.key);
  return first.type === 'txn' ? keyOfTxn(first.txn) : undefined;
}

function keyOfLocks(query: Extract<Query, { type: 'lock' }>['query']): Bytes | undefined {
  switch (query.type) {
    case 'show':
      return lockPrefix(query.lock);
    case 'list':
    case 'search':
      return namespaceSpan(query.namespace, query.prefix).start;
    case 'namespaces':
      return namespacesSpan(query.after).start;
    case 'check': {
      const [first] = query.checks;
      return first && lockPrefix(first.lock);
    }
  }
}
