/**
 * The network between one client of a test cluster and its node.
 *
 * CN1. Errors cross from the node's code to the SDK's as the SDK's own class, and back as the node's: in a test that
 *      uses the published packages, these are two.
 * CN2. While the client is cut off, nothing passes in either direction, not even the end of a connection. At the end of
 *      the cut, all connections from before break at both ends.
 */
import { ServiceError } from '@remora/base';
import type { MemoryLinkPair } from '@remora/protocol/testing';
import { type ClientPorts, RemoraError } from 'remora';

type ClientLink = ReturnType<ClientPorts['connectLink']>;
type ClientReceiver = Parameters<ClientLink['start']>[0];

/** Opens a connection at the node; undefined while the node does not serve. */
export type OpenAtNode = () => MemoryLinkPair | undefined;

export class ClientNetwork {
  readonly #openAtNode: OpenAtNode;
  readonly #links = new Set<TestLink>();
  #isCut = false;

  constructor(openAtNode: OpenAtNode) {
    this.#openAtNode = openAtNode;
  }

  get isCut(): boolean {
    return this.#isCut;
  }

  connect(): ClientLink {
    const link = new TestLink(this, this.#openAtNode, () => this.#links.delete(link));
    this.#links.add(link);
    return link;
  }

  cutOff(): void {
    this.#isCut = true;
  }

  reconnect(): void {
    if (!this.#isCut) return;
    this.#isCut = false;
    this.disconnect();
  }

  disconnect(): void {
    for (const link of [...this.#links]) link.break('the test has broken the connection');
  }
}

/** The client's end of a connection. */
class TestLink implements ClientLink {
  readonly #network: ClientNetwork;
  readonly #openAtNode: OpenAtNode;
  readonly #onEnd: () => void;
  #receiver: ClientReceiver | undefined;
  #pair: MemoryLinkPair | undefined;
  #isOver = false;

  constructor(network: ClientNetwork, openAtNode: OpenAtNode, onEnd: () => void) {
    this.#network = network;
    this.#openAtNode = openAtNode;
    this.#onEnd = onEnd;
  }

  start(receiver: ClientReceiver): void {
    this.#receiver = receiver;
    if (this.#network.isCut) return; // as behind a firewall: the client gives up by itself
    this.#pair = this.#openAtNode();
    if (this.#pair === undefined) return queueMicrotask(() => this.break('the test node is not running'));
    const unlessCut = (hear: () => void): void => {
      if (!this.#isOver && !this.#network.isCut) hear();
    };
    this.#pair.client.start({
      onOpen: () => unlessCut(() => receiver.onOpen()),
      onFrame: (frame) => unlessCut(() => receiver.onFrame(frame)),
      onDrain: () => unlessCut(() => receiver.onDrain()),
      onClose: ({ code, message }) => unlessCut(() => this.#ended(new RemoraError(code, message))),
    });
  }

  send(frame: Uint8Array): boolean {
    if (this.#isOver || this.#network.isCut) return true;
    return this.#pair?.client.send(frame) ?? true;
  }

  close(reason?: RemoraError): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#network.isCut && this.#pair !== undefined) return; // CN2: the node hears of it at the end of the cut
    this.#pair?.client.close(reason && new ServiceError(reason.code, reason.message));
    this.#onEnd();
  }

  /** Both ends hear that it is broken. */
  break(why: string): void {
    const error = new RemoraError('UNAVAILABLE', why);
    if (this.#isOver) this.#onEnd();
    else this.#ended(error);
    this.#pair?.sever();
  }

  #ended(error: RemoraError): void {
    this.#isOver = true;
    this.#onEnd();
    this.#receiver?.onClose(error);
  }
}
