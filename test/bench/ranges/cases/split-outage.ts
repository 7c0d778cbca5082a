/**
 * How long a split blocks writes: of keys that get a leader of their own by it, and of those that stay.
 *
 * A cluster of one range is filled, and split by hand again and again at a key between writers, each of which puts its own
 * key, one put after the other. What counts is the longest put of any writer from the order of the split until it is done
 * and a little longer; beside it the longest in as much time before, which is what the machine does anyway.
 *
 * Settings: mib=16 (in the cluster before)  writers=32  splits=5
 */
import { kvRoutingKey } from '@remora/protocol';
import { AdminClient, connect, type RemoraClient } from 'remora';
import { eventually } from '../../../e2e/eventually.ts';
import { withCluster } from '../../../e2e/harness.ts';
import { median } from '../../quantile.ts';
import { type CaseBar, type CaseContext, type CaseResult, numbersOf } from '../../raft/case.ts';
import { table } from '../../report.ts';

const FILL_BYTES = 1_024;
const FILL_AT_ONCE = 128;
const PAUSE_MS = 1_500;
/** What writers wait for behind a split: those who asked in vain pause before they ask again. */
const AFTER_MS = 1_000;
const BLOCKED_MS_MAX = 10;
const TIMEOUT_MS = 60_000;

interface SplitOutage {
  /** The longest put before, of any writer. */
  readonly beforeMs: number;
  readonly leavingMs: number;
  readonly stayingMs: number;
}

export const SETTINGS = ['mib', 'writers', 'splits'];

export async function run(context: CaseContext): Promise<CaseResult> {
  const setting = (name: string, fallback: number) => numbersOf(context, name, [fallback])[0] ?? fallback;
  const [mib, writers, splits] = [setting('mib', 16), setting('writers', 32), setting('splits', 5)];
  const outages = await withCluster({}, async (cluster) => {
    await using client = await connect({ endpoints: cluster.endpoints, requestTimeout: '30s' });
    const admin = new AdminClient({
      endpoints: cluster.endpoints,
      timeoutMs: TIMEOUT_MS,
      connectTimeoutMs: TIMEOUT_MS,
    });
    const load = new Writers(client, writers);
    try {
      await fill(client, mib);
      const found: SplitOutage[] = [];
      for (let i = 1; i <= splits; i++) {
        const outage = await splitBetween(admin, load, Math.floor((i * writers) / (splits + 1)));
        context.progress(`split ${i}: ${JSON.stringify(outage)}`);
        found.push(outage);
      }
      return found;
    } finally {
      await load.stop();
      admin.close();
    }
  });
  return { data: outages, text: render(outages), bars: bars(outages) };
}

async function fill(client: RemoraClient, mib: number): Promise<void> {
  const values = mib * (2 ** 20 / FILL_BYTES);
  const value = Buffer.alloc(FILL_BYTES, 'x');
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < values) {
      const i = next++;
      await client.kv.put(`w${String((i * 7_919) % 100).padStart(2, '0')}/fill/${i}`, value);
    }
  };
  await Promise.all(Array.from({ length: FILL_AT_ONCE }, worker));
}

/** Writers in the order of their keys, and how long each of their puts took. */
class Writers {
  readonly #client: RemoraClient;
  readonly #count: number;
  readonly #puts: { readonly writer: number; readonly endMs: number; readonly tookMs: number }[] = [];
  readonly #running: Promise<unknown>;
  #stopped = false;

  constructor(client: RemoraClient, count: number) {
    this.#client = client;
    this.#count = count;
    this.#running = Promise.all(Array.from({ length: count }, (_, i) => this.#write(i)));
  }

  keyOf(writer: number): string {
    return `w${String(Math.floor((100 * writer) / this.#count)).padStart(2, '0')}/writer/${writer}`;
  }

  async #write(writer: number): Promise<void> {
    for (let n = 0; !this.#stopped; n++) {
      const begunMs = performance.now();
      await this.#client.kv.put(this.keyOf(writer), String(n));
      const endMs = performance.now();
      this.#puts.push({ writer, endMs, tookMs: endMs - begunMs });
    }
  }

  /** The longest put that was under way in a time, of the writers from one on to before another. */
  longest(time: { readonly fromMs: number; readonly toMs: number }, from = 0, to = this.#count): number {
    let longestMs = 0;
    for (const { writer, endMs, tookMs } of this.#puts) {
      const within = endMs >= time.fromMs && endMs - tookMs <= time.toMs;
      if (within && writer >= from && writer < to) longestMs = Math.max(longestMs, tookMs);
    }
    return longestMs;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
  }
}

async function splitBetween(admin: AdminClient, load: Writers, writer: number): Promise<SplitOutage> {
  const at = kvRoutingKey(Buffer.from(load.keyOf(writer)));
  const beforeFromMs = performance.now();
  await pause(PAUSE_MS);
  const range = (await admin.rangesFrom(at, 1)).ranges[0];
  if (range === undefined) throw new Error('some range has the key');
  const fromMs = performance.now();
  await admin.changeRange(range, { $case: 'split', value: { at } });
  await eventually('the range is split', async () => (await admin.range(range.id)).end.equals(at), {
    timeoutMs: TIMEOUT_MS,
    pollMs: 20,
  });
  await pause(AFTER_MS);
  const during = { fromMs, toMs: performance.now() };
  return {
    beforeMs: load.longest({ fromMs: beforeFromMs, toMs: fromMs }),
    leavingMs: load.longest(during, writer),
    stayingMs: load.longest(during, 0, writer),
  };
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

function render(outages: readonly SplitOutage[]): string {
  const rows = outages.map(({ beforeMs, leavingMs, stayingMs }, i) => [
    String(i + 1),
    ...[beforeMs, leavingMs, stayingMs].map((ms) => ms.toFixed(1)),
  ]);
  return table(['split', 'longest put before, ms', 'of keys that left', 'of keys that stayed'], rows);
}

function bars(outages: readonly SplitOutage[]): readonly CaseBar[] {
  const value = median(outages.map(({ leavingMs }) => leavingMs));
  const text = `a split blocks writes of the keys that leave for ${BLOCKED_MS_MAX} ms at most, in the median`;
  return [{ text, value, unit: ' ms', met: value <= BLOCKED_MS_MAX }];
}
