/** Thrown for a broken invariant. Nothing catches it: the process stops rather than go on with wrong state. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/**
 * Stops the caller when an invariant does not hold. `message` says which invariant, with its number where it has one.
 */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** Ends an exhaustive `switch`: the compiler rejects a union member that was forgotten. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable: ${JSON.stringify(value)}`);
}
