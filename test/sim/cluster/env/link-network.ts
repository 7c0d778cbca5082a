/**
 * Streams between the processes of a world, with the behaviour of TCP and of the probes of frame streams.
 *
 * S1. While a link exists it keeps order and loses nothing: a lost segment appears as a delay of everything that
 *     follows.
 * S2. Data that a cut holds up arrives late if the cut ends soon. Both ends give the link up when nothing has come from
 *     the other for the time of a probe; data in transit is then lost, and neither end knows how much.
 * S3. The machine of a killed process closes its links; a machine that loses power sends nothing, ever (S2).
 * S4. Arriving data enters a process through its door: not while it is paused, never after its end.
 * S5. Both ends learn the identity of the other, and refuse unknown ones, like the hellos of frame streams.
 */
import { type Bytes, copyBytes, type Random, ServiceError } from '@remora/base';
import {
  type FrameLink,
  type FrameReceiver,
  incarnationDigest,
  type LinkAnswer,
  type LinkIdentity,
} from '@remora/protocol';
import type { LinkFaults } from '@remora/raft/testing';
import type { SimLoop } from '../../common/env/loop.ts';

/** One life of a process, as links know it. */
export interface Party {
  readonly id: number;
  readonly door: (fn: () => void) => void;
}

export interface Listener {
  readonly party: Party;
  /** The identity of the answering end; absent if no end asks for it. */
  readonly self?: LinkIdentity;
  /** Accepts a new link, or returns why not. */
  accept(link: FrameLink, caller: LinkIdentity | undefined): ServiceError | undefined;
}

export interface LinkNetworkDeps {
  readonly loop: SimLoop;
  readonly random: Random;
  readonly faultsOf: (from: number, to: number) => LinkFaults;
  /** Called before a frame is accepted. */
  readonly onFrame: (from: number, to: number, frame: Uint8Array) => void;
}

/** The Pipe's settings: a probe after 5 s, 3 s for its answer. Nodes probe each other sooner. */
const KEEP_ALIVE_MS = 8_000;
const KEEP_ALIVE_LOOK_MS = 1_000;
/** How long TCP waits before it sends again; doubled each time. */
const RESEND_MS = 200;
const HELD_LOOK_MS = 20;
/** Bytes in transit before a sender must pause. */
const WINDOW_BYTES = 64 << 10;

export class LinkNetwork {
  readonly #deps: LinkNetworkDeps;
  readonly #listeners = new Map<string, Listener>();
  readonly #links = new Set<SimLink>();

  constructor(deps: LinkNetworkDeps) {
    this.#deps = deps;
  }

  /** Links that are open or being opened. */
  get open(): number {
    return this.#links.size;
  }

  /** The number of these that certain processes began. */
  openFrom(began: (id: number) => boolean): number {
    return [...this.#links].filter((link) => began(link.client.party?.id ?? 0)).length;
  }

  /** Takes links at an address until the returned function is called. */
  listen(address: string, listener: Listener): () => void {
    this.#listeners.set(address, listener);
    return () => {
      if (this.#listeners.get(address) === listener) this.#listeners.set(address, { ...listener, accept: refuse });
    };
  }

  connect(
    from: Party,
    target: { readonly address: string; readonly nodeId: number },
    self: LinkIdentity | undefined,
    verify: (answer: LinkAnswer) => ServiceError | undefined = () => undefined,
  ): FrameLink {
    const link = new SimLink(this.#deps, from, () => this.#links.delete(link));
    this.#links.add(link);
    link.dial(() => this.#answer(target.address), { nodeId: target.nodeId, self, verify });
    return link.client;
  }

  /** A process ended; `told`: its machine closes its connections. */
  ended(party: Party, told: boolean): void {
    for (const [address, listener] of this.#listeners) {
      if (listener.party === party) this.#listeners.set(address, { ...listener, accept: told ? refuse : noAnswer });
    }
    for (const link of [...this.#links]) link.ended(party, told);
  }

  /** Breaks the nth open link, with everything in transit on it. */
  breakOne(n: number): boolean {
    const link = [...this.#links][n % Math.max(1, this.#links.size)];
    link?.break('the connection was reset');
    return link !== undefined;
  }

  #answer(address: string): Listener | undefined {
    return this.#listeners.get(address);
  }
}

const REFUSED = new ServiceError('UNAVAILABLE', 'connection refused');
/** Replaces a process that is gone: its machine refuses, or is off. */
const refuse: Listener['accept'] = () => REFUSED;
const noAnswer: Listener['accept'] = () => undefined;

interface Dial {
  readonly nodeId: number;
  readonly self: LinkIdentity | undefined;
  readonly verify: (answer: LinkAnswer) => ServiceError | undefined;
}

/** Both ends of one link, and the data between them. */
class SimLink {
  readonly client: End;
  readonly #deps: LinkNetworkDeps;
  readonly #server: End;
  readonly #gone: () => void;
  #over = false;
  /** For how long nothing could get through in one of the directions. */
  #silentMs = 0;

  constructor(deps: LinkNetworkDeps, from: Party, gone: () => void) {
    this.#deps = deps;
    this.#gone = gone;
    this.client = new End(this, deps, from);
    this.#server = new End(this, deps, undefined);
    this.client.other = this.#server;
    this.#server.other = this.client;
  }

  dial(answer: () => Listener | undefined, dial: Dial): void {
    const listener = answer();
    // There never was a process: equivalent to a refusal by some machine on the way.
    this.#server.party = listener?.party ?? { id: this.client.party?.id ?? 0, door: (fn) => fn() };
    this.client.push(() => this.#arrive(answer(), dial));
    this.#look();
  }

  #arrive(listener: Listener | undefined, dial: Dial): void {
    if (listener === undefined || listener.accept === refuse) return this.#refuse(REFUSED);
    if (listener.accept === noAnswer) return; // the dialling end gives up on its own
    this.#server.party = listener.party;
    listener.party.door(() => {
      if (this.#over) return;
      const refusal = listener.accept(this.#server, dial.self);
      if (refusal !== undefined) return this.#refuse(refusal);
      this.#server.push(() => this.client.enter(() => this.#opened(listener, dial)));
    });
  }

  #opened({ self }: Listener, dial: Dial): void {
    const refusal = self === undefined ? undefined : answerRefusal(self, dial);
    if (refusal === undefined) return this.client.opened();
    this.client.hearClose(refusal);
    this.break('the peer is gone');
  }

  #refuse(reason: ServiceError): void {
    this.#server.push(() => {
      this.client.enter(() => this.client.hearClose(reason));
      this.end();
    });
  }

  /** S2, S3. */
  #look(): void {
    this.#deps.loop.setTimer(KEEP_ALIVE_LOOK_MS, () => {
      if (this.#over) return;
      const silent = this.blocked(this.client, this.#server) || this.blocked(this.#server, this.client);
      this.#silentMs = silent ? this.#silentMs + KEEP_ALIVE_LOOK_MS : 0;
      if (this.#silentMs >= KEEP_ALIVE_MS) this.break('nothing was heard for too long');
      else this.#look();
    });
  }

  blocked(from: End, to: End): boolean {
    if (from.dead || to.dead) return true;
    const [a, b] = [from.party?.id ?? 0, to.party?.id ?? 0];
    if (a === b) return false;
    const { blocked, dropPerMille } = this.#deps.faultsOf(a, b);
    return blocked || dropPerMille >= 1000;
  }

  ended(party: Party, told: boolean): void {
    const end = [this.client, this.#server].find((one) => one.party === party);
    if (end === undefined) return;
    end.dead = true;
    if (!told) return;
    end.clear();
    end.dead = false;
    end.push(() => this.break('the peer ended the connection'));
  }

  break(reason: string): void {
    if (this.#over) return;
    const error = new ServiceError('UNAVAILABLE', reason);
    for (const end of [this.client, this.#server]) end.enter(() => end.hearClose(error));
    this.end();
  }

  end(): void {
    this.#over = true;
    this.client.clear();
    this.#server.clear();
    this.#gone();
  }

  get over(): boolean {
    return this.#over;
  }
}

/** S5, as the dialling end of a real link sees it (protocol/src/rpc/node/socket-rpc.ts). */
function answerRefusal(answering: LinkIdentity, { nodeId: wanted, self, verify }: Dial): ServiceError | undefined {
  const { nodeId, clusterId, incarnation, address } = answering;
  if (wanted !== 0 && nodeId !== wanted) {
    return new ServiceError('UNAVAILABLE', `was to be node ${wanted} but is node ${nodeId}`);
  }
  if (self === undefined || self.clusterId !== clusterId) return undefined;
  const cause = verify({ nodeId, digest: incarnationDigest(incarnation), wanted: wanted === nodeId, address });
  return cause === undefined ? undefined : new ServiceError('UNAVAILABLE', cause.message, { cause });
}

interface InFlight {
  readonly atMs: number;
  readonly bytes: number;
  readonly arrive: () => void;
}

/** One end: sent data waits here until it has arrived at the other. */
class End implements FrameLink {
  readonly #link: SimLink;
  readonly #deps: LinkNetworkDeps;
  party: Party | undefined;
  other: End | undefined;
  /** Its machine has no power. */
  dead = false;
  #receiver: FrameReceiver | undefined;
  #closed = false;
  #inFlight: InFlight[] = [];
  #bytes = 0;
  #full = false;
  #earliestMs = 0;

  constructor(link: SimLink, deps: LinkNetworkDeps, party: Party | undefined) {
    this.#link = link;
    this.#deps = deps;
    this.party = party;
  }

  // ------------------------------------------------------------------------------------------ the port

  start(receiver: FrameReceiver): void {
    this.#receiver = receiver;
    // The accepting end is open from the beginning; the dialling end is notified.
    if (this === this.#link.client) return;
    receiver.onOpen();
  }

  send(frame: Uint8Array): boolean {
    if (this.#closed || this.#link.over) return true;
    const copy = copyBytes(frame);
    this.push(() => this.other?.take(copy), copy.length);
    this.#full ||= this.#bytes >= WINDOW_BYTES;
    return !this.#full;
  }

  close(reason?: ServiceError): void {
    if (this.#closed || this.#link.over) return;
    this.#closed = true;
    const error = reason ?? new ServiceError('UNAVAILABLE', 'the peer ended the connection');
    this.push(() => {
      const { other } = this;
      other?.enter(() => other.hearClose(error));
      this.#link.end();
    });
  }

  // ------------------------------------------------------------------------------------------ what happens to it

  enter(fn: () => void): void {
    this.party?.door(fn);
  }

  opened(): void {
    if (!this.#closed) this.#receiver?.onOpen();
  }

  hearClose(error: ServiceError): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#receiver?.onClose(error);
  }

  take(frame: Bytes): void {
    this.#deps.onFrame(this.other?.party?.id ?? 0, this.party?.id ?? 0, frame);
    this.enter(() => {
      if (!this.#closed) this.#receiver?.onFrame(frame);
    });
  }

  clear(): void {
    this.#inFlight = [];
    this.#bytes = 0;
  }

  // ------------------------------------------------------------------------------------------ the way

  push(arrive: () => void, bytes = 0): void {
    const { loop, random, faultsOf } = this.#deps;
    const { delayMs, jitterMs, dropPerMille } = faultsOf(this.party?.id ?? 0, this.other?.party?.id ?? 0);
    let tripMs = delayMs + (jitterMs > 0 ? random.int(Math.ceil(jitterMs) + 1) : 0);
    for (let wait = RESEND_MS; dropPerMille > 0 && random.int(1000) < dropPerMille && wait < 4_000; wait *= 2) {
      tripMs += wait; // S1
    }
    this.#earliestMs = Math.max(this.#earliestMs, loop.monotonicMs() + tripMs);
    this.#inFlight.push({ atMs: this.#earliestMs, bytes, arrive });
    this.#bytes += bytes;
    if (this.#inFlight.length === 1) this.#wait(this.#earliestMs);
  }

  #wait(untilMs: number): void {
    const { loop } = this.#deps;
    const [first] = this.#inFlight;
    loop.setTimer(untilMs - loop.monotonicMs(), () => {
      if (this.#inFlight[0] === first) this.#deliver();
    });
  }

  #deliver(): void {
    const { other } = this;
    const [first] = this.#inFlight;
    if (other === undefined || first === undefined) return;
    const nowMs = this.#deps.loop.monotonicMs();
    if (this.#link.blocked(this, other)) return this.#wait(nowMs + HELD_LOOK_MS);
    this.#inFlight.shift();
    this.#bytes -= first.bytes;
    const [next] = this.#inFlight;
    if (next !== undefined) this.#wait(Math.max(nowMs, next.atMs));
    if (this.#full && this.#bytes < WINDOW_BYTES / 2) {
      this.#full = false;
      this.enter(() => {
        if (!this.#closed) this.#receiver?.onDrain();
      });
    }
    first.arrive();
  }
}
