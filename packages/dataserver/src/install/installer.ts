/**
 * Installs snapshots: a snapshot is first staged in a file, then replaces the replica's rows (docs/decisions/0006).
 *
 * I1. Until the staged file is complete, checked and durable, the replica is untouched. If the transfer breaks off
 *     earlier, the replica stays exactly as it was, and the file is removed, at the latest at the next start.
 * I2. The marker then makes the new state the replica's, whatever happens: from that moment on only a broken invariant
 *     ends the work early, and the next start repeats it from the file before the replica runs.
 * I3. While rows are being replaced, nothing reads or changes them (`begins`, `replaced`), and no replica that shares
 *     keys with them is created (`replacing`).
 * I4. The file is deleted after the marker. So if a marker's file is missing, the marker was removed before, and the
 *     engine has lost that removal.
 * I5. Memory is bounded by a frame of the stream and a batch of the engine, whatever the size of the snapshot.
 * I6. The deleted rows are those that the replica had and those that the snapshot brings: the range may have been cut
 *     or extended in between. If another replica here has some of these keys by now, the snapshot is refused until that
 *     replica is cut or gone (traps 12).
 */
import {
  assert,
  type Bytes,
  type Disk,
  type Engine,
  InvariantError,
  type Logger,
  type Rebuild,
  type Row,
  ServiceError,
  type Span,
} from '@remora/base';
import type { SnapshotMeta, SnapshotReceiver } from '@remora/raft';
import { StoreDamagedError } from '../engine/store-errors.ts';
import { hullOf, rangeSpans, spansOverlap } from '../state/bounds.ts';
import { allInstallsSpan, installKey } from '../state/keys.ts';
import { decodeMarker, encodeMarker, type InstallMarker } from './marker.ts';
import { SnapshotParser } from './snapshot-stream.ts';
import { discardUnfinished, type StagedFile, StagedFiles } from './staged-files.ts';

export interface InstallerDeps {
  readonly engine: Engine;
  /** Where snapshots are staged; its calls should not block the event loop. */
  readonly disk: Disk;
  readonly logger: Logger;
}

/** The rows that record the end of other replicas here; `written` is called when they are durable. */
export type Endings = NonNullable<Rebuild['withMarker']>;

export const NO_ENDINGS: Endings = { rows: [], written: () => {} };

/** The replica that a snapshot is for. */
export interface InstallTarget {
  readonly rangeId: number;
  readonly replicaId: number;
  readonly meta: SnapshotMeta;
  /** The keys that the replica has now. Nothing is applied to it until the installation has ended. */
  readonly span: Span;
  /** Resolves when no other range relies on the replica's state, such as a range that was split off it. */
  readonly settled: () => Promise<void>;
  /** Returns another range that has keys of this span here (I6). */
  readonly sharing: (span: Span) => number | undefined;
  /**
   * The rows of this span are about to be deleted: from now on the replica neither reads nor changes them (I3). Returns
   * what becomes durable with the marker: the end of ranges whose keys the snapshot brings.
   */
  readonly begins: (span: Span) => Endings;
  /** The new rows are durable; called in the step in which they become visible. */
  readonly replaced: () => void;
}

const DIR = 'snapshots';

/**
 * Removes files that were received in part when the node ended. Called before the node's log and engine are opened:
 * they need room, and these files may have filled the disk.
 */
export function discardUnfinishedSnapshots(disk: Disk): Promise<void> {
  return discardUnfinished(disk, DIR);
}

export class Installer {
  readonly #deps: InstallerDeps;
  readonly #files: StagedFiles;
  /** By range (I3). */
  readonly #markers = new Map<number, InstallMarker>();
  #cleaned: Promise<void> = Promise.resolve();
  #stopped = false;

  constructor(deps: InstallerDeps) {
    this.#deps = deps;
    this.#files = new StagedFiles(deps.disk, DIR);
  }

  /**
   * Markers of installations that a crash interrupted: each must be finished by `resume`. Called once, before anything
   * else.
   */
  interrupted(): readonly InstallMarker[] {
    for (const { value } of this.#deps.engine.scanResident(allInstallsSpan())) {
      const marker = decodeMarker(value);
      this.#markers.set(marker.rangeId, marker);
    }
    return [...this.#markers.values()];
  }

  /** Removes files that no marker names (I1). New snapshots wait for it. */
  clean(): Promise<void> {
    this.#cleaned = this.#clean();
    return this.#cleaned;
  }

  async #clean(): Promise<void> {
    const stale = await this.#files.discardExcept(new Set([...this.#markers.values()].map(({ file }) => file)));
    if (stale.length > 0) this.#deps.logger.info({ files: stale }, 'removed snapshots that were not received whole');
  }

  /**
   * Returns the range whose rows are being replaced and that shares keys with the span; undefined if there is none
   * (I3).
   */
  replacing(span: Span): number | undefined {
    for (const marker of this.#markers.values()) if (spansOverlap(span, marker.span)) return marker.rangeId;
    return undefined;
  }

  receive(target: InstallTarget): SnapshotReceiver {
    return new Incoming(target, {
      create: async () => {
        await this.#cleaned;
        return this.#files.create(target.rangeId);
      },
      remove: (file) => this.#files.remove(file.nameNow),
      install: (file, span, progress) => this.#install(file, { ...target, span: hullOf(target.span, span) }, progress),
    });
  }

  /** I2. */
  async #install(staged: StagedFile, target: InstallTarget, progress: () => void): Promise<void> {
    const { rangeId, replicaId, meta, span } = target;
    const { index, term } = meta;
    const marker = { rangeId, replicaId, span, applied: { index, term }, file: staged.name, bytes: staged.bytes };
    this.#markers.set(rangeId, marker);
    const withMarker = target.begins(span);
    await this.#replace(marker, { withMarker, replaced: target.replaced, progress });
  }

  /**
   * Finishes an installation that a crash interrupted. Rejects with an `InvariantError`, or with a `StoreDamagedError`
   * if the file is missing; then the node must stop.
   */
  async resume(marker: InstallMarker): Promise<void> {
    const { rangeId, applied, file } = marker;
    if (!(await this.#files.has(file))) {
      throw new StoreDamagedError(`range ${rangeId}`, `snapshots/${file} was installed there, and that is lost`); // I4
    }
    this.#deps.logger.info({ range: rangeId, index: applied.index }, 'continues installing a snapshot');
    const nobody = (): void => {};
    await this.#replace(marker, { withMarker: NO_ENDINGS, replaced: nobody, progress: nobody });
  }

  async #replace(
    marker: InstallMarker,
    { withMarker, replaced, progress }: Pick<Rebuild, 'replaced' | 'progress'> & { readonly withMarker: Endings },
  ): Promise<void> {
    const { engine, logger } = this.#deps;
    const { rangeId, applied, bytes, file, span } = marker;
    try {
      await engine.rebuild({
        spans: rangeSpans(rangeId, span),
        marker: { key: installKey(rangeId), value: encodeMarker(marker) },
        withMarker,
        rows: this.#rows(marker),
        replaced: () => {
          this.#markers.delete(rangeId);
          replaced();
        },
        progress,
        failure: (cause) => failure(marker, cause),
      });
    } catch (error) {
      // The node is shutting down and the replica is between two states: nothing may use either of them.
      if (this.#stopped) return new Promise(() => {});
      throw error instanceof InvariantError ? error : failure(marker, error);
    }
    logger.info({ range: rangeId, index: applied.index, bytes }, 'installed a snapshot');
    await this.#remove(file); // I4
  }

  async *#rows({ rangeId, applied, file, bytes }: InstallMarker): AsyncGenerator<readonly Row[]> {
    const parser = new SnapshotParser({ rangeId, applied });
    let read = 0;
    for await (const piece of this.#files.read(file)) {
      read += piece.length;
      yield* parser.push(piece);
    }
    assert(read === bytes, `the staged file has ${read} bytes of ${bytes}`);
    parser.finish();
  }

  async #remove(file: string): Promise<void> {
    await this.#files.remove(file).catch((error: unknown) => {
      this.#deps.logger.warn({ file, error: String(error) }, 'could not remove the file of a snapshot');
    });
  }

  /** The node is stopping: the next start finishes what is in progress. */
  stop(): void {
    this.#stopped = true;
  }
}

function failure({ rangeId, replicaId, file }: InstallMarker, cause: unknown): InvariantError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message =
    `replica ${replicaId} of range ${rangeId} could not install its snapshot: ${reason}. It holds no usable state until ` +
    `that is done; the next start tries again from snapshots/${file}. Make sure that the disk has space; if the file is ` +
    'damaged, remove this replica and let the cluster make a new one';
  return new InvariantError(message, { cause });
}

interface Staging {
  create(): Promise<StagedFile>;
  remove(file: StagedFile): Promise<void>;
  /** The file is complete, checked and durable, and brings the rows of `span`. */
  install(file: StagedFile, span: Span, progress: () => void): Promise<void>;
}

/** Receives one snapshot into its file (I1). */
class Incoming implements SnapshotReceiver {
  readonly #target: InstallTarget;
  readonly #staging: Staging;
  readonly #parser: SnapshotParser;
  #file: StagedFile | undefined;

  constructor(target: InstallTarget, staging: Staging) {
    const { rangeId, meta } = target;
    this.#target = target;
    this.#staging = staging;
    this.#parser = new SnapshotParser({ rangeId, applied: { index: meta.index, term: meta.term } });
  }

  async chunk(bytes: Bytes): Promise<void> {
    for (const rows of this.#parser.push(bytes)) void rows; // checked here, read again from the file
    this.#checkShared();
    await this.#onDisk(async () => {
      this.#file ??= await this.#staging.create();
      await this.#file.append(bytes);
    });
  }

  async finish(progress: () => void = () => {}): Promise<void> {
    const file = this.#file;
    try {
      await this.#target.settled();
      this.#parser.finish();
      await this.#onDisk(async () => file?.commit());
      this.#checkShared(); // in the step in which the marker is set
    } catch (error) {
      this.abort();
      throw error;
    }
    const { span } = this.#parser;
    assert(file !== undefined && span !== undefined, 'what was parsed was staged');
    await this.#staging.install(file, span, progress);
  }

  /** I6. */
  #checkShared(): void {
    const { span } = this.#parser;
    if (span === undefined) return;
    const { rangeId, sharing } = this.#target;
    const other = sharing(hullOf(this.#target.span, span));
    if (other === undefined) return;
    const message = `the snapshot of range ${rangeId} has keys that range ${other} has here; it may be sent again later`;
    throw new ServiceError('RESOURCE_EXHAUSTED', message);
  }

  /** A file that cannot be removed now is removed at the next start. */
  abort(): void {
    const file = this.#file;
    this.#file = undefined;
    if (file === undefined) return;
    const remove = (): Promise<void> => this.#staging.remove(file);
    void file
      .close()
      .then(remove, remove)
      .catch(() => undefined);
  }

  /** Nothing depends on the file yet: if the disk fails here, only the transfer fails. */
  async #onDisk(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`the snapshot of range ${this.#target.rangeId} cannot be staged: ${reason}`, { cause: error });
    }
  }
}
