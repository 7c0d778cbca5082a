/** The promises that a run checks at each step. Names follow the dissertation (figure 3.2) where it has one. */
export type Property =
  | 'election safety'
  | 'leader append-only'
  | 'log matching'
  | 'leader completeness'
  | 'state machine safety'
  | 'applied within commit'
  | 'commit durable on a quorum'
  | 'promise durable'
  | 'one vote per term'
  | 'terms and commit grow'
  | 'durable is kept'
  | 'one pending membership change'
  | 'linearizable writes'
  | 'linearizable reads'
  | 'a lease excludes'
  | 'refused writes have no effect'
  | 'nodes do not stop'
  | 'applied alike'
  | 'applied once'
  | 'answers are true'
  | 'revisions are unique'
  | 'revisions grow'
  | 'revisions in real-time order'
  | 'liveness'
  | 'alone without a majority'
  | 'the best goes on'
  | 'nothing leaks';

/** A broken promise, with a description. */
export class Violation extends Error {
  override readonly name = 'Violation';
  readonly property: string;

  constructor(property: string, detail: string) {
    super(`${property}: ${detail}`);
    this.property = property;
  }
}

export function require(condition: boolean, property: Property, detail: () => string): void {
  if (!condition) throw new Violation(property, detail());
}
