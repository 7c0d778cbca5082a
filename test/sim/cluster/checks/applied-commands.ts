/**
 * What apply makes of commands, on all replicas, over restarts and snapshots. A command stands at one position of its
 * range's log: the index of an entry and a place in it.
 *
 * A1. Applied once: a request is executed at one position only, however often it was sent. Whoever asks again is
 *     answered as the first one was.
 * A2. Every replica makes the same of a command, whenever it applies it, to the last row that it writes.
 * A3. What is refused, and what fails, changes nothing.
 * A4. A revision is given to one command, and they grow with the log.
 */
import type { AppliedCommand } from '@remora/dataserver';
import { require } from '../../common/violation.ts';

/** As it was first seen on any replica. */
export interface KnownCommand extends AppliedCommand {
  /** Of the rows that it wrote; 0 for none. */
  readonly digest: number;
}

const PLACES_MAX = 2 ** 16;

class RangeCommands {
  readonly byPosition = new Map<number, KnownCommand>();
  readonly executed = new Map<string, KnownCommand>();
  /** What was given the revision. */
  readonly byRevision = new Map<number, KnownCommand>();
}

export class AppliedCommands {
  readonly #ranges = new Map<number, RangeCommands>();
  #count = 0;

  /** The command that a request became, where it was executed. */
  executed(requestId: string): KnownCommand | undefined {
    for (const { executed } of this.#ranges.values()) {
      const found = executed.get(requestId);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** A replica has applied a command and written rows of this digest. */
  applied(nodeId: number, command: AppliedCommand, digest: number): void {
    const { rangeId, index, place } = command;
    const range = this.#range(rangeId);
    const position = index * PLACES_MAX + place;
    const known = range.byPosition.get(position);
    const now: KnownCommand = { ...command, digest };
    if (known !== undefined) return same(nodeId, known, now);
    range.byPosition.set(position, now);
    changesNothingInVain(now);
    if (command.how === 'executed') executedOnce(range, now);
    if (command.how === 'remembered') answeredAsBefore(range, now);
    if (command.revision !== command.revisionBefore) revisionOfItsOwn(range, now);
    this.#count++;
  }

  /** Commands that were applied, each counted once. */
  get count(): number {
    return this.#count;
  }

  #range(rangeId: number): RangeCommands {
    let range = this.#ranges.get(rangeId);
    if (range === undefined) {
      range = new RangeCommands();
      this.#ranges.set(rangeId, range);
    }
    return range;
  }
}

/** A2. */
function same(nodeId: number, known: KnownCommand, now: KnownCommand): void {
  require(told(known) === told(now), 'applied alike', () =>
    `${place(now)} became on node ${nodeId}: ${told(now)}; on another replica: ${told(known)}`);
}

/** A1. */
function executedOnce({ executed }: RangeCommands, now: KnownCommand): void {
  if (now.requestId === '') return;
  const before = executed.get(now.requestId);
  require(before === undefined, 'applied once', () =>
    `request ${now.requestId} was executed as ${place(now)}, and before as ${before === undefined ? '' : place(before)}`);
  executed.set(now.requestId, now);
}

/** A1. */
function answeredAsBefore({ executed }: RangeCommands, now: KnownCommand): void {
  const before = executed.get(now.requestId);
  require(before !== undefined && before.outcome.revision === now.outcome.revision, 'applied once', () =>
    `${place(now)} was answered as request ${now.requestId} was before, at revision ${now.outcome.revision}; ` +
    (before === undefined ? 'it never was executed' : `it was executed at revision ${before.outcome.revision}`));
}

/** A3. */
function changesNothingInVain(now: KnownCommand): void {
  const changed = now.revision !== now.revisionBefore || now.digest !== 0;
  const may = now.how === 'executed' && now.outcome.ok;
  require(may || !changed, 'refused writes have no effect', () => `${place(now)} changed something: ${told(now)}`);
}

/** A4. */
function revisionOfItsOwn({ byRevision }: RangeCommands, now: KnownCommand): void {
  const other = byRevision.get(now.revision);
  require(other === undefined, 'revisions are unique', () =>
    `revision ${now.revision} names ${place(now)} and ${other === undefined ? '' : place(other)}`);
  require(now.revision > now.revisionBefore, 'revisions grow', () =>
    `${place(now)} took revision ${now.revisionBefore} to ${now.revision}`);
  byRevision.set(now.revision, now);
}

function told({ requestId, how, revisionBefore, revision, outcome, digest }: KnownCommand): string {
  const result = outcome.ok ? outcome.result.type : outcome.code;
  return (
    `request "${requestId}" ${how}, ${result} at ${outcome.revision}, revision ${revisionBefore} → ${revision}, ` +
    `rows ${digest.toString(16)}`
  );
}

function place({ rangeId, index, place: at }: KnownCommand): string {
  return `command ${at} of entry ${index} of range ${rangeId}`;
}
