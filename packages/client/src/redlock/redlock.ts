import { EventEmitter } from 'node:events';
import { ServiceError } from '@remora/base';
import type { RemoraClient } from '../client.ts';
import { requesterOf } from '../client-requester.ts';
import { requireFunction } from '../options/option-kinds.ts';
import { shown } from '../options/options.ts';
import type { ClientPorts } from '../ports.ts';
import { acquireAll, repeat } from './acquisition.ts';
import { Attempts } from './attempts.ts';
import { AutoExtension, type RedlockAbortSignal, requireThreshold, type UsedLock } from './auto-extension.ts';
import type { ExecutionResult, ExecutionStats } from './execution-stats.ts';
import {
  extendByValue,
  extendHeld,
  type Held,
  locksOf,
  releaseByValue,
  releaseHeld,
  ttlMsFor,
  valueFor,
} from './held.ts';
import { ExecutionError, ResourceLockedError, voteOf } from './redlock-errors.ts';
import { DEFAULT_SETTINGS, expirationOf, requireDuration, type Settings, settingsOf } from './settings.ts';

/** What this process acquired, by its locks. A lock that was made by hand holds nothing here. */
const HELD = new WeakMap<Lock, Held>();

/** Resources that are held together, for a time. Made by `Redlock.acquire` and `Redlock.extend`. */
export class Lock {
  readonly redlock: Redlock;
  readonly resources: string[];
  /** Identifies this hold: with it and the resources, another process can release and extend the lock, too. */
  readonly value: string;
  /** How the operation that returned this lock went. */
  readonly attempts: readonly Promise<ExecutionStats>[];
  /** The moment until which it is held, in ms since 1970. 0 once it was released, or extended by another `Lock`. */
  expiration: number;

  constructor(
    redlock: Redlock,
    resources: string[],
    value: string,
    attempts: readonly Promise<ExecutionStats>[],
    expiration: number,
  ) {
    this.redlock = redlock;
    this.resources = resources;
    this.value = value;
    this.attempts = attempts;
    this.expiration = expiration;
  }

  /**
   * The fencing version of the first resource, also after the lock was lost; 0 for a lock that is none of this process.
   * Pass it to whatever the lock protects, which should refuse a version below the highest one that it has seen.
   * redlock has nothing like it.
   */
  get version(): number {
    return this.versions[0] ?? 0;
  }

  /** The fencing versions, one for each resource, in their order. */
  get versions(): readonly number[] {
    return locksOf(HELD.get(this)).map(({ version }) => version);
  }

  /** As `Redlock.release`. */
  release(): Promise<ExecutionResult> {
    return this.redlock.release(this);
  }

  /** As `Redlock.extend`. */
  extend(duration: number): Promise<Lock> {
    return this.redlock.extend(this, duration);
  }
}

/** A function that `using` runs. `lock` is what redlock does not have: the fencing versions. */
export type Routine<T> = (signal: RedlockAbortSignal, lock: UsedLock) => Promise<T>;

/**
 * The API of `redlock` 5.0.0-beta.2 on Remora: `new Redlock([remora])`, with the client that `connect` returns.
 *
 * Each resource is the lock of that name in the default namespace: `remora.lock(name)` and redlock exclude each other.
 * An `error` event tells of each attempt that failed, and needs no listener.
 */
export class Redlock extends EventEmitter {
  /** The one client. */
  readonly clients: Set<RemoraClient>;
  readonly settings: Settings;
  readonly #client: RemoraClient;
  readonly #ports: ClientPorts;

  /** @throws ServiceError INVALID_ARGUMENT for anything but one client of Remora, and for wrong settings. */
  constructor(clients: Iterable<RemoraClient>, settings: Partial<Settings> = {}) {
    super();
    const { client, ports } = onlyClient(clients);
    this.#client = client;
    this.#ports = ports;
    this.clients = new Set([client]);
    this.settings = settingsOf(settings, DEFAULT_SETTINGS);
    // An emitter without this listener would throw each error.
    this.on('error', () => {});
  }

  /** Closes the client, which releases all that it holds: see `RemoraClient.close`. */
  async quit(): Promise<void> {
    await this.#client.close();
  }

  /**
   * Acquires all resources for `duration` ms, or none of them.
   *
   * @throws ExecutionError when no attempt succeeded; ServiceError INVALID_ARGUMENT for wrong arguments.
   */
  async acquire(resources: string[], duration: number, settings: Partial<Settings> = {}): Promise<Lock> {
    const used = settingsOf(settings, this.settings);
    requireResources(resources);
    requireDuration(duration);
    const attempts = this.#attempts(used);
    const [client, ports] = [this.#client, this.#ports];
    const wanted = { client, ports, resources: [...resources], ttlMs: ttlMsFor(duration), settings: used };
    const held = await acquireAll(wanted, attempts);
    const certainMs = held?.remainingMs ?? duration;
    const expiration = expirationOf({ durationMs: duration, certainMs }, used, ports.clock);
    const lock = new Lock(this, wanted.resources, valueFor(held), attempts.list, expiration);
    HELD.set(lock, held);
    return lock;
  }

  /**
   * Releases the lock.
   *
   * @throws ExecutionError when it was not held any more, in part or whole, or when the cluster did not answer: the
   *   client then goes on trying until the lock expires.
   */
  async release(lock: Lock, settings: Partial<Settings> = {}): Promise<ExecutionResult> {
    const used = settingsOf(settings, this.settings);
    requireLock(lock);
    lock.expiration = 0;
    const attempts = this.#attempts(used);
    let isUnknown = false;
    const attempt = async (): Promise<void> => {
      try {
        await this.#release(lock);
      } catch (error) {
        // An earlier attempt has released it.
        if (isUnknown && voteOf(error) instanceof ResourceLockedError) return;
        isUnknown = true;
        throw error;
      }
    };
    const what = `release of ${lock.resources.join(', ')}`;
    await repeat({ ports: this.#ports, settings: used }, attempts, { what, attempt, afterLocked: 'ends' });
    return { attempts: attempts.list };
  }

  async #release(lock: Lock): Promise<void> {
    if (lock.resources.length === 0) return;
    const held = HELD.get(lock);
    const isHeld = held?.state === 'active' || held?.state === 'suspended';
    // What this process no longer counts on may still be held in the cluster.
    await (isHeld ? releaseHeld(held) : releaseByValue(this.#client, lock));
  }

  /**
   * Returns a lock on the same resources that is held for `duration` ms from now on. The given one has expired then.
   *
   * @throws ExecutionError when the lock has expired, is not held any more, or the cluster did not answer; ServiceError
   *   INVALID_ARGUMENT for wrong arguments.
   */
  async extend(existing: Lock, duration: number, settings: Partial<Settings> = {}): Promise<Lock> {
    const used = settingsOf(settings, this.settings);
    requireLock(existing);
    requireDuration(duration);
    const { clock } = this.#ports;
    if (existing.expiration < clock.wallMs()) throw new ExecutionError('the lock has already expired', []);
    const attempts = this.#attempts(used);
    const { resources, value } = existing;
    const certainMs = await repeat({ ports: this.#ports, settings: used }, attempts, {
      what: `extension of ${resources.join(', ')}`,
      attempt: () => this.#extend(existing, duration),
      afterLocked: 'ends',
    });
    existing.expiration = 0;
    const expiration = expirationOf({ durationMs: duration, certainMs }, used, clock);
    const lock = new Lock(this, resources, value, attempts.list, expiration);
    HELD.set(lock, HELD.get(existing));
    return lock;
  }

  async #extend(lock: Lock, duration: number): Promise<number> {
    if (lock.resources.length === 0) return duration;
    const held = HELD.get(lock);
    return held === undefined ? extendByValue(this.#client, lock) : extendHeld(held, ttlMsFor(duration));
  }

  /**
   * Acquires all resources, runs `routine`, extending the lock as long as it runs, and releases the lock. Returns the
   * result of `routine`, or rejects with its error.
   *
   * `signal` aborts, with the reason in `signal.error`, when the lock could not be extended before it expired.
   *
   * @throws ExecutionError when the lock was not acquired, or was no longer held at the end; ServiceError
   *   INVALID_ARGUMENT for wrong arguments.
   */
  using<T>(resources: string[], duration: number, settings: Partial<Settings>, routine?: Routine<T>): Promise<T>;
  using<T>(resources: string[], duration: number, routine: Routine<T>): Promise<T>;
  async using<T>(
    resources: string[],
    duration: number,
    settingsOrRoutine: Partial<Settings> | Routine<T>,
    routine?: Routine<T>,
  ): Promise<T> {
    const hasSettings = typeof settingsOrRoutine !== 'function';
    const work = hasSettings ? routine : settingsOrRoutine;
    const settings = settingsOf(hasSettings ? settingsOrRoutine : {}, this.settings);
    requireFunction(work, 'routine');
    requireDuration(duration);
    requireThreshold(duration, settings);
    const lock = await this.acquire(resources, duration, settings);
    const extension = new AutoExtension(lock, {
      extend: (last) => this.extend(last, duration, settings),
      lost: HELD.get(lock)?.signal,
      ...{ settings, ports: this.#ports },
    });
    let result: T;
    try {
      result = await (work as Routine<T>)(extension.signal, lock);
    } catch (error) {
      // The routine's own error says more than that of the release.
      const last = await extension.end();
      await last.release().catch(() => {});
      throw error;
    }
    const last = await extension.end();
    await last.release();
    return result;
  }

  #attempts(settings: Settings): Attempts {
    return new Attempts(this.#client, settings, (error) => this.emit('error', error));
  }
}

/** @throws ServiceError INVALID_ARGUMENT for anything but one client. */
function onlyClient(clients: Iterable<RemoraClient>): { client: RemoraClient; ports: ClientPorts } {
  const isList = typeof clients === 'object' && clients !== null && Symbol.iterator in clients;
  const [client, ...others] = isList ? new Set(clients) : [];
  const ports = requesterOf(client)?.ports;
  if (client === undefined || ports === undefined) {
    throw invalid(
      `new Redlock: expected a list with the client that connect() of remora returned, got ${shown(client)}`,
    );
  }
  if (others.length > 0) {
    throw invalid(
      `new Redlock: expected one client, got ${others.length + 1}; one cluster takes the place of all Redis servers, ` +
        'and its gateways are `endpoints` of connect()',
    );
  }
  return { client, ports };
}

function requireResources(resources: readonly string[]): void {
  const isRight = Array.isArray(resources) && resources.every((name) => typeof name === 'string' && name !== '');
  if (!isRight) throw invalid(`resources: expected a list of names, such as ['orders/42'], got ${shown(resources)}`);
}

function requireLock(lock: Lock): void {
  if (!(lock instanceof Lock)) throw invalid(`lock: expected a Lock that acquire() returned, got ${shown(lock)}`);
}

function invalid(message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message);
}
