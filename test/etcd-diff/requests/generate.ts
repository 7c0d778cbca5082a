/** Random requests of all kinds, well-formed ones and others. One seed, one list. */
import { SeededRandom } from '@remora/base';
import { Draw } from './draw.ts';
import { drawTxn, WRONG_TXNS } from './generate-txn.ts';
import { LEASE_SLOTS } from './keys.ts';
import type { Step, WatchStep } from './requests.ts';
import { drawDelete, drawKey, drawLease, drawPut, drawRange, drawRevision, drawSpan, HUGE } from './steps.ts';

export const PROFILES = ['mixed', 'kv', 'txn'] as const;
export type Profile = (typeof PROFILES)[number];

/** A step, and which of Remora's nodes it goes through. */
export interface Request {
  readonly via: number;
  readonly step: Step;
}

export interface Plan {
  readonly seed: number;
  readonly requests: number;
  readonly profile: Profile;
}

/** More than a test has nodes: the number is taken modulo theirs. */
const VIA = 60;
const STREAMS = 3;
/** Further ones are not created: all of them are asked to catch up at each settling. */
const WATCHES_MAX = 12;
/** Just above what servers take in one request. */
const TOO_LARGE_VALUE_BYTES = 1_600_000;

export function generate({ seed, requests, profile }: Plan): readonly Request[] {
  const draw = new Draw(new SeededRandom(seed));
  const steps = new Steps(draw);
  const made: Request[] = [];
  while (made.length < requests) made.push(...steps.next(profile).map((step) => ({ via: draw.int(VIA), step })));
  return [...made, ...everything(draw).map((step) => ({ via: draw.int(VIA), step }))];
}

/** All that there is, now and in the past: what differs is found, whether or not a request came upon it. */
function everything(draw: Draw): readonly Step[] {
  const all = { do: 'range', key: '\0', end: '\0' } as const;
  return [
    { do: 'settle' },
    all,
    ...draw.times(5, () => ({ ...all, revision: { ago: draw.int(300) } })),
    { do: 'leases' },
    ...draw.times(LEASE_SLOTS, (slot) => ({ do: 'timeToLive', lease: { slot }, keys: true }) as const),
  ];
}

class Steps {
  readonly #draw: Draw;
  /** Numbers of watches so far. */
  #watches = 0;

  constructor(draw: Draw) {
    this.#draw = draw;
  }

  next(profile: Profile): readonly Step[] {
    return this.#draw.weighted(this.#weights(profile))();
  }

  #weights(profile: Profile): readonly (readonly [number, () => readonly Step[]])[] {
    const draw = this.#draw;
    const kv: readonly (readonly [number, () => readonly Step[]])[] = [
      [400, () => [drawRange(draw)]],
      [300, () => [drawPut(draw)]],
      [80, () => [drawDelete(draw)]],
      [10, () => this.#compact()],
      [10, () => [drawWrong(draw)]],
    ];
    const txn: readonly (readonly [number, () => readonly Step[]])[] = [
      [800, () => [drawTxn(draw)]],
      [8, () => [draw.of(WRONG_TXNS)]],
    ];
    if (profile === 'kv') return kv;
    if (profile === 'txn')
      return [...txn, [150, () => [drawPut(draw)]], [50, () => [drawDelete(draw)]], [60, () => [drawRange(draw)]]];
    return [
      ...kv,
      ...txn.map(([weight, make]) => [weight / 4, make] as const),
      [100, () => [this.#lease()]],
      [60, () => [this.#watch()]],
    ];
  }

  /** A compaction ends watches that have not read what it takes: they catch up before it. */
  #compact(): readonly Step[] {
    const physical = this.#draw.percent(30);
    const revision = drawRevision(this.#draw);
    return [{ do: 'settle' }, { do: 'compact', revision, physical }];
  }

  #lease(): Step {
    const draw = this.#draw;
    const lease = drawLease(draw);
    return draw.weighted<Step>([
      [
        30,
        {
          do: 'grant',
          lease,
          ttl: draw.weighted([
            [20, 5_000n + BigInt(draw.int(5_000))],
            [1, 9_000_000_000n],
            [1, 9_000_000_001n],
            [1, HUGE],
          ]),
        },
      ],
      [15, { do: 'revoke', lease }],
      [30, { do: 'timeToLive', lease, keys: draw.percent(70) }],
      [10, { do: 'leases' }],
      [15, { do: 'keepAlive', lease }],
    ]);
  }

  #watch(): Step {
    const draw = this.#draw;
    const stream = draw.int(STREAMS);
    if (this.#watches > 0 && draw.percent(15)) return { do: 'cancel', watch: draw.int(this.#watches) };
    if (draw.percent(30) || this.#watches >= WATCHES_MAX)
      return draw.percent(50) ? { do: 'progress', stream } : { do: 'settle' };
    return this.#create(stream);
  }

  #create(stream: number): WatchStep {
    const draw = this.#draw;
    return {
      do: 'watch',
      watch: this.#watches++,
      stream,
      ...(draw.percent(3) ? { key: '', end: '\0' } : drawSpan(draw)),
      ...(draw.percent(60) && { start: draw.percent(85) ? { ago: draw.int(30) } : drawRevision(draw) }),
      ...(draw.percent(15) && { noPut: true }),
      ...(draw.percent(15) && { noDelete: true }),
      ...(draw.percent(50) && { prevKv: true }),
      ...(draw.percent(20) && { progressNotify: true }),
      ...(draw.percent(20) && { fragment: true }),
      ...(draw.percent(10) && { id: BigInt(draw.of([1, 2, 100])) }),
    };
  }
}

/** Requests that no client means to send. */
function drawWrong(draw: Draw): Step {
  return draw.of<Step>([
    { do: 'put', key: drawKey(draw), value: 'x'.repeat(TOO_LARGE_VALUE_BYTES) },
    { do: 'put', key: '', value: 'x', ignoreValue: true, ignoreLease: true, lease: { raw: 5n } },
    { do: 'range', key: '', limit: -1n },
    { do: 'range', ...drawSpan(draw), sortOrder: 7 },
    { do: 'range', ...drawSpan(draw), sortTarget: 9 },
    { do: 'delete', key: '', end: 'z' },
    { do: 'range', key: 'a', end: '\xff'.repeat(300) },
    { do: 'put', key: 'k'.repeat(2_000), value: '' },
    { do: 'delete', key: 'k'.repeat(2_000) },
  ]);
}
