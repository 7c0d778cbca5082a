/**
 * Shared by both ends of a snapshot's transfer: options, counters, and the errors that the sending host distinguishes.
 */
import { assert, ServiceError } from '@remora/base';

/** How snapshots travel between nodes. */
export interface SnapshotTransferOptions {
  /**
   * Bytes per chunk, at most 256 KiB. Larger chunks cost less CPU for the same bytes, about half as much at 256 KiB,
   * but delay other groups' messages for longer.
   */
  readonly chunkBytes: number;
  /** Chunks sent and not yet stored; the smaller of the two nodes' limits applies. */
  readonly windowChunks: number;
  /** The sender gives up a receiver that sends nothing for this long while an answer is pending. */
  readonly silenceMs: number;
  /** While storing or installing takes time, the receiver reports at this interval that it is still working. */
  readonly workingMs: number;
  /** How long a broken transfer is kept: the sender dials again, the receiver keeps its data. */
  readonly resumeMs: number;
  /** Pause before dialling again; doubles with each failure up to `backoffMaxMs`, less a random part. */
  readonly backoffMinMs: number;
  readonly backoffMaxMs: number;
}

export const SNAPSHOT_TRANSFER_DEFAULTS: SnapshotTransferOptions = Object.freeze({
  chunkBytes: 64 * 1024,
  windowChunks: 8,
  silenceMs: 30_000,
  workingMs: 5_000,
  resumeMs: 15_000,
  backoffMinMs: 25,
  backoffMaxMs: 250,
});

const CHUNK_BYTES_MAX = 256 * 1024;

/** Fills in the defaults and checks them. Throws `InvariantError` for options that cannot work. */
export function snapshotTransferOptions(given: Partial<SnapshotTransferOptions> = {}): SnapshotTransferOptions {
  const options: SnapshotTransferOptions = { ...SNAPSHOT_TRANSFER_DEFAULTS, ...given };
  for (const [name, value] of Object.entries(options)) {
    assert(Number.isFinite(value) && value > 0, `snapshot option ${name} must be above 0, not ${value}`);
  }
  assert(options.chunkBytes <= CHUNK_BYTES_MAX, 'chunkBytes must not be above 256 KiB');
  assert(options.workingMs < options.silenceMs, 'workingMs must be below silenceMs');
  assert(options.backoffMinMs <= options.backoffMaxMs, 'backoffMinMs must not be above backoffMaxMs');
  return Object.freeze(options);
}

/** Counters of one node's snapshot transfers since its start. */
export interface SnapshotTraffic {
  /** Bytes of sent chunks, including repetitions. */
  sentBytes: number;
  receivedBytes: number;
  /** Streams that continued a transfer after a break, counted by the sender. */
  resumed: number;
  /** Bytes kept for sending again, over all transfers: now, and the maximum so far. */
  sendBuffered: number;
  sendBufferedMost: number;
  /** Bytes received and not stored yet, over all transfers: now, and the maximum so far. */
  receiveBuffered: number;
  receiveBufferedMost: number;
}

export function newTraffic(): SnapshotTraffic {
  return {
    sentBytes: 0,
    receivedBytes: 0,
    resumed: 0,
    sendBuffered: 0,
    sendBufferedMost: 0,
    receiveBuffered: 0,
    receiveBufferedMost: 0,
  };
}

/** The receiver has no place for a snapshot now. Its source was not read: the same snapshot may be offered again. */
export function snapshotBusy(reason: string): ServiceError {
  return new ServiceError('RESOURCE_EXHAUSTED', reason);
}

export function isSnapshotBusy(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'RESOURCE_EXHAUSTED';
}

export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
