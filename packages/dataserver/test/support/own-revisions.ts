import { InvariantError } from '@remora/base';
import type { RevisionSource } from '../../src/revisions/revision-drawer.ts';

function fail(): never {
  throw new InvariantError('a range that counts by itself asked for revisions');
}

/** Of ranges that count their revisions by themselves: they never ask. For tests. */
export const NOBODY_NUMBERS: RevisionSource = { want: fail, newest: fail, one: fail };
