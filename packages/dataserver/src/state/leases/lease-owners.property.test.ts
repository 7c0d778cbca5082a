// S6 of leases.ts against a map: whatever happens to a lease and its range, its owner is the one of its grant.
import type { Command } from '@remora/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { StateBed } from '../../../test/support/state-bed.ts';
import { leaseKey } from '../keys.ts';

const IDS = [1n, 2n, 3n, 5n, 6n] as const;
/** Leases from here on leave with a split. */
const SPLIT_AT = leaseKey(4n);
const BEHIND = { start: Buffer.from([3]), end: Buffer.from([4]) };

type Step =
  | { readonly do: 'grant'; readonly id: bigint; readonly owner: string | undefined }
  | { readonly do: 'change' | 'checkpoint' | 'register' | 'attach' | 'end'; readonly id: bigint }
  | { readonly do: 'split' | 'merge' | 'restart' };

const id = fc.constantFrom(...IDS);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('grant' as const), id, owner: fc.constantFrom('ada', 'bob', '', undefined) }),
  fc.record({ do: fc.constantFrom('change', 'checkpoint', 'register', 'attach', 'end'), id }),
  fc.record({ do: fc.constantFrom('split', 'merge', 'restart') }),
);

class Ranges {
  readonly home = new StateBed();
  child: StateBed | undefined;
  #childId = 3;
  /** By id and incarnation. */
  readonly owners = new Map<string, string | undefined>();

  get beds(): readonly StateBed[] {
    return this.child === undefined ? [this.home] : [this.home, this.child];
  }

  async take(step: Step): Promise<void> {
    switch (step.do) {
      case 'split':
        return this.#split();
      case 'merge':
        return this.#merge();
      case 'restart':
        for (const bed of this.beds) await bed.checkpoint();
        for (const bed of this.beds) bed.crash();
        return;
      default:
        return this.#command(step);
    }
  }

  async #command(step: Exclude<Step, { readonly do: 'split' | 'merge' | 'restart' }>): Promise<void> {
    const bed = this.child !== undefined && step.id > 4n ? this.child : this.home;
    const incarnation = bed.state.leases.get(step.id)?.incarnation ?? 0;
    const about = { id: step.id, incarnation };
    if (step.do === 'grant') {
      const { owner } = step;
      const grant = {
        type: 'leaseGrant',
        id: step.id,
        ttlMs: 5_000,
        attributes: {},
        ...(owner !== undefined && { owner }),
      };
      const outcome = await bed.run(grant as Command);
      if (!outcome.ok || outcome.result.type !== 'leaseGrant') return;
      this.owners.set(`${step.id}.${outcome.result.incarnation}`, owner);
      return;
    }
    const put = { type: 'put', key: Buffer.from('k'), value: Buffer.from('v'), lease: step.id } as const;
    const plain = { prevKv: false, ignoreValue: false, ignoreLease: false };
    const commands: Readonly<Record<typeof step.do, Command>> = {
      change: { type: 'leaseChange', ...about, number: 1, ttlMs: 9_000 },
      checkpoint: { type: 'leaseCheckpoint', ...about, term: 1, remainingMs: 700 },
      register: { type: 'leaseRegister', ...about, span: BEHIND },
      attach: { type: 'kv', op: { ...put, ...plain } },
      end: { type: 'leaseRevoke', ...about },
    };
    await bed.run(commands[step.do]);
  }

  async #split(): Promise<void> {
    if (this.child !== undefined) return;
    const { epoch } = this.home.state.descriptor;
    const childId = this.#childId++;
    const replicas = [{ nodeId: 1, replicaId: childId * 10 + 1 }];
    await this.home.ok({ type: 'split', at: SPLIT_AT, epoch, childId, replicas, keys: 0, bytes: 0 });
    const start = this.home.children.at(-1);
    if (start === undefined) throw new Error('a split makes a child');
    this.child = new StateBed({ engine: this.home.engine, start });
    this.child.block = { first: 10_000 * childId, count: 10_000 };
    this.home.block = { first: 10_000 * childId + 5_000, count: 5_000 };
    this.home.neighbours = [this.child];
  }

  async #merge(): Promise<void> {
    const { child, home } = this;
    if (child === undefined) return;
    const into = { targetId: home.state.rangeId, round: home.state.merging.round };
    const { epoch } = child.state.descriptor;
    const result = await child.ok({ type: 'seal', epoch, into });
    if (result.type !== 'seal') throw new Error('a seal is answered so');
    await home.ok({ type: 'merge', epoch: home.state.descriptor.epoch, round: into.round, source: result.sealed });
    this.child = undefined;
  }
}

test('changes, checkpoints, spans, restarts, splits and merges keep the owner of each lease (S6)', async () => {
  let kept = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const ranges = new Ranges();
      for (const each of steps) {
        await ranges.take(each);
        for (const { state } of ranges.beds) {
          for (const lease of state.leases.all()) {
            const name = `${lease.id}.${lease.incarnation}`;
            expect([name, ranges.owners.has(name), lease.owner]).toEqual([name, true, ranges.owners.get(name)]);
            kept++;
          }
        }
      }
    }),
    { seed: 91, numRuns: 150 },
  );
  expect(kept).toBeGreaterThan(1_000);
});
