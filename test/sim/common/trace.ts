/**
 * The events of a run. All of them are folded into a hash, so that whole runs can be compared. The latest ones are kept
 * in full, so that a failure can be read.
 */

const EVENTS = [
  'send',
  'append',
  'applied',
  'role',
  'commit',
  'start',
  'end',
  'fault',
  'healed',
  'proposed',
  'acknowledged',
  'lost',
  'unknown',
  'read',
  'refused',
  'snapshot',
  'installed',
  'checkpoint',
  'replica',
  'heartbeat',
  'frame',
  'log',
  'asked',
  'answered',
  'disk',
] as const;

export type EventName = (typeof EVENTS)[number];

const CODES = new Map<EventName, number>(EVENTS.map((name, i) => [name, i]));
/**
 * A limit for each of three kinds: frequent Raft events, client events, and others. Therefore rare events stay for
 * long.
 */
const KEPT = 4096;
const CONSTANT: ReadonlySet<EventName> = new Set(['send', 'append', 'heartbeat', 'frame', 'applied', 'commit']);
const OF_CLIENTS: ReadonlySet<EventName> = new Set(['asked', 'answered']);

export interface TraceItem {
  readonly sequence: number;
  readonly atMs: number;
  readonly name: EventName;
  readonly node: number;
  readonly group: number;
  readonly a: number;
  readonly b: number;
  readonly text: string;
}

export class Trace {
  #hash = 0x811c9dc5;
  #count = 0;
  readonly #constant = new Ring();
  readonly #ofClients = new Ring();
  readonly #others = new Ring();
  readonly #nowMs: () => number;

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  add(name: EventName, node: number, group: number, a = 0, b = 0, text = ''): void {
    const atMs = this.#nowMs();
    let hash = this.#hash;
    hash = Math.imul(hash ^ ((CODES.get(name) ?? 0) + (node << 8) + (group << 16)), 0x01000193);
    hash = Math.imul(hash ^ a, 0x01000193);
    hash = Math.imul(hash ^ b, 0x01000193);
    hash = Math.imul(hash ^ (atMs * 1000), 0x01000193);
    this.#hash = hash;
    this.#ringOf(name).add({ sequence: this.#count, atMs, name, node, group, a, b, text });
    this.#count++;
  }

  /** The hash of all events so far. Equal runs have equal hashes. */
  get hash(): string {
    return `${(this.#hash >>> 0).toString(16).padStart(8, '0')}-${this.#count}`;
  }

  #ringOf(name: EventName): Ring {
    if (CONSTANT.has(name)) return this.#constant;
    return OF_CLIENTS.has(name) ? this.#ofClients : this.#others;
  }

  /** The last `count` events that `matters` accepts, as text. */
  last(count: number, matters: (item: TraceItem) => boolean): string[] {
    const found = [this.#constant, this.#ofClients, this.#others].flatMap((ring) => ring.last(count, matters));
    found.sort((a, b) => a.sequence - b.sequence);
    return found.slice(-count).map(textOf);
  }
}

class Ring {
  readonly #items: TraceItem[] = [];
  #count = 0;

  add(item: TraceItem): void {
    this.#items[this.#count % KEPT] = item;
    this.#count++;
  }

  last(count: number, matters: (item: TraceItem) => boolean): TraceItem[] {
    const found: TraceItem[] = [];
    const oldest = Math.max(0, this.#count - KEPT);
    for (let i = this.#count - 1; i >= oldest && found.length < count; i--) {
      const item = this.#items[i % KEPT];
      if (item !== undefined && matters(item)) found.push(item);
    }
    return found;
  }
}

function textOf({ atMs, name, node, group, a, b, text }: TraceItem): string {
  const where = `${node === 0 ? '' : ` node ${node}`}${group === 0 ? '' : ` group ${group}`}`;
  const numbers = a === 0 && b === 0 ? '' : ` (${a}, ${b})`;
  return `${atMs.toFixed(3).padStart(10)} ${name}${where}${numbers}${text === '' ? '' : ` ${text}`}`;
}
