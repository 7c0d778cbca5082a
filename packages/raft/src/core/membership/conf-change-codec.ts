/**
 * The encoding of a membership change in an entry of type `conf`. Numbers are varints of safe integers:
 *
 *   version (1)  transition (0 auto, 1 joint, 2 jointAuto, 3 forced)
 *   number of steps, then each: type (0 addVoter, 1 addLearner, 2 remove), replica
 *   length of the context, the context
 *
 * V1. An empty encoding is the change without steps and context, by which a leader leaves a joint configuration
 *     automatically (etcd-io/raft).
 * V2. `decodeConfChange` returns a well-formed change or throws `ConfChangeError`: it accepts neither truncated nor
 *     trailing bytes. A change of meaning or order must change the version; a test pins the bytes.
 */
import { type ConfChange, type ConfStep, LEAVE_JOINT } from './conf-change.ts';

const VERSION = 1;

/** The place in the list is the code: append only. */
const TRANSITIONS = ['auto', 'joint', 'jointAuto', 'forced'] as const satisfies readonly ConfChange['transition'][];
const STEP_TYPES = ['addVoter', 'addLearner', 'remove'] as const satisfies readonly ConfStep['type'][];

/** The bytes are not a membership change, or one of a later version. */
export class ConfChangeError extends Error {
  override readonly name = 'ConfChangeError';
}

export function encodeConfChange(change: ConfChange): Uint8Array {
  const { steps, transition, context } = change;
  if (steps.length === 0 && context.length === 0) return LEAVE_JOINT.context; // V1
  const bytes = [VERSION, TRANSITIONS.indexOf(transition)];
  putVarint(bytes, steps.length);
  for (const { type, replica } of steps) {
    bytes.push(STEP_TYPES.indexOf(type));
    putVarint(bytes, replica);
  }
  putVarint(bytes, context.length);
  const encoded = new Uint8Array(bytes.length + context.length);
  encoded.set(bytes);
  encoded.set(context, bytes.length);
  return encoded;
}

/** Throws `ConfChangeError` for bytes that are not a well-formed change (V2). */
export function decodeConfChange(bytes: Uint8Array): ConfChange {
  if (bytes.length === 0) return LEAVE_JOINT; // V1
  const reader = new Reader(bytes);
  const version = reader.byte();
  if (version !== VERSION) throw new ConfChangeError(`a membership change of unknown version ${version}`);
  const transition = reader.oneOf(TRANSITIONS, 'transition');
  const count = reader.varint();
  const steps: ConfStep[] = [];
  for (let i = 0; i < count; i++) steps.push({ type: reader.oneOf(STEP_TYPES, 'step'), replica: reader.varint() });
  const context = reader.rest(reader.varint());
  if (steps.length === 0 && context.length === 0) return LEAVE_JOINT; // V1, whatever transition it names
  return { steps, transition, context };
}

function putVarint(into: number[], value: number): void {
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) into.push((rest % 0x80) + 0x80);
  into.push(rest);
}

class Reader {
  readonly #bytes: Uint8Array;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  byte(): number {
    const byte = this.#bytes[this.#at++];
    if (byte === undefined) throw new ConfChangeError('truncated membership change');
    return byte;
  }

  varint(): number {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = this.byte();
      value += (byte % 0x80) * scale;
      if (!Number.isSafeInteger(value)) throw new ConfChangeError('a number in a membership change is too large');
      if (byte < 0x80) return value;
      if (scale > 2 ** 49) throw new ConfChangeError('a number in a membership change is too long');
    }
  }

  oneOf<T>(list: readonly T[], what: string): T {
    const code = this.byte();
    const found = list[code];
    if (found === undefined) throw new ConfChangeError(`a membership change with an unknown ${what} ${code}`);
    return found;
  }

  /** Reads the rest, which must have this length. A copy: it does not pin the entry's frame. */
  rest(length: number): Uint8Array {
    const left = this.#bytes.length - this.#at;
    if (left !== length) throw new ConfChangeError(`a membership change with ${left} bytes of context, not ${length}`);
    return new Uint8Array(this.#bytes.subarray(this.#at));
  }
}
