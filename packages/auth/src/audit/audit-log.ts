/**
 * The audit log: a line of JSON for each event.
 *
 * AL1. `record` waits for nothing: a slow or full disk holds up no request.
 * AL2. At most `QUEUE_BYTES_MAX` wait to be written. Beyond that, lines are dropped and counted; once there is room, a
 *      line says how many are missing at that place.
 * AL3. One write is in progress at a time, and lines keep their order.
 * AL4. A write that failed is repeated as a whole after `RETRY_MS`, so a line may be in the file twice. The node's own
 *      log says when it begins to fail, and when it succeeds again.
 * AL5. A line has no control character that a terminal or a reader of lines would act on, and its texts are bounded
 *      (audit-line.ts).
 */
import { type Clock, escapeHidden, type Logger, type Timer } from '@remora/base';
import type { Audit, AuditEvent } from './audit.ts';
import { boundedEvent } from './audit-line.ts';

/** Appends to the audit log's file. */
export interface AuditSink {
  /** Resolves when the text is written. One call at a time. */
  append(text: string): Promise<void>;
  /** The next call of `append` opens the file again, because its name may stand for another one. */
  reopen(): void;
  close(): Promise<void>;
}

export interface AuditLogDeps {
  readonly clock: Pick<Clock, 'wallMs' | 'setTimer'>;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
  readonly sink: AuditSink;
  /** A time in ISO 8601. */
  readonly timeText: (wallMs: number) => string;
  /** Whether writes that succeeded are recorded too. */
  readonly writes: boolean;
}

export interface AuditStats {
  readonly lines: number;
  readonly dropped: number;
  readonly queueBytes: number;
}

/** AL2. */
export const QUEUE_BYTES_MAX = 4 * 2 ** 20;
/** AL4. */
const RETRY_MS = 1_000;

export class AuditLog implements Audit {
  readonly isOn = true;
  readonly writes: boolean;
  readonly #deps: AuditLogDeps;
  #waiting: string[] = [];
  /** Of all that waits, and of what is being written. */
  #queueBytes = 0;
  #lines = 0;
  #dropped = 0;
  /** Since the last line that said how many. */
  #unsaid = 0;
  #writing: Promise<void> | undefined;
  #retry: Timer | undefined;
  #hasFailed = false;
  #isClosed = false;

  constructor(deps: AuditLogDeps) {
    this.#deps = deps;
    this.writes = deps.writes;
  }

  get stats(): AuditStats {
    return { lines: this.#lines, dropped: this.#dropped, queueBytes: this.#queueBytes };
  }

  record(event: AuditEvent): void {
    if (this.#isClosed) return;
    const { clock, timeText } = this.#deps;
    const time = timeText(clock.wallMs());
    const missing = this.#unsaid === 0 ? '' : textOf({ time, action: 'auditLinesDropped', lines: this.#unsaid });
    const text = missing + textOf(lineOf(time, event));
    const bytes = Buffer.byteLength(text);
    if (this.#queueBytes + bytes > QUEUE_BYTES_MAX) {
      this.#dropped++; // AL2
      this.#unsaid++;
      return;
    }
    this.#lines++;
    this.#unsaid = 0;
    this.#queueBytes += bytes;
    this.#waiting.push(text);
    if (this.#writing === undefined && this.#retry === undefined) this.#write();
  }

  /** AL3. */
  #write(): void {
    const text = this.#waiting.join('');
    if (text === '') return;
    this.#waiting = [];
    this.#writing = this.#deps.sink.append(text).then(
      () => this.#wrote(Buffer.byteLength(text)),
      (error: unknown) => this.#failed(text, error),
    );
  }

  #wrote(bytes: number): void {
    this.#writing = undefined;
    this.#queueBytes -= bytes;
    if (this.#hasFailed) this.#deps.logger.info({ dropped: this.#dropped }, 'the audit log is written again');
    this.#hasFailed = false;
    this.#write();
  }

  /** AL4. */
  #failed(text: string, error: unknown): void {
    this.#writing = undefined;
    this.#waiting.unshift(text);
    if (!this.#hasFailed) {
      const advice = 'free space, or correct the mode of its directory; lines that do not fit in memory are dropped';
      this.#deps.logger.warn({ error: String(error), advice }, 'the audit log cannot be written');
    }
    this.#hasFailed = true;
    if (this.#isClosed) return;
    this.#retry = this.#deps.clock.setTimer(RETRY_MS, () => {
      this.#retry = undefined;
      this.#write();
    });
  }

  /** Uses the file that has the name now, from the next line on. */
  reopen(): void {
    this.#deps.sink.reopen();
  }

  /** Resolves when everything is written, or a last try has failed. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#retry?.cancel();
    this.#retry = undefined;
    if (this.#writing === undefined) this.#write();
    while (this.#writing !== undefined) await this.#writing;
    await this.#deps.sink.close();
  }
}

function textOf(line: object): string {
  return `${escapeHidden(JSON.stringify(line))}\n`;
}

/** In the order in which people read it. */
function lineOf(time: string, event: AuditEvent): object {
  const { principal, method, address, door, action, decision, targets, ...more } = boundedEvent(event);
  return {
    ...{ time, principal: principal ?? null, method, address: address ?? null, door: door ?? null, action, decision },
    ...(targets.length > 0 && { targets }),
    ...more,
  };
}
