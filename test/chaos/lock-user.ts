import { ServiceError } from '@remora/base';
import { connect, type HeldLock, type RemoraClient } from 'remora';
import type { HistoryRecorder } from '../checkers/index.ts';
import { pause } from '../e2e/eventually.ts';

/** Who is inside of what a lock protects, as the holders themselves see it. */
export class CriticalSections {
  readonly #inside = new Map<string, { readonly who: string; readonly held: HeldLock }>();
  readonly #faults: string[] = [];

  get faults(): readonly string[] {
    return this.#faults;
  }

  enter(name: string, who: string, held: HeldLock): void {
    const other = this.#inside.get(name);
    // A holder that was told of its loss before another was granted has done its part.
    if (other !== undefined && !other.held.signal.aborted) {
      this.#faults.push(
        `${name}: ${who} entered with version ${held.version} while ${other.who} was inside with ${other.held.version}`,
      );
    }
    this.#inside.set(name, { who, held });
  }

  leave(name: string, held: HeldLock): void {
    if (this.#inside.get(name)?.held === held) this.#inside.delete(name);
  }
}

export interface LockUserOptions {
  readonly name: string;
  readonly endpoints: readonly string[];
  readonly recorder: HistoryRecorder;
  readonly sections: CriticalSections;
}

const WAIT_MS = 4_000;

/** Takes locks and gives them back, with the SDK, and writes down what it saw. */
export class LockUser {
  readonly #options: LockUserOptions;
  readonly #client: RemoraClient;
  #turn = 0;

  private constructor(options: LockUserOptions, client: RemoraClient) {
    this.#options = options;
    this.#client = client;
  }

  static async open(options: LockUserOptions): Promise<LockUser> {
    return new LockUser(options, await connect({ endpoints: options.endpoints, sessionTtl: '10s' }));
  }

  /** One turn: acquire, be inside for a moment, ask whether the lock is still held, release. */
  async turn(lock: string, holdMs: number): Promise<void> {
    const { name, recorder, sections } = this.#options;
    // Every acquire is by a client of its own, as each has an owner token of its own.
    const c = `${name}.${this.#turn++}`;
    const acquire = recorder.begin({ c, k: lock, op: 'acquire' });
    let held: HeldLock;
    try {
      held = await this.#client.lock(lock).acquire({ wait: WAIT_MS });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      // It may have been granted and given back by itself since.
      acquire.unknown();
      recorder.begin({ c, k: lock, op: 'release' }).unknown();
      return;
    }
    acquire.done({ ok: true, out: held.version });
    sections.enter(lock, c, held);
    // Should the session end meanwhile, the server frees the lock by itself.
    const freed = recorder.begin({ c, k: lock, op: 'release', v: held.version });
    await pause(holdMs);
    await this.#check(c, lock, held);
    sections.leave(lock, held);
    if (held.state === 'lost') return freed.unknown();
    freed.drop();
    await this.#release(c, lock, held);
  }

  async close(): Promise<void> {
    await this.#client.close();
  }

  async #check(c: string, lock: string, held: HeldLock): Promise<void> {
    const check = this.#options.recorder.begin({ c, k: lock, op: 'check', v: held.version });
    try {
      const [current = false] = await this.#client.locks.check([{ name: lock, version: held.version }]);
      check.done({ ok: true, out: current });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      check.drop();
    }
  }

  async #release(c: string, lock: string, held: HeldLock): Promise<void> {
    const release = this.#options.recorder.begin({ c, k: lock, op: 'release', v: held.version });
    try {
      await held.release();
      if (held.state === 'lost') release.unknown();
      else release.done({ ok: true });
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      if (error.code === 'LOCK_NOT_HELD' || error.code === 'LOCK_WRONG_OWNER') release.done({ ok: false });
      else release.unknown();
    }
  }
}
