import { type Bytes, InvariantError, ServiceError } from '@remora/base';
import { asBool, asCount, asFields, asList, invalid } from './check.ts';
import { packPlain } from './pack.ts';
import { UnpackError, unpack } from './unpack.ts';

/**
 * What a node stores for itself: `[format, field…]`, checked field by field when it is read, as messages are.
 *
 * D1. A row that cannot be read is a broken invariant, not a wrong request: `InvariantError`, which stops the node.
 */
export interface StoredFormat {
  /** In the message of the error. */
  readonly what: string;
  /** Of the format: the first field. A row of another one is not read. */
  readonly version: number;
  /** How many fields follow the version. */
  readonly fields: number;
}

export function encodeStored({ version }: StoredFormat, fields: readonly unknown[]): Buffer {
  return packPlain([version, ...fields]);
}

/**
 * The inverse, of one format or of several that are read; `decode` checks the fields with the functions of `check.ts`
 * (D1).
 */
export function decodeStored<T>(
  formats: StoredFormat | readonly [StoredFormat, ...StoredFormat[]],
  bytes: Bytes,
  decode: (fields: readonly unknown[]) => T,
): T {
  const known: readonly StoredFormat[] = 'what' in formats ? [formats] : formats;
  const what = known[0]?.what ?? 'a row';
  try {
    const raw = unpack(bytes, 0);
    if (!Array.isArray(raw)) throw invalid(what);
    const [found] = raw;
    const format = known.find(({ version }) => version === found);
    if (format === undefined) {
      const versions = known.map(({ version }) => version).join(', ');
      throw invalid(`format ${String(found)}, and this version reads ${versions}`);
    }
    return decode(asFields(raw, 1 + format.fields, what).slice(1));
  } catch (cause) {
    if (!(cause instanceof ServiceError || cause instanceof UnpackError)) throw cause;
    throw new InvariantError(`${what} cannot be read: ${cause.message}`, { cause });
  }
}

/** A Raft group's configuration, in whose shape the Raft library keeps it. */
interface ConfFields {
  readonly voters: readonly number[];
  readonly votersOutgoing: readonly number[];
  readonly learners: readonly number[];
  readonly learnersNext: readonly number[];
  readonly autoLeave: boolean;
}

export function encodeConfFields(conf: ConfFields): unknown[] {
  return [conf.voters, conf.votersOutgoing, conf.learners, conf.learnersNext, conf.autoLeave];
}

export function decodeConfFields(raw: unknown): ConfFields {
  const f = asFields(raw, 5, 'configuration');
  const ids = (list: unknown): number[] => asList(list, 'configuration', (id) => asCount(id, 'replica id'));
  return {
    voters: ids(f[0]),
    votersOutgoing: ids(f[1]),
    learners: ids(f[2]),
    learnersNext: ids(f[3]),
    autoLeave: asBool(f[4], 'autoLeave'),
  };
}
