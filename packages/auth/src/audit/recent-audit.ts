/**
 * The newest records of the audit log in memory, to be looked at without access to the node's files.
 *
 * RA1. They are kept while authentication is on, also without an audit log, and always with one.
 * RA2. At most `RECORDS_MAX` records and `BYTES_MAX` bytes are kept; the oldest are dropped first. A restart drops all.
 * RA3. Each has a number, one above that of the record before, so that pages stay correct while records are added.
 * RA4. The audit log gets every event first; whether the events are kept here changes nothing for it.
 */
import type { Clock } from '@remora/base';
import type { Audit, AuditEvent } from './audit.ts';
import { type BoundedEvent, boundedEvent } from './audit-line.ts';

/** RA2. */
export const RECORDS_MAX = 1_000;
export const BYTES_MAX = 2 * 2 ** 20;
/** What a record takes beside its texts. */
const RECORD_BYTES = 256;
/** A page of records is part of one message between nodes. */
export const PAGE_BYTES_MAX = 256 * 1024;

interface AuditRecord extends BoundedEvent {
  /** RA3. */
  readonly number: number;
  /** Wall time of the node, in ms since 1970. */
  readonly timeMs: number;
}

export interface AuditPage {
  /** The newest first. */
  readonly records: readonly AuditRecord[];
  /** Whether older ones are kept. */
  readonly more: boolean;
}

interface Kept {
  readonly record: AuditRecord;
  readonly bytes: number;
}

export interface RecentAuditDeps {
  /** The audit log. */
  readonly log: Audit;
  /** Whether authentication is on. */
  readonly isAuthenticating: () => boolean;
  readonly clock: Pick<Clock, 'wallMs'>;
}

export class RecentAudit implements Audit {
  readonly writes: boolean;
  readonly #deps: RecentAuditDeps;
  /** The oldest first. */
  readonly #kept: Kept[] = [];
  #bytes = 0;
  #last = 0;

  constructor(deps: RecentAuditDeps) {
    this.#deps = deps;
    this.writes = deps.log.writes;
  }

  /** RA1. */
  get isOn(): boolean {
    return this.#deps.log.isOn || this.#deps.isAuthenticating();
  }

  record(event: AuditEvent): void {
    this.#deps.log.record(event); // RA4
    if (!this.isOn) return;
    const record = { number: ++this.#last, timeMs: this.#deps.clock.wallMs(), ...boundedEvent(event) };
    const bytes = sizeOf(record);
    this.#kept.push({ record, bytes });
    this.#bytes += bytes;
    while (this.#kept.length > RECORDS_MAX || this.#bytes > BYTES_MAX) this.#bytes -= this.#kept.shift()?.bytes ?? 0;
  }

  /** Records with smaller numbers than `before`; 0: the newest. A page is short if it has `PAGE_BYTES_MAX`. */
  page(before: number, limit: number): AuditPage {
    const older = this.#kept.filter(({ record }) => before === 0 || record.number < before).reverse();
    const records: AuditRecord[] = [];
    let bytes = 0;
    for (const { record, bytes: more } of older) {
      bytes += more;
      if (records.length >= limit || (bytes > PAGE_BYTES_MAX && records.length > 0)) break;
      records.push(record);
    }
    return { records, more: records.length < older.length };
  }
}

function sizeOf({ principal = '', targets, reason = '', requestId = '', address = '', action }: AuditRecord): number {
  const texts = [principal, reason, requestId, address, action, ...targets];
  return texts.reduce((bytes, text) => bytes + Buffer.byteLength(text), RECORD_BYTES);
}
