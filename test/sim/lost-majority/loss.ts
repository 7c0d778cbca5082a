/** The loss that happens to the cluster: nodes that are lost for good, and the faults before and after it. */
import type { SeededRandom, Span } from '@remora/base';
import { spanContains } from '@remora/base';
import { kvRoutingKey } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import type { ScheduledCluster } from '../cluster/scheduled-cluster.ts';
import { BORDERS, KEYS } from './load.ts';

/** More than two election timeouts. */
const AWAY_MS = 1_500;

/** The events that make a run useful. */
export const EVENTS = [
  'left behind by those that are lost',
  'split as majorities are lost',
  'parts of transactions at the loss',
  'masters went on alone',
  'ranges went on alone',
  'ranges beyond help',
  'restarts amid it',
  'came back too late',
] as const;
type Event = (typeof EVENTS)[number];

export class Loss {
  readonly #cluster: ScheduledCluster;
  readonly #random: SeededRandom;
  /** The machines that are lost. */
  #dead: readonly number[] = [];
  #deadIds: readonly number[] = [];
  /** By key: the last revision that a remaining replica had applied. */
  readonly #held = new Map<string, number>();
  /** Keys whose ranges had lost their majority, according to the recovery's answer. */
  readonly #lost = new Set<string>();
  /** The same ranges. */
  readonly #lostSpans: Span[] = [];
  /** How often each event happened. */
  readonly fired = new Map<Event, number>();
  /** A machine that came back, and its number of starts by then. */
  #returned: { readonly machine: number; readonly nodeId: number } | undefined;

  constructor(cluster: ScheduledCluster, random: SeededRandom) {
    this.#cluster = cluster;
    this.#random = random;
    this.copies = cluster.world.nodes.every(({ machine }) => machine.fromStart) && random.int(2) === 0 ? 5 : 3;
  }

  /** The number of replicas per range before the loss. */
  readonly copies: number;

  /** The ids of the nodes that are lost. */
  get deadIds(): readonly number[] {
    return this.#deadIds;
  }

  /** Nodes that are the majority of a range die with their disks. One of the masters stays. */
  async befall(): Promise<void> {
    const random = this.#random;
    this.#dead = this.#drawVictims();
    this.#deadIds = this.#dead.map((machine) => this.#cluster.nodeId(machine));
    const heal = random.int(2) === 0 ? this.#cutOffOneThatStays() : () => {};
    if (random.int(2) === 0) await this.#cluster.run(random.int(1_000));
    if (random.int(2) === 0) this.#splitSome();
    if (random.int(2) === 0) await this.#cluster.run(random.int(150));
    for (const machine of this.#dead) {
      this.#lose(machine);
      if (random.int(2) === 0) await this.#cluster.run(random.int(AWAY_MS));
    }
    heal();
    this.#remember();
  }

  #drawVictims(): readonly number[] {
    const { ranges, world } = this.#cluster;
    const replicas = ranges[this.#random.int(ranges.length)]?.replicas ?? [];
    const machines = replicas.map(({ nodeId }) => world.nodes.find((node) => node.nodeId === nodeId)?.id ?? 0);
    const first = this.#random.int(machines.length);
    const inTurn = [...machines.slice(first), ...machines.slice(0, first)];
    const victims = inTurn.slice(0, (this.copies + 1) / 2);
    return victims.filter((id) => this.#isMaster(id)).length === 3 ? inTurn.slice(1, victims.length + 1) : victims;
  }

  #isMaster(machine: number): boolean {
    return this.#cluster.masterIds.includes(this.#cluster.nodeId(machine));
  }

  /** Meanwhile, acknowledged data is only on nodes that will be lost. */
  #cutOffOneThatStays(): () => void {
    const staying = this.#cluster.world.nodes.filter(({ id, up }) => up && !this.#dead.includes(id));
    const cut = staying[this.#random.int(staying.length)]?.id;
    this.#count('left behind by those that are lost');
    return this.#cluster.world.network.add({
      on: (from, to) => (from === cut) !== (to === cut) && from <= 9 && to <= 9,
      faults: { blocked: true },
    });
  }

  #splitSome(): void {
    const { ranges } = this.#cluster;
    for (const key of KEYS) {
      if (BORDERS.includes(key) || this.#random.int(3) > 0) continue;
      const at = kvRoutingKey(Buffer.from(key));
      const range = ranges.find((each) => spanContains(each, at));
      if (range !== undefined) this.#cluster.steer(range, { type: 'split', at });
      this.#count('split as majorities are lost');
    }
  }

  #lose(machine: number): void {
    this.#cluster.world.members.lose(this.#cluster.node(machine));
    this.#cluster.kill(machine);
  }

  #remember(): void {
    for (const { roles } of this.#cluster.world.nodes) {
      for (const { state } of roles?.store?.replicas() ?? []) {
        if ([...state.transactions.parts].length > 0) this.#count('parts of transactions at the loss');
        for (const key of KEYS) {
          if (!spanContains(state.descriptor, kvRoutingKey(Buffer.from(key)))) continue;
          this.#held.set(key, Math.max(this.#held.get(key) ?? 0, state.revision));
        }
      }
    }
  }

  /** Takes the answer of the recovery. */
  told({ lost, unrecoverable }: admin.RecoverMajorityResponse): void {
    for (const { rangeId, start, end } of lost) {
      this.#count(rangeId === 0 ? 'masters went on alone' : 'ranges went on alone');
      if (rangeId !== 0) this.#lostSpans.push({ start, end });
      const keys = KEYS.filter((key) => spanContains({ start, end }, kvRoutingKey(Buffer.from(key))));
      if (rangeId !== 0) for (const key of keys) this.#lost.add(key);
    }
    for (const _ of unrecoverable) this.#count('ranges beyond help');
  }

  /** Whether a key's range had lost its majority, according to the recovery's answer. */
  isLost(key: Uint8Array): boolean {
    return this.#lostSpans.some((span) => spanContains(span, key));
  }

  /** The last revision of a key's range, from before the loss, that must still be there. */
  heldOf(key: string): number {
    return this.#lost.has(key) ? (this.#held.get(key) ?? 0) : Number.POSITIVE_INFINITY;
  }

  /** Faults before and during the recovery of the remaining nodes. */
  async misfortune(): Promise<void> {
    const random = this.#random;
    const staying = this.#cluster.world.nodes.filter(({ id, up }) => up && !this.#dead.includes(id));
    const one = staying[random.int(staying.length)];
    if (one === undefined) return;
    const { world } = this.#cluster;
    const restart = (afterMs: number): void => {
      world.loop.setTimer(afterMs, () => {
        if (!one.up) return;
        this.#count('restarts amid it');
        one.end(true);
        world.loop.setTimer(random.int(1_500), () => world.startAgain(one));
      });
    };
    if (random.int(2) === 0) restart(random.int(3_000));
    if (random.int(2) === 0) restart(3_000 + random.int(3_000));
  }

  /** New nodes join, and one lost node comes back with its old disk (LM6). */
  async aftermath(): Promise<void> {
    const { world } = this.#cluster;
    await this.#cluster.set('replicas', '3');
    for (const node of world.nodes) if (!node.machine.fromStart) world.startAgain(node);
    await this.#cluster.run(this.#random.int(3_000));
    const machine = this.#dead[this.#random.int(this.#dead.length)] ?? 0;
    const node = this.#cluster.node(machine);
    this.#returned = { machine, nodeId: node.nodeId ?? 0 };
    this.#count('came back too late');
    node.expelled = true;
    world.startAgain(node);
  }

  /**
   * LM6: describes the node that came back if it was accepted with its old identity, or has not joined as a new node
   * yet.
   */
  notRefused(): string {
    if (this.#returned === undefined) return '';
    const { machine, nodeId } = this.#returned;
    const node = this.#cluster.node(machine);
    return node.up && node.nodeId !== nodeId ? '' : `node ${nodeId} came back and has not been refused`;
  }

  #count(event: Event): void {
    this.fired.set(event, (this.fired.get(event) ?? 0) + 1);
  }
}
