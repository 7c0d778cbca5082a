/**
 * Two clients do at random what locks, sets of locks, barriers and elections can, while answers are lost and commands
 * come late. In the end everything is given back: then nothing may be left at the cluster, nobody may wait, and no
 * timer may keep the process. Meanwhile no client takes a lock for its own that another has been given, where nobody
 * uses force and nothing is being converted. `SDK_SEEDS=2000 npx vitest run test/sdk/lost-and-late` runs more.
 */
import { SeededRandom, ServiceError } from '@remora/base';
import type { ClientSession, HeldLock, RemoraClient } from 'remora';
import { expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

const SEEDS = Number(process.env.SDK_SEEDS ?? 60);
const STEPS = 40;
const TTL = '20s';

type Scope = Pick<RemoraClient, 'lock' | 'rwLock' | 'lockAll' | 'election'>;
type Options = { signal: AbortSignal; wait?: number; token?: string; ttl?: '20s' };
/** What can be given back; a lock also has calls of its own. */
type Thing = AsyncDisposable & { readonly locks?: readonly HeldLock[] };
interface Kept {
  readonly thing: Thing;
  readonly handles: readonly HeldLock[];
}

/** Loses answers, and lets commands come late: an answer of unknown outcome is all that the client hears. */
function loseSome({ backend, clock }: World, random: SeededRandom): { now: boolean } {
  const on = { now: true };
  const send = backend.command.bind(backend);
  const begun = new Set<string>();
  backend.command = (command, options, done) => {
    const fate = on.now ? random.int(100) : 100;
    const id = options.requestId ?? '';
    const lost = (): void => done(new ServiceError('UNKNOWN_OUTCOME', 'lost'), undefined);
    const apply = (): void => {
      begun.add(id);
      const stop = send(command, options, () => {});
      clock.setTimer(2, stop);
    };
    if (fate >= 30) {
      begun.add(id);
      return send(command, options, done);
    }
    if (fate < 12) {
      apply();
      clock.setTimer(2, lost);
    } else {
      // A later attempt of the same request takes its place, and nothing is applied behind its deadline.
      clock.setTimer(1 + random.int(6_000), () => {
        if (!begun.has(id) && backend.rangeTimeMs() <= (options.deadlineMs ?? 0)) apply();
      });
      clock.setTimer(1 + random.int(20), lost);
    }
    return () => {};
  };
  return on;
}

class Life {
  readonly world = new World();
  readonly #random: SeededRandom;
  readonly #on: { now: boolean };
  readonly #forces: boolean;
  readonly #withSessions: boolean;
  readonly #names: readonly string[];
  readonly #clients: RemoraClient[] = [];
  readonly #sessions: ClientSession[] = [];
  readonly #kept: Kept[] = [];
  readonly #aborts: AbortController[] = [];
  readonly #pending = new Set<Promise<unknown>>();
  #converting = 0;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
    this.#on = loseSome(this.world, this.#random);
    this.#forces = seed % 2 === 0;
    this.#withSessions = seed % 4 > 1;
    this.#names = seed % 3 === 0 ? ['a'] : ['a', 'b'];
  }

  async run(): Promise<void> {
    const retry = { attempts: 1 + this.#random.int(3) };
    const options = { retry, requestTimeout: '3s', sessionTtl: TTL } as const;
    for (let i = 0; i < 2; i++) this.#clients.push(await this.world.client(options));
    for (let step = 0; step < STEPS; step++) {
      this.#checkAlone();
      this.#step();
      await this.world.run(this.#random.int(4) === 0 ? this.#random.int(2_000) : this.#random.int(60));
    }
    this.#on.now = false;
    for (const abort of this.#aborts) abort.abort();
    await this.world.run(8_000);
    this.#checkAlone();
    await this.#checkCurrent();
    await this.#giveBack();
    await this.#checkNothingLeft();
  }

  #one<T>(all: readonly T[]): T {
    return all[this.#random.int(all.length)] as T;
  }

  /** What fails here fails rightly, or is found in the end. */
  #track(work: PromiseLike<unknown>): void {
    const settled: Promise<void> = Promise.resolve(work).then(
      () => {},
      () => {},
    );
    this.#pending.add(settled);
    void settled.then(() => this.#pending.delete(settled));
  }

  #keep(work: Promise<Thing | undefined>): void {
    this.#track(
      work.then((thing) => {
        if (thing === undefined) return;
        const handles = thing.locks ?? ('id' in thing ? [thing as unknown as HeldLock] : []);
        this.#kept.push({ thing, handles });
      }),
    );
  }

  #step(): void {
    const random = this.#random;
    const client = this.#one(this.#clients);
    if (this.#withSessions && random.int(8) === 0)
      this.#track(client.session({ ttl: TTL }).then((s) => this.#sessions.push(s)));
    const session = this.#sessions.length > 0 && random.int(2) === 0 ? this.#one(this.#sessions) : undefined;
    if (random.int(8) === 0 && session !== undefined) this.#track(session.close());
    const scope: Scope = session ?? client;
    const [name, options] = [this.#one(this.#names), this.#options()];
    const { token: _, ttl: __, ...plain } = options;
    const what = random.int(14);
    if (what < 3) this.#keep(scope.lock(name).acquire(options));
    else if (what === 3) this.#keep(scope.rwLock(name).read(options));
    else if (what === 4) this.#keep(scope.lockAll(['a', { lock: 'b', shared: true }]).acquire(plain));
    else if (what === 5) this.#track(client.barrier(name).wait(plain));
    else if (what === 6) this.#keep(client.doubleBarrier('d', { parties: 1 + random.int(2) }).enter(plain));
    else if (what === 7) this.#keep(scope.election('e').campaign(plain));
    else if (what === 8 && this.#forces) this.#track(client.locks.forceRelease(this.#one(['a', 'b', 'd', 'e'])));
    else if (this.#kept.length > 0) this.#use(this.#one(this.#kept), plain);
  }

  #options(): Options {
    const random = this.#random;
    const abort = new AbortController();
    this.#aborts.push(abort);
    if (random.int(3) === 0) this.world.clock.setTimer(random.int(3_000), () => abort.abort());
    const wait = this.#one([0, 50, 500, 3_000, undefined]);
    const how = random.int(6);
    return {
      signal: abort.signal,
      ...(wait === undefined ? {} : { wait }),
      ...(how === 0 ? { ttl: TTL } : how < 3 ? { token: this.#one(['t', 'u']) } : {}),
    };
  }

  #use({ thing, handles: [held] }: Kept, options: Omit<Options, 'token' | 'ttl'>): void {
    const what = this.#random.int(8);
    if (held === undefined || what > 4) this.#track(thing[Symbol.asyncDispose]());
    else if (what === 0) this.#track(held.setData('x'));
    else if (what === 1) this.#track(held.check());
    else if (what === 2 && held.depth < 4) this.#track(held.acquire({ signal: options.signal }));
    else this.#track(this.#convert(what === 3 ? held.upgrade(options) : held.downgrade()));
  }

  async #convert(converting: Promise<unknown>): Promise<void> {
    this.#converting++;
    await converting.catch(() => {});
    this.#converting--;
  }

  /** By what the clients believe, nobody has a lock beside one who has it alone. */
  #checkAlone(): void {
    if (this.#forces || this.#converting > 0) return;
    const held = this.#kept.flatMap(({ handles }) => handles).filter(({ state }) => state === 'active');
    for (const one of held.filter(({ mode }) => mode === 'exclusive')) {
      const name = Buffer.from(one.id.name);
      const beside = held.filter(({ id, version }) => name.equals(id.name) && version !== one.version);
      expect([name.toString(), one.version, beside.map(({ version }) => version)]).toEqual([
        name.toString(),
        one.version,
        [],
      ]);
    }
  }

  /** What a client takes for held is held. */
  async #checkCurrent(): Promise<void> {
    if (this.#forces) return;
    for (const held of this.#kept.flatMap(({ handles }) => handles).filter(({ state }) => state === 'active')) {
      expect([held.version, await this.world.until(held.check())]).toEqual([held.version, true]);
    }
  }

  async #giveBack(): Promise<void> {
    // As deep as it may be held.
    for (let i = 0; i < 6; i++) for (const { thing } of this.#kept) this.#track(thing[Symbol.asyncDispose]());
    await this.world.run(48_000);
    expect(this.#pending.size).toBe(0);
  }

  async #checkNothingLeft(): Promise<void> {
    const { world } = this;
    const locks = await world.until(this.#one(this.#clients).locks.list().toArray());
    const left = locks.filter(({ holderCount, waiterCount, passing }) => holderCount + waiterCount + passing > 0);
    expect(left).toEqual([]);
    for (const session of this.#sessions) await world.until(codeOf(session.close()));
    await world.run(1_000);
    for (const client of this.#clients) await world.until(client.close());
    await world.run(200);
    expect([world.backend.sessions, world.held]).toEqual([0, 0]);
  }
}

test('whatever is lost or late, what is given back is gone, and nobody is let in beside a holder', async () => {
  const unhandled: unknown[] = [];
  const hear = (reason: unknown): void => void unhandled.push(reason);
  process.on('unhandledRejection', hear);
  try {
    for (let seed = 0; seed < SEEDS; seed++) {
      try {
        await new Life(seed).run();
      } catch (cause) {
        throw new Error(`seed ${seed}: ${String(cause)}`, { cause });
      }
    }
    expect(unhandled).toEqual([]);
  } finally {
    process.off('unhandledRejection', hear);
  }
}, 3_600_000);
