/**
 * What clients wrote into one group and read from it, and which of the writes were applied. Each value is written once.
 */
import type { Entry } from '@remora/raft';
import { require } from '../../common/violation.ts';

/** The number that a client wrote. 0 for entries without one. */
export function writtenValue({ type, data }: Entry): number {
  return type === 'normal' && data.length >= 4 ? leadingNumber(data) : 0;
}

function leadingNumber(data: Uint8Array): number {
  return (((data[0] ?? 0) << 24) | ((data[1] ?? 0) << 16) | ((data[2] ?? 0) << 8) | (data[3] ?? 0)) >>> 0;
}

export class WrittenValues {
  readonly #groupId: number;
  /** Values of writes that were reported as lost. */
  readonly #dead = new Set<number>();
  /** Values that were applied. */
  readonly #values = new Set<number>();
  /** The highest index whose effect a client has seen. */
  visible = 0;

  constructor(groupId: number) {
    this.#groupId = groupId;
  }

  /** An entry was applied for the first time on any replica. */
  applied(entry: Entry): void {
    const value = writtenValue(entry);
    if (value === 0) return;
    require(!this.#dead.has(value), 'refused writes have no effect', () =>
      `group ${this.#groupId}: value ${value} was applied at index ${entry.index}, and had been reported as lost`);
    require(!this.#values.has(value), 'state machine safety', () => `value ${value} was applied twice`);
    this.#values.add(value);
  }

  /** A write was acknowledged. `floor` was visible when it began. */
  acknowledged(write: { readonly value: number; readonly index: number; readonly floor: number }): void {
    const { value, index, floor } = write;
    require(this.#values.has(value), 'linearizable writes', () => `value ${value} was acknowledged and not applied`);
    require(index > floor, 'linearizable writes', () =>
      `group ${this.#groupId}: value ${value} at index ${index} began after index ${floor} was visible`);
    this.visible = Math.max(this.visible, index);
  }

  /** A client learned that its write will never have an effect. */
  lost(value: number): void {
    require(!this.#values.has(value), 'refused writes have no effect', () =>
      `group ${this.#groupId}: value ${value} was reported as lost and is applied`);
    this.#dead.add(value);
  }

  /** A read was answered from the state at `index`. `floor` was visible when it began. */
  read(answer: { readonly index: number; readonly floor: number; readonly how: string; readonly by: number }): void {
    const { index, floor, how, by } = answer;
    require(index >= floor, 'linearizable reads', () =>
      `group ${this.#groupId}: replica ${by} answered a ${how} from index ${index}, and index ${floor} was visible before it began`);
    this.visible = Math.max(this.visible, index);
  }
}
