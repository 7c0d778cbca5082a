/** A node's side of the load: requests become proposals, what is applied is answered, all of a turn in one frame. */
import { type FrameService, type FrameStream, SERVICE } from '@remora/base';
import type { Group, GroupId } from '@remora/raft';
import { type CountingMachine, packOperations } from './counting-machine.ts';
import { APPLIED, decodeRequest, encodeReplies, LOAD_SERVICE, modeOf, REFUSED, type Reply } from './load-wire.ts';

export interface LoadedGroup {
  readonly group: Group;
  readonly machine: CountingMachine;
}

export function loadService(groups: ReadonlyMap<GroupId, LoadedGroup>): FrameService {
  return {
    name: LOAD_SERVICE,
    open(_hello, stream) {
      stream.sayHello({ [SERVICE]: LOAD_SERVICE });
      const client = new LoadedClient(groups, stream);
      stream.handle({ onFrame: (request) => client.request(request), onDrain() {}, onEnd() {} });
    },
  };
}

class LoadedClient {
  readonly #groups: ReadonlyMap<GroupId, LoadedGroup>;
  readonly #stream: FrameStream;
  #replies: Reply[] = [];

  constructor(groups: ReadonlyMap<GroupId, LoadedGroup>, stream: FrameStream) {
    this.#groups = groups;
    this.#stream = stream;
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
    this.#stream.send(encodeReplies(replies));
  }
}
