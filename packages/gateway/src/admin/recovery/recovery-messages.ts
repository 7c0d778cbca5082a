import type { Bytes } from '@remora/base';
import type { admin } from '@remora/protocol/remora';
import type { LostGroup, RecoveryPlan, UnrecoverableRange } from './plan.ts';

const NO_KEY = Buffer.alloc(0);

export function fromPlan(
  { masters, ranges, unrecoverable }: RecoveryPlan,
  dead: readonly number[],
  { done, did }: { readonly done: boolean; readonly did: readonly string[] },
): admin.RecoverMajorityResponse {
  const lost = masters === undefined ? ranges : [masters, ...ranges];
  return {
    done,
    did: [...did],
    dead: dead.map(BigInt),
    lost: lost.map(fromLost),
    unrecoverable: unrecoverable.map(fromUnrecoverable),
  };
}

function fromLost({ range, voters, survivor, lastTerm, lastIndex, givenUp }: LostGroup): admin.LostMajority {
  return {
    rangeId: range?.rangeId ?? 0,
    start: keyOf(range?.start),
    end: keyOf(range?.end),
    voters: voters.map(BigInt),
    ...{ survivor, lastTerm, lastIndex },
    givenUp: givenUp.map(BigInt),
  };
}

function fromUnrecoverable({ range, reason }: UnrecoverableRange): admin.UnrecoverableRange {
  return { rangeId: range.rangeId, start: keyOf(range.start), end: keyOf(range.end), reason };
}

function keyOf(key: Bytes | undefined): Buffer {
  return key === undefined ? NO_KEY : Buffer.from(key);
}
