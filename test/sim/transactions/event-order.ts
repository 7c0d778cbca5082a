import { EMPTY_BYTES } from '@remora/base';
import type { WatchMessage } from '@remora/protocol';
import type { RangeReplica } from '../../../packages/dataserver/src/range/range-replica.ts';
import type { World } from '../revisions/world.ts';

const EPOCH = { confVersion: 1, version: 2 };
const KEYS_START = EMPTY_BYTES;

/** Watches every replica completely, and records what it reports as closed. */
export class EventOrder {
  readonly faults: string[] = [];

  constructor(world: World) {
    for (const { id, replicas } of world.nodes.values()) {
      for (const replica of replicas.values()) this.#watch(world, `range ${replica.rangeId} on node ${id}`, replica);
    }
  }

  #watch(world: World, name: string, replica: RangeReplica): void {
    let told = 0;
    let closed = 0;
    const note = (message: WatchMessage): void => {
      if (message.kind === 'ended') this.faults.push(`X3: the watch on ${name} ended: ${message.message}`);
      if (message.kind !== 'events') return;
      for (const { kv } of message.events) {
        if (kv.modRevision < told) this.faults.push(`X3: ${name} tells ${kv.modRevision} after ${told}`);
        if (kv.modRevision <= closed) this.faults.push(`X3: ${name} tells ${kv.modRevision}, and had closed ${closed}`);
        told = kv.modRevision;
      }
    };
    const stream = replica.hub.openStream({
      send: (message) => {
        note(message);
        return true;
      },
    });
    const { keys } = replica.state.bounds;
    const span = { start: keys?.start ?? KEYS_START, end: keys?.end ?? KEYS_START };
    const flags = { noPut: false, noDelete: false, prevKv: false };
    const { rangeId } = replica;
    stream.create({ kind: 'create', watchId: 1, rangeId, epoch: EPOCH, span, startRevision: 1, ...flags });
    const sample = (): void => {
      closed = Math.max(closed, replica.closing.closed);
      world.clock.setTimer(1 + world.random.int(20), sample);
    };
    sample();
  }
}
