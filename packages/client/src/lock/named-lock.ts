import type { LockId } from '@remora/lock';
import { Printable } from '../values/printable.ts';

/** Whatever is locked by name. Making one sends no request. */
export abstract class NamedLock extends Printable {
  /** The namespace and the name, as bytes. */
  readonly id: LockId;

  constructor(id: LockId) {
    super();
    this.id = id;
  }

  /** The name, as text; `id.name` has its bytes. */
  get name(): string {
    return nameText(this.id);
  }

  /** Its namespace and its name. */
  toJSON(): object {
    return { namespace: this.id.namespace, name: this.name };
  }
}

/** For people: bytes that are not UTF-8 become replacement characters. */
export function nameText({ name }: LockId): string {
  return Buffer.from(name).toString();
}
