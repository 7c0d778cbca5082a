/** Thrown for a broken invariant. Nothing catches it: the process stops instead of continuing with wrong state. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/** Throws if an invariant does not hold. `message` names the invariant, with its number if it has one. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

/** Ends an exhaustive `switch`: the compiler rejects a union member that was forgotten. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable: ${JSON.stringify(value)}`);
}
