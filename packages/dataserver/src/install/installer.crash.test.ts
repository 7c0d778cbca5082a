import { type Engine, SeededRandom, silentLogger } from '@remora/base';
import { beforeAll, describe, expect, test } from 'vitest';
import { CrashWorld } from '../../test/support/crash-world.ts';
import { contents, digest, pieces, someRows, stateAt, streamOf, targetAt } from '../../test/support/install-data.ts';
import { DESCRIPTOR } from '../../test/support/state-bed.ts';
import { localSpan, stateKey } from '../state/keys.ts';
import { type Endings, Installer, NO_ENDINGS } from './installer.ts';

/** Each seed dies once at each step. `INSTALL_SEEDS=20` runs more of them. */
const SEEDS = Array.from({ length: Number(process.env.INSTALL_SEEDS ?? 1) }, (_, i) => i + 1);
const OTHER = localSpan(9);
const otherKey = (i: number): Buffer => Buffer.concat([OTHER.start, Buffer.from([0x6f, i])]);

interface Prepared {
  readonly world: CrashWorld;
  readonly random: SeededRandom;
  readonly stream: Buffer;
  /** What the replica may hold: as it was checkpointed, as it was in memory, as the snapshot has it. */
  readonly old: string;
  readonly changed: string;
  readonly fresh: string;
}

/** A replica with rows on disk and changes in memory, and a snapshot for it. */
async function prepare(seed: number): Promise<Prepared & { readonly engine: Engine }> {
  const random = new SeededRandom(seed);
  const world = new CrashWorld(seed);
  const { engine } = await world.boot();
  for (const { key, value } of [...someRows(random, { small: 2_100, large: 0 }), stateAt(5)]) engine.put(key, value);
  await engine.checkpoint();
  const old = await contents(engine);
  const rows = someRows(random, { small: 300, large: 6 });
  const fresh = digest([...rows, stateAt(20)]);
  return { world, random, engine, stream: await streamOf(rows, 20), old, changed: '', fresh };
}

interface Result {
  readonly crashed: boolean;
  readonly began: boolean;
  readonly installed: boolean;
  readonly othersDurable: number;
  readonly changed: string;
  readonly steps: number;
}

/** Installs, with checkpoints of other ranges' changes all the while, until it is done or the process dies. */
async function install(given: Prepared, crashAtStep: number): Promise<Result> {
  const { world, random, stream } = given;
  const { engine, disk, crashed } = await world.boot(crashAtStep);
  const installer = new Installer({ engine, disk, logger: silentLogger });
  for (let i = 0; i < 50; i++) engine.put(Buffer.from([3, random.int(256), 7, i]), Buffer.from('in memory'));
  engine.put(stateKey(2), stateAt(6).value);
  const changed = await contents(engine);
  let [began, installed, done, othersDurable] = [false, false, false, 0];
  const checkpoints = async (): Promise<void> => {
    for (let i = 1; !done && i < 200; i++) {
      engine.put(otherKey(1), Buffer.from([i]));
      await engine.checkpoint();
      othersDurable = i;
      for (let turns = random.int(6); turns > 0; turns--) await new Promise((resolve) => setImmediate(resolve));
    }
  };
  const work = async (): Promise<void> => {
    await installer.clean();
    const begins = (): Endings => {
      began = true;
      return NO_ENDINGS;
    };
    const replaced = (): void => {
      installed = true;
    };
    const receiver = installer.receive({ ...targetAt(20), begins, replaced });
    for (const piece of pieces(stream, random)) await receiver.chunk(piece);
    await receiver.finish();
  };
  const both = Promise.all([
    work().finally(() => {
      done = true;
    }),
    checkpoints(),
  ]).then(() => 'done' as const);
  const end = await Promise.race([crashed, both]);
  done = true;
  return { crashed: end === 'crashed', began, installed, othersDurable, changed, steps: world.steps };
}

/** Starts again and again, dying at a random step, until a start succeeds. */
async function recover({ world, random }: Prepared): Promise<{ readonly engine: Engine; readonly resumed: number }> {
  let resumed = 0;
  for (let deaths = 0; ; deaths++) {
    const { engine, disk, crashed } = await world.boot(deaths < 3 ? 1 + random.int(25) : undefined);
    const installer = new Installer({ engine, disk, logger: silentLogger });
    const interrupted = installer.interrupted();
    resumed = Math.max(resumed, interrupted.length);
    const work = Promise.all([installer.clean(), ...interrupted.map((marker) => installer.resume(marker))]);
    if ((await Promise.race([work, crashed])) === 'crashed') continue;
    expect(installer.interrupted()).toEqual([]);
    expect(installer.replacing(DESCRIPTOR)).toBeUndefined();
    return { engine, resumed };
  }
}

describe('a crash at any step of an installation', () => {
  let steps = 0;
  const met = new Set<string>();

  beforeAll(async () => {
    const given = await prepare(1);
    const whole = await install(given, Number.POSITIVE_INFINITY);
    expect(whole).toMatchObject({ crashed: false, began: true, installed: true });
    expect(given.world.failures).toEqual([]);
    steps = whole.steps;
  });

  test.each(SEEDS)(
    'leaves the old state or the new one, whole, and other ranges as they were (seed %i)',
    async (seed) => {
      for (let at = 1; at <= steps; at++) {
        const given = await prepare(seed * 1_000 + at);
        const { old, fresh, world } = given;
        const result = await install(given, at);
        if (!result.crashed) world.crash();
        const { engine, resumed } = await recover(given);
        const found = await contents(engine);
        const where = `crash at step ${at} of seed ${seed}: ${JSON.stringify(result)}, resumed ${resumed}`;
        if (result.installed || resumed > 0) expect(found, where).toBe(fresh);
        else if (result.began) expect([old, result.changed, fresh], where).toContain(found);
        else expect([old, result.changed], where).toContain(found);
        const other = engine.get(otherKey(1))?.[0] ?? 0;
        expect(other, where).toBeGreaterThanOrEqual(result.othersDurable);
        expect(await world.sim.list('snapshots'), where).toEqual([]);
        expect(world.failures, where).toEqual([]);
        met.add(found === fresh ? (resumed > 0 ? 'resumed' : 'new') : found === old ? 'old' : 'changed');
      }
    },
  );

  test('was met before the marker, behind it and at the end', () => {
    expect([...met].sort()).toEqual(['changed', 'new', 'old', 'resumed']);
  });
});
