/** The bodies of requests and answers about plain keys. */
import { REQUEST_ID_MAX } from '../../lock/lock-requests.ts';
import { LOCK_VERSION } from './lock-fields.ts';
import { answer, bytes, count, object, refTo, type Schema, text } from './parts.ts';

const key = bytes('The key: any bytes, at least one.');
const value = bytes('The value: any bytes. Base64 is shorter than text with many control characters.');
const modRevision = count('The revision of the last change of the key.', { minimum: 1 });
const lease = text(
  'The lease that the key belongs to, in hexadecimal: it is deleted when the lease ends. `/v1/sessions/{lease}.0` shows it.',
  { pattern: '^[0-9a-f]{1,16}$' },
);
const next = text('The value of `after` for the next page; use it unchanged. Absent: this was the last page.');
const revision = count('The revision at which the keys were read; pages of one list have the same one.');
const KEY_FIELDS = {
  key,
  createRevision: count('The revision at which the key was created.', { minimum: 1 }),
  modRevision,
  version: count('1 for a key just created; it grows with each put.', { minimum: 1 }),
  lease,
  valueBytes: count('The length of the value. Absent: it was not read.'),
};
const OPTIONAL = ['lease', 'valueBytes'];
const deletion = { key, modRevision: count('The revision at which the key was deleted.', { minimum: 1 }) };
const KEY: Schema = refTo('Key');
const KEY_VALUE: Schema = refTo('KeyValue');

function typed(type: 'put' | 'delete', fields: Readonly<Record<string, Schema>>, optional: readonly string[] = []) {
  return answer({ type: { const: type }, ...fields }, optional);
}

function list(items: Schema, more: Schema = {}): Schema {
  return { type: 'array', items, ...more };
}

/** Fields of errors about keys. */
export const KV_ERROR_FIELDS = {
  current: {
    description:
      'With KEY_CHANGED, for one key: the key as it is; null if it is absent. Values above 64 KiB are left out.',
    anyOf: [KEY_VALUE, KEY, { type: 'null' }],
  },
  revision: count('With KEY_NOT_FOUND: the revision at which there was no such key.'),
  compactRevision: count('With COMPACTED: the oldest revision that can be read.'),
} as const satisfies Readonly<Record<string, Schema>>;

export const KV_SCHEMAS = {
  Key: answer(KEY_FIELDS, OPTIONAL),
  KeyValue: answer({ ...KEY_FIELDS, value }, ['lease']),
  KvRead: answer({ ...KEY_FIELDS, value, revision }, ['lease']),
  KvList: answer({ kvs: list({ anyOf: [KEY_VALUE, KEY] }), revision, next }, ['next']),
  KvTree: answer(
    {
      entries: list({ oneOf: [refTo('KvFolder'), refTo('KvLeaf')] }, { description: 'In the order of the keys.' }),
      revision,
      next,
    },
    ['next'],
  ),
  KvFolder: answer({
    kind: { const: 'folder' },
    name: bytes('The part of its keys behind the prefix, with the separator at its end.'),
    key: bytes('The prefix of its keys: pass it as `prefix` to open the folder.'),
  }),
  KvLeaf: answer(
    {
      kind: { const: 'key' },
      name: bytes('The part of the key behind the prefix; empty if the key is the prefix itself.'),
      ...KEY_FIELDS,
    },
    OPTIONAL,
  ),
  KvHistory: answer(
    {
      versions: list({ oneOf: [refTo('KvPutVersion'), refTo('KvDeletion')] }, { description: 'The newest first.' }),
      revision,
      compactRevision: count('Older versions may be gone from this revision back; 0: nothing was compacted.'),
      next,
    },
    ['next'],
  ),
  KvPutVersion: typed('put', { ...KEY_FIELDS, value }, ['lease']),
  KvDeletion: typed('delete', deletion),
  KvPut: object(
    {
      value,
      ifModRevision: count(
        'Write only if this is the revision of the last change of the key; 0: if the key is absent.',
      ),
      ifVersion: count('Write only if this is the version of the key; 0: if the key is absent.'),
      fence: {
        ...LOCK_VERSION,
        description:
          'Write only while the grant of this version holds the lock, however late the call arrives. Lock and key are ' +
          'looked at in one step.',
      },
      lease: { ...lease, description: 'Deletes the key when this lease ends. Default: the key belongs to no lease.' },
      requestId: text(
        'A new GUID, so that you can repeat the call after a lost answer: within half a minute it is carried out once, ' +
          'however often it is sent, and each call returns the outcome.',
        { minLength: 1, maxLength: REQUEST_ID_MAX },
      ),
    },
    ['value'],
  ),
  KvPutDone: answer({ modRevision: count('The revision of the change.', { minimum: 1 }) }),
  KvDeleted: answer({
    deleted: count('The number of deleted keys.'),
    revision: count('The revision of the change, or the newest one if nothing was deleted.'),
  }),
  KvEventLive: answer({ revision: count('Changes above this revision follow.') }),
  KvEventChanges: answer({
    revision: count('The revision of all of these changes.', { minimum: 1 }),
    events: list({ anyOf: [refTo('KvPutVersion'), refTo('KvKeyChange'), refTo('KvDeletion')] }, { minItems: 1 }),
  }),
  KvKeyChange: typed('put', KEY_FIELDS, OPTIONAL),
  KvEventProgress: answer({ revision: count('No change up to this revision is missing.') }),
  KvExportLine: {
    description: 'One key, or the end: a file without it is not complete.',
    anyOf: [KEY_VALUE, refTo('KvExportEnd'), refTo('Error')],
  },
  KvExportEnd: answer({
    end: answer({ keys: count('The number of keys above.'), revision: count('The revision at which they were read.') }),
  }),
  KvImportLine: {
    description: 'A line of an export, or just a key and its value. Leases and revisions are not imported.',
    anyOf: [object({ ...KEY_FIELDS, value }, ['key', 'value']), refTo('KvExportEnd')],
  },
  KvImported: answer({
    written: count('The number of keys that were written.'),
    skipped: count('The number of keys that were there already (`mode=ifAbsent`).'),
  }),
} as const satisfies Readonly<Record<string, Schema>>;
