import { type Clock, copyBytes, ServiceError } from '@remora/base';
import type { FrameLink, FrameReceiver } from '../rpc/link.ts';

/** The most frames in transit on a memory link before `send` reports that it is full. */
const FRAMES_MAX = 16;

/** The two ends of a link in memory, and a way to break it: for tests, and for a process that calls itself. */
export interface MemoryLinkPair {
  readonly client: FrameLink;
  readonly server: FrameLink;
  /** Both ends are notified; frames in transit are lost. */
  sever(): void;
  /** While stalled, frames stay in transit in both directions. */
  stall(on: boolean): void;
}

/** Delivers in order, each frame on a later turn of `clock`, as a network would. */
export function createMemoryLink(clock: Clock): MemoryLinkPair {
  const ends = [new MemoryEnd(clock), new MemoryEnd(clock)] as const;
  ends[0].other = ends[1];
  ends[1].other = ends[0];
  return {
    client: ends[0],
    server: ends[1],
    sever() {
      for (const end of ends) end.hearClose(new ServiceError('UNAVAILABLE', 'the connection is broken'));
    },
    stall(on) {
      for (const end of ends) end.stall(on);
    },
  };
}

class MemoryEnd implements FrameLink {
  readonly #clock: Clock;
  other: MemoryEnd | undefined;
  #receiver: FrameReceiver | undefined;
  /** Sent by the other end and not delivered here yet. */
  #underWay: Buffer[] = [];
  #stalled = false;
  #over = false;
  #full = false;
  #opened = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  start(receiver: FrameReceiver): void {
    this.#receiver = receiver;
    this.#clock.setImmediate(() => {
      if (this.#over) return;
      this.#opened = true;
      receiver.onOpen();
      this.#deliver();
    });
  }

  send(frame: Uint8Array): boolean {
    const other = this.other;
    if (this.#over || other === undefined || other.#over) return true;
    other.#underWay.push(copyBytes(frame));
    this.#clock.setImmediate(() => other.#deliver());
    this.#full = other.#underWay.length >= FRAMES_MAX;
    return !this.#full;
  }

  close(reason?: ServiceError): void {
    if (this.#over) return;
    this.#over = true;
    const error = reason ?? new ServiceError('UNAVAILABLE', 'the peer ended the connection');
    const other = this.other;
    this.#clock.setImmediate(() => other?.hearClose(error));
  }

  hearClose(error: ServiceError): void {
    if (this.#over) return;
    this.#over = true;
    this.#underWay = [];
    this.#receiver?.onClose(error);
  }

  stall(on: boolean): void {
    this.#stalled = on;
    if (!on) this.#clock.setImmediate(() => this.#deliver());
  }

  #deliver(): void {
    if (this.#stalled || !this.#opened) return;
    const frames = this.#underWay;
    this.#underWay = [];
    for (const frame of frames) if (!this.#over) this.#receiver?.onFrame(frame);
    const other = this.other;
    if (other === undefined) return;
    if (!other.#full || other.#over) return;
    other.#full = false;
    other.#receiver?.onDrain();
  }
}
