/**
 * The promises about revisions, checked as events happen.
 *
 * T1. No two changes have the same revision, in any ranges.
 * T2. Within a range revisions grow, and every replica gives a change the same revision.
 * T3. A change whose request began after another change was acknowledged, in any range, has the higher revision. This
 *     includes a change whose own acknowledgement was lost.
 * T4. After a range reports a revision as closed, it makes no change at or below that revision.
 * T5. If a revision was drawn after a change was acknowledged, and is not below the floor that a range names, it is not
 *     below that change's revision. A read at it shows exactly the changes up to it.
 * T6. A drawn revision is not below the floor that the caller named.
 */
import type { AppliedCommand } from '../../../packages/dataserver/src/range/requests/applied-command.ts';

interface Change {
  readonly revision: number;
  readonly requestId: string;
}

export class Truth {
  readonly faults: string[] = [];
  /** The highest revision that any client received. */
  acknowledged = 0;
  refused = 0;
  closings = 0;
  reads = 0;
  readonly #owners = new Map<number, string>();
  readonly #byPlace = new Map<string, number>();
  readonly #changes = new Map<number, Change[]>();
  readonly #closed = new Map<number, number>();
  readonly #requests = new Map<string, { readonly above: number; readonly key: string }>();

  began(requestId: string, key: string): void {
    this.#requests.set(requestId, { above: this.acknowledged, key });
  }

  applied({ rangeId, index, place, requestId, how, revision, revisionBefore }: AppliedCommand): void {
    if (how === 'refused') this.refused++;
    if (revision === revisionBefore) return;
    const name = `${rangeId}:${index}.${place}`;
    const known = this.#byPlace.get(name);
    if (known !== undefined) {
      if (known !== revision) this.#fault(`T2: ${name} has ${revision} here and ${known} there`);
      return;
    }
    this.#byPlace.set(name, revision);
    const owner = this.#owners.get(revision);
    if (owner !== undefined) this.#fault(`T1: ${name} has ${revision}, as ${owner} has`);
    this.#owners.set(revision, name);
    this.#placed(rangeId, name, { revision, requestId });
  }

  #placed(rangeId: number, name: string, change: Change): void {
    const { revision, requestId } = change;
    const changes = this.#changes.get(rangeId) ?? [];
    this.#changes.set(rangeId, changes);
    const last = changes.at(-1)?.revision ?? 0;
    if (revision <= last) this.#fault(`T2: ${name} has ${revision} behind ${last}`);
    changes.push(change);
    const above = this.#requests.get(requestId)?.above ?? 0;
    if (revision <= above) this.#fault(`T3: ${name} has ${revision}, and ${above} was acknowledged before it began`);
    const closed = this.#closed.get(rangeId) ?? 0;
    if (revision <= closed) this.#fault(`T4: ${name} has ${revision}, and ${closed} was closed`);
  }

  answered(revision: number): void {
    this.acknowledged = Math.max(this.acknowledged, revision);
  }

  /** A replica reports it now. */
  closed(rangeId: number, revision: number): void {
    this.closings++;
    this.#closed.set(rangeId, Math.max(this.#closed.get(rangeId) ?? 0, revision));
  }

  drawnAbove(floor: number, revision: number): void {
    if (revision < floor) this.#fault(`T6: ${revision} was drawn for the floor ${floor}`);
  }

  /** A revision that a range closed was drawn while `acknowledged` was the highest known revision. */
  drawn(revision: number, acknowledged: number): void {
    if (revision < acknowledged) this.#fault(`T5: ${revision} was drawn when ${acknowledged} was acknowledged`);
  }

  read(rangeId: number, revision: number, pairs: readonly string[]): void {
    this.reads++;
    const expected = new Map<string, string>();
    for (const change of this.#changes.get(rangeId) ?? []) {
      if (change.revision > revision) break;
      const key = this.#requests.get(change.requestId)?.key ?? '?';
      expected.set(key, `${key}=${change.requestId}@${change.revision}`);
    }
    const wanted = [...expected.values()].sort().join(' ');
    const found = [...pairs].sort().join(' ');
    if (found !== wanted) this.#fault(`T5: range ${rangeId} at ${revision} shows ${found} instead of ${wanted}`);
  }

  get changes(): number {
    return this.#owners.size;
  }

  #fault(text: string): void {
    this.faults.push(text);
  }
}
