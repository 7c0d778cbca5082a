/** The calls about plain keys. */
import { type Operations, queryParameter } from './operation.ts';
import { refTo, type Schema } from './parts.ts';

const KEY = '/v1/kv/{key}';
const GONE = {
  410: 'The revision was compacted (COMPACTED): begin the list again, or read at `compactRevision` or later.',
};
const CHANGED = {
  409: 'The key is not as the condition says (KEY_CHANGED), or the fence no longer holds (FENCED): nothing was changed.',
};

const prefix = queryParameter('prefix', 'Only keys that begin with it. Default: all keys.', { type: 'string' });
const after = queryParameter('after', '`next` of the previous page.', { type: 'string' });
const revision = whole('revision', 'Read at this revision. Default: the newest.');
const requestId = queryParameter('requestId', 'As in the body of a put.', { type: 'string' });

function whole(name: string, description: string): Schema {
  return queryParameter(name, description, { type: 'integer', minimum: 0 });
}

function limit(otherwise: number): Schema {
  const description = `The largest number of entries; default ${otherwise}.`;
  return queryParameter('limit', description, { type: 'integer', minimum: 1, maximum: 1_000 });
}

function flag(name: string, description: string): Schema {
  return queryParameter(name, description, { type: 'boolean' });
}

export const KV_OPERATIONS: Operations = {
  [KEY]: {
    get: {
      id: 'getKey',
      summary: 'Reads a key.',
      query: [revision],
      answer: 'KvRead',
      errors: { 404: 'There is no such key (KEY_NOT_FOUND).', ...GONE },
    },
    put: {
      id: 'putKey',
      summary: 'Writes a key, if the conditions hold.',
      description:
        'Without conditions the call needs permission to write only; with `fence`, also to read the lock. Without `requestId`, look at the key before you ' +
        'repeat a conditional call whose answer was lost: the condition no longer holds if it was carried out.',
      body: 'KvPut',
      answer: 'KvPutDone',
      errors: { ...CHANGED, 410: 'The lease has ended (LEASE_NOT_FOUND).' },
    },
    delete: {
      id: 'deleteKey',
      summary: 'Deletes a key, if the conditions hold. Deleting an absent key is no error.',
      query: [
        whole('ifModRevision', 'Delete only if this is the revision of the last change of the key.'),
        whole('ifVersion', 'Delete only if this is the version of the key.'),
        queryParameter('fenceName', 'Delete only while a grant holds this lock; with `fenceVersion`.', {
          type: 'string',
        }),
        whole('fenceVersion', 'The version of that grant.'),
        queryParameter('fenceNamespace', 'The namespace of that lock. Default: `default`.', { type: 'string' }),
        requestId,
      ],
      answer: 'KvDeleted',
      errors: CHANGED,
    },
  },
  '/v1/kv': {
    get: {
      id: 'listKeys',
      summary: 'Lists keys in order, page by page, all pages at one revision.',
      description:
        'A page has at most 4 MiB of keys and values, and may be short or empty although there is a next one. With ' +
        '`contains`, a request looks at up to 20,000 keys and returns those that fit, without values.',
      query: [
        prefix,
        queryParameter('contains', 'Only keys that have this part.', { type: 'string' }),
        after,
        limit(100),
        flag('values', 'Whether to return values. Default: true; false with `contains`.'),
        revision,
      ],
      answer: 'KvList',
      errors: GONE,
    },
    delete: {
      id: 'deleteKeys',
      summary: 'Deletes all keys with a prefix in one step, if none was created or changed since you looked at them.',
      query: [
        queryParameter('prefix', 'The prefix; an empty one stands for all keys.', { type: 'string' }),
        whole('unchangedSince', 'The `revision` of the list in which you looked at the keys.'),
        requestId,
      ],
      answer: 'KvDeleted',
      errors: { 409: 'A key with the prefix was created or changed since (KEY_CHANGED): nothing was deleted.' },
    },
  },
  '/v1/kv-tree': {
    get: {
      id: 'listTree',
      summary: 'Lists one level of the tree of keys: folders, and keys without a separator behind the prefix.',
      description: 'The cost depends on the number of entries, and not on the number of keys in the folders.',
      query: [
        prefix,
        queryParameter('separator', 'The end of the names of folders. Default: /.', { type: 'string' }),
        after,
        limit(100),
        revision,
      ],
      answer: 'KvTree',
      errors: GONE,
    },
  },
  '/v1/kv-history/{key}': {
    get: {
      id: 'keyHistory',
      summary: 'Returns the versions of a key, the newest first, deletions included.',
      description: 'History reaches back to the last compaction; the version that was current then is the oldest one.',
      query: [after, limit(20)],
      answer: 'KvHistory',
    },
  },
  '/v1/kv-events': {
    get: {
      id: 'watchKeys',
      summary: 'Watches a key, or all keys with a prefix, as server-sent events.',
      description:
        'Each event has its revision as its id: a client that reconnects with `Last-Event-ID`, as an EventSource does, ' +
        'misses nothing and gets nothing twice. All changes of one revision are one event. The last event of a stream ' +
        'that cannot go on is `error`.',
      query: [
        queryParameter('key', 'Watch this key.', { type: 'string' }),
        queryParameter('prefix', 'Watch all keys that begin with it. Without `key`, the default is all keys.', {
          type: 'string',
        }),
        whole('since', 'Begin with the changes after this revision, such as that of a read. Default: from now on.'),
        flag('values', 'Whether to send values. Default: true.'),
      ],
      answer: {
        events: {
          live: refTo('KvEventLive'),
          events: refTo('KvEventChanges'),
          progress: refTo('KvEventProgress'),
          error: refTo('Error'),
        },
      },
      errors: { 410: 'Changes since then were compacted (COMPACTED): read the keys, and watch from that revision on.' },
    },
  },
  '/v1/kv-export': {
    get: {
      id: 'exportKeys',
      summary: 'Sends all keys with a prefix at one revision, as JSON, one key a line.',
      query: [prefix, revision],
      answer: { lines: 'KvExportLine' },
      errors: GONE,
    },
  },
  '/v1/kv-import': {
    post: {
      id: 'importKeys',
      summary: 'Writes keys from JSON lines, such as those of an export.',
      description:
        'At most 2,000 lines, and about 2 MiB: split larger files. Each key is written by itself. If the call ends with ' +
        'UNKNOWN_OUTCOME, a part may be written: repeat it, which is harmless.',
      query: [
        queryParameter(
          'mode',
          '`ifAbsent` (default) leaves keys that are there unchanged; `overwrite` replaces them.',
          {
            type: 'string',
            enum: ['ifAbsent', 'overwrite'],
          },
        ),
      ],
      bodyLines: 'KvImportLine',
      answer: 'KvImported',
    },
  },
};
