/** A node's side of the load: requests become proposals, what is applied is answered, all of a turn in one frame. */
import type { ServerDuplexStream, UntypedServiceImplementation } from '@grpc/grpc-js';
import type { Group, GroupId } from '@remora/raft';
import { type CountingMachine, packOperations } from './counting-machine.ts';
import { APPLIED, decodeRequest, encodeReplies, LOAD_SERVICE, modeOf, REFUSED, type Reply } from './load-wire.ts';

export interface LoadedGroup {
  readonly group: Group;
  readonly machine: CountingMachine;
}

export const loadDefinition = LOAD_SERVICE;

export function loadImplementation(groups: ReadonlyMap<GroupId, LoadedGroup>): UntypedServiceImplementation {
  return {
    load: (call: ServerDuplexStream<Buffer, Buffer>) => {
      const client = new LoadedClient(groups, call);
      call.on('data', (request: Buffer) => client.request(request));
      call.on('error', () => {});
      call.on('end', () => call.end());
    },
  };
}

class LoadedClient {
  readonly #groups: ReadonlyMap<GroupId, LoadedGroup>;
  readonly #call: ServerDuplexStream<Buffer, Buffer>;
  #replies: Reply[] = [];

  constructor(groups: ReadonlyMap<GroupId, LoadedGroup>, call: ServerDuplexStream<Buffer, Buffer>) {
    this.#groups = groups;
    this.#call = call;
  }

  request(request: Buffer): void {
    if (modeOf(request) === 'batched') return this.#batched(request);
    decodeRequest(request, (groupId, slot, payload) => {
      this.#propose(groupId, payload, (applied) => this.#reply(slot, applied));
    });
  }

  #batched(request: Buffer): void {
    const byGroup = new Map<GroupId, { readonly slots: number[]; readonly payloads: Buffer[] }>();
    decodeRequest(request, (groupId, slot, payload) => {
      let batch = byGroup.get(groupId);
      if (batch === undefined) {
        batch = { slots: [], payloads: [] };
        byGroup.set(groupId, batch);
      }
      batch.slots.push(slot);
      batch.payloads.push(payload);
    });
    for (const [groupId, { slots, payloads }] of byGroup) {
      this.#propose(groupId, packOperations(payloads), (applied) => {
        for (const slot of slots) this.#reply(slot, applied);
      });
    }
  }

  #propose(groupId: GroupId, data: Uint8Array, done: (applied: boolean) => void): void {
    const loaded = this.#groups.get(groupId);
    const result = loaded?.group.propose(data);
    if (loaded === undefined || result === undefined || 'refused' in result) done(false);
    else loaded.machine.wait(result, done);
  }

  #reply(slot: number, applied: boolean): void {
    this.#replies.push({ slot, outcome: applied ? APPLIED : REFUSED });
    // Behind all that is applied in this turn, and before the next.
    if (this.#replies.length === 1) queueMicrotask(() => this.#flush());
  }

  #flush(): void {
    const replies = this.#replies;
    this.#replies = [];
    if (!this.#call.destroyed) this.#call.write(encodeReplies(replies));
  }
}
