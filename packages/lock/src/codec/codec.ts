/**
 * The lock layer's messages as plain data for MessagePack: on the internal wire, in the log, and in the replicated
 * memory of outcomes. Every acquire and release has several commands and results. These are hand-coded in the layout
 * that `layout.ts` describes (C1), and write themselves; a test compares the two.
 *
 * C2. Decoded bytes are slices of the frame; the records of a lock copy what they keep.
 * C3. Every field is checked when it is decoded: `ServiceError` INVALID_ARGUMENT for anything that cannot have been
 *     encoded here.
 */
import type { Bytes } from '@remora/base';
import { LEASE_MAX } from '../limits.ts';
import type { LockNews } from '../procedures/events.ts';
import type {
  Holder,
  HolderState,
  LockCommand,
  LockId,
  LockQuery,
  LockQueryResult,
  LockResult,
  LockState,
  Owner,
  Revocation,
} from '../types.ts';
import { type CommandV1, layout, REFUSAL_CODES, type RefusalV1, VERSION, VERSION_OF_KINDS } from './layout.ts';
import { COMMAND, PackableCommand, PackableResult, RESULT } from './packable.ts';
import { malformed } from './schema.ts';

export function encodeLockCommand(command: LockCommand): unknown {
  switch (command.type) {
    case 'acquire':
      if (command.as === undefined && !command.keepData && !command.delayMs) break;
      return layout.commandOfKinds.encode({ ...command, as: command.as ?? { type: 'alone' } });
    case 'forceRelease': {
      const { by = '', reason = '', upToVersion = 0 } = command;
      if (by === '' && reason === '' && upToVersion === 0) break;
      return layout.commandOfKinds.encode({ ...command, by, reason, upToVersion });
    }
    case 'downgrade':
    case 'setCapacity':
    case 'setData':
    case 'setDepth':
    case 'forget':
    case 'endDelay':
    case 'revoke':
      return layout.commandOfKinds.encode(command);
  }
  return new PackableCommand(command);
}

/**
 * Throws for a command that could not be decoded again (C3). The types ensure everything except the values of numbers,
 * so for frequent commands only these are checked.
 */
export function checkLockCommand(command: LockCommand): void {
  const encoded = encodeLockCommand(command);
  if (encoded instanceof PackableCommand) checkNumbers(encoded.command);
  else decodeLockCommand(encoded);
}

function checkNumbers(c: CommandV1): void {
  if (c.type === 'forceRelease') return;
  asLease(c.owner.session.lease);
  asInt(c.owner.session.incarnation);
  asTime(c.deadlineMs);
  asInt(c.attempt ?? 0);
  if (c.type !== 'acquire') return;
  asTime(c.waitUntilMs);
  asInt(c.depthMax);
}

function decodeCommandOfKinds(raw: unknown): LockCommand {
  const command = layout.commandOfKinds.decode(raw);
  if (command.type !== 'acquire') return command;
  const { as, ...acquire } = command;
  return as.type === 'alone' ? acquire : { ...acquire, as };
}

/** An absent `attempt` comes back as 0, which means the same. */
export function decodeLockCommand(raw: unknown): LockCommand {
  if (isOfKinds(raw)) return decodeCommandOfKinds(raw);
  const variant = versioned(raw);
  switch (variant[0]) {
    case COMMAND.acquire: {
      const f = fields(variant[1], 8);
      return {
        type: 'acquire',
        lock: decodeLock(f[0]),
        owner: decodeOwner(f[1]),
        wait: asBool(f[2]),
        waitUntilMs: asTime(f[3]),
        deadlineMs: asTime(f[4]),
        depthMax: asInt(f[5]),
        data: asBytes(f[6]),
        attempt: asInt(f[7]),
      };
    }
    case COMMAND.release: {
      const f = fields(variant[1], 5);
      return {
        type: 'release',
        lock: decodeLock(f[0]),
        owner: decodeOwner(f[1]),
        all: asBool(f[2]),
        deadlineMs: asTime(f[3]),
        attempt: asInt(f[4]),
      };
    }
    case COMMAND.cancel: {
      const f = fields(variant[1], 4);
      return {
        type: 'cancel',
        lock: decodeLock(f[0]),
        owner: decodeOwner(f[1]),
        deadlineMs: asTime(f[2]),
        attempt: asInt(f[3]),
      };
    }
    case COMMAND.forceRelease:
      return { type: 'forceRelease', lock: decodeLock(fields(variant[1], 1)[0]) };
    default:
      throw malformed('a lock command', variant[0]);
  }
}

export function encodeLockResult(result: LockResult): unknown {
  switch (result.type) {
    case 'granted': {
      const { keptData } = result;
      if (keptData !== undefined) return layout.resultOfKinds.encode({ ...result, keptData });
      break;
    }
    case 'capacity':
    case 'forgotten':
    case 'revoking':
      return layout.resultOfKinds.encode(result);
    case 'refused':
      if (!isRefusalV1(result)) return layout.resultOfKinds.encode(result);
      return new PackableResult(result);
  }
  return new PackableResult(result);
}

function isRefusalV1(refusal: Extract<LockResult, { readonly type: 'refused' }>): refusal is RefusalV1 {
  return REFUSAL_CODES.some((code) => code === refusal.code);
}

export function decodeLockResult(raw: unknown): LockResult {
  if (isOfKinds(raw)) return layout.resultOfKinds.decode(raw);
  const variant = versioned(raw);
  switch (variant[0]) {
    case RESULT.granted: {
      const f = fields(variant[1], 3);
      return { type: 'granted', version: asInt(f[0]), depth: asInt(f[1]), lockTimeMs: asTime(f[2]) };
    }
    case RESULT.queued:
      return { type: 'queued', position: asInt(fields(variant[1], 1)[0]) };
    case RESULT.busy:
      return { type: 'busy', holder: decodeHolder(fields(variant[1], 1)[0]) };
    case RESULT.released: {
      const f = fields(variant[1], 2);
      return { type: 'released', depth: asInt(f[0]), version: asInt(f[1]) };
    }
    case RESULT.canceled:
      return { type: 'canceled', released: asBool(fields(variant[1], 1)[0]) };
    case RESULT.refused: {
      const f = fields(variant[1], 2);
      return { type: 'refused', code: asRefusalCode(f[0]), message: asText(f[1]) };
    }
    default:
      throw malformed('a lock result', variant[0]);
  }
}

export function encodeLockQuery(query: LockQuery): unknown[] {
  if (query.type === 'search' || query.type === 'namespaces') return layout.queryOfKinds.encode(query);
  return query.type !== 'check' && query.allKinds ? layout.queryOfKinds.encode(query) : layout.query.encode(query);
}

export function decodeLockQuery(raw: unknown): LockQuery {
  return isOfKinds(raw) ? layout.queryOfKinds.decode(raw) : layout.query.decode(raw);
}

export function encodeLockQueryResult(result: LockQueryResult): unknown[] {
  if (result.type === 'check') return layout.queryResult.encode(result);
  if (result.type === 'search' || result.type === 'namespaces') return layout.queryResultOfKinds.encode(result);
  const states = result.type === 'list' ? result.locks : [result.state];
  return states.every(isStateV1) ? layout.queryResult.encode(result) : layout.queryResultOfKinds.encode(result);
}

export function decodeLockQueryResult(raw: unknown): LockQueryResult {
  return isOfKinds(raw) ? layout.queryResultOfKinds.decode(raw) : layout.queryResult.decode(raw);
}

/** Encodes the news for one listener, sent together. */
export function encodeLockNews(news: readonly LockNews[]): unknown[] {
  return layout.news.encode(news);
}

export function decodeLockNews(raw: unknown): readonly LockNews[] {
  return layout.news.decode(raw);
}

export function encodeRevocation(revocation: Revocation): unknown {
  return layout.revocation.encode(revocation);
}

export function decodeRevocation(raw: unknown): Revocation {
  return layout.revocation.decode(raw);
}

function isStateV1(state: LockState | undefined): boolean {
  if (state === undefined) return true;
  const { kind, holders, waiters, keptData, forced, revocation, passing } = state;
  if (kind !== 'exclusive' || keptData !== undefined || forced !== undefined || revocation !== undefined) return false;
  if (passing > 0 || holders.some(isMoreThanHolding)) return false;
  return waiters.every(({ mode }) => mode === 'exclusive');
}

function isMoreThanHolding({ keepsData, delayMs }: HolderState): boolean {
  return keepsData || delayMs > 0;
}

// ------------------------------------------------------------------------------------------------ parts

function decodeLock(raw: unknown): LockId {
  const f = fields(raw, 2);
  return { namespace: asText(f[0]), name: asBytes(f[1]) };
}

function decodeOwner(raw: unknown): Owner {
  const f = fields(raw, 2);
  const session = fields(f[0], 2);
  return { session: { lease: asLease(session[0]), incarnation: asInt(session[1]) }, token: asText(f[1]) };
}

function decodeHolder(raw: unknown): Holder {
  const f = fields(raw, 5);
  const { session, token: id } = decodeOwner(f[0]);
  return {
    owner: { session, id },
    version: asInt(f[1]),
    depth: asInt(f[2]),
    lockTimeMs: asTime(f[3]),
    data: asBytes(f[4]),
  };
}

function isOfKinds(raw: unknown): boolean {
  return Array.isArray(raw) && raw[0] === VERSION_OF_KINDS;
}

function versioned(raw: unknown): readonly unknown[] {
  const message = fields(raw, 2);
  if (message[0] !== VERSION) throw malformed(`a message of version ${VERSION}`, message[0]);
  return fields(message[1], 2);
}

function fields(raw: unknown, count: number): readonly unknown[] {
  if (!Array.isArray(raw) || raw.length !== count) throw malformed(`${count} fields`, raw);
  return raw;
}

function asInt(raw: unknown): number {
  if (typeof raw !== 'number' || !Number.isSafeInteger(raw) || raw < 0) throw malformed('an integer', raw);
  return raw;
}

function asTime(raw: unknown): number {
  if (typeof raw !== 'number' || !Number.isFinite(raw) || raw < 0) throw malformed('a time', raw);
  return raw;
}

function asBool(raw: unknown): boolean {
  if (typeof raw !== 'boolean') throw malformed('a truth value', raw);
  return raw;
}

function asText(raw: unknown): string {
  if (typeof raw !== 'string') throw malformed('text', raw);
  return raw;
}

function asBytes(raw: unknown): Bytes {
  if (!(raw instanceof Uint8Array)) throw malformed('bytes', raw);
  return raw;
}

function asLease(raw: unknown): bigint {
  if (typeof raw === 'bigint' && raw >= 0n && raw <= LEASE_MAX) return raw;
  if (typeof raw === 'number' && Number.isSafeInteger(raw) && raw >= 0) return BigInt(raw);
  throw malformed('a lease', raw);
}

function asRefusalCode(raw: unknown): (typeof REFUSAL_CODES)[number] {
  const code = typeof raw === 'number' ? REFUSAL_CODES[raw] : undefined;
  if (code === undefined) throw malformed('a code', raw);
  return code;
}
