/** Watchers that come and go and may be slow. Each must see its part of the history completely, in order and once. */
import type { WatchControl } from '@remora/gateway';
import type { RangeCluster } from './bed.ts';
import { eventText, type Truth, textOf } from './truth.ts';

interface Watching {
  readonly node: number;
  readonly life: number;
  readonly key: string;
  readonly end: string | undefined;
  readonly noDelete: boolean;
  /** The first revision that it must see. */
  from: number;
  readonly seen: string[];
  /** It has received everything up to this revision. */
  revision: number;
  control: WatchControl | undefined;
}

export class WatchLoad {
  readonly #bed: RangeCluster;
  readonly #all: Watching[] = [];
  readonly faults: string[] = [];

  constructor(bed: RangeCluster) {
    this.#bed = bed;
  }

  /** A watcher through `nodeId`, with random pauses, until `untilMs`. */
  begin(nodeId: number, untilMs: number): void {
    const { random, clock } = this.#bed;
    const node = this.#bed.node(nodeId);
    const backend = node.running?.backend;
    if (backend === undefined) return;
    const single = random.int(2) === 0;
    const fromNow = random.int(3) === 0;
    const watching: Watching = {
      node: nodeId,
      life: node.life,
      key: single ? 'k1' : 'k',
      end: single ? undefined : 'l',
      noDelete: random.int(4) === 0,
      from: fromNow ? 0 : 1,
      seen: [],
      revision: 0,
      control: undefined,
    };
    this.#all.push(watching);
    const { key, end, noDelete } = watching;
    const options = {
      key: Buffer.from(key),
      ...(end === undefined ? {} : { end: Buffer.from(end) }),
      startRevision: watching.from,
      noPut: false,
      noDelete,
      prevKv: false,
    };
    watching.control = backend.watch(options, {
      onCreated: (revision) => {
        if (watching.from === 0) watching.from = revision + 1;
      },
      onEvents: (events, revision) => {
        for (const event of events) {
          if (event.kv.modRevision <= watching.revision) {
            this.faults.push(`a watch got ${eventText(event)} after it was told that ${watching.revision} is complete`);
          }
          if (event.kv.modRevision > revision)
            this.faults.push(`${eventText(event)} came in a message up to ${revision}`);
          watching.seen.push(eventText(event));
        }
        watching.revision = Math.max(watching.revision, revision);
      },
      onProgress: (revision) => {
        if (revision < watching.revision) {
          this.faults.push(`a watch was answered ${revision} after it was told that ${watching.revision} is complete`);
        }
        watching.revision = Math.max(watching.revision, revision);
      },
      onEnd: (error) => this.faults.push(`a watch ended with ${error.code}`),
    });
    const doze = (): void => {
      if (clock.monotonicMs() >= untilMs) return watching.control?.resume();
      if (random.int(2) === 0) watching.control?.pause();
      else watching.control?.resume();
      if (random.int(3) === 0) watching.control?.progress();
      clock.setTimer(20 + random.int(400), doze);
    };
    clock.setTimer(random.int(500), doze);
  }

  askProgress(): void {
    for (const watching of this.#all) watching.control?.progress();
  }

  check(truth: Truth): readonly string[] {
    const faults = [...this.faults];
    for (const watching of this.#all) {
      if (this.#bed.node(watching.node).life !== watching.life) continue;
      const { key, end, noDelete, from } = watching;
      if (from === 0) {
        faults.push('a watch was never created');
        continue;
      }
      const want = truth.events
        .filter(({ kv }) => kv.modRevision >= from)
        .filter(({ kv }) =>
          end === undefined ? textOf(kv.key) === key : textOf(kv.key) >= key && textOf(kv.key) < end,
        )
        .filter(({ type }) => !(noDelete && type === 'delete'))
        .map(eventText);
      const at = want.findIndex((text, i) => watching.seen[i] !== text);
      if (at >= 0 || want.length !== watching.seen.length) {
        const place = at < 0 ? want.length : at;
        faults.push(
          `a watch of ${key} from ${from} saw ${watching.seen.length} of ${want.length} events; at ${place} it saw ${watching.seen[place]} instead of ${want[place]}`,
        );
      }
    }
    return faults;
  }
}
