/** A process of anonymous attackers, each with one connection. One that is closed is opened again. */
import { connect, type Socket } from 'node:net';
import { tell, told } from '../load-process.ts';
import { ATTACK_KINDS, type AttackKind } from './kinds.ts';

export interface AttackSpec {
  readonly host: string;
  readonly ports: Readonly<Record<AttackKind['port'], number>>;
  readonly connections: number;
  /** The attackers' addresses. */
  readonly addresses: readonly string[];
}

export interface KindResult {
  readonly kind: string;
  readonly opened: number;
  readonly closed: number;
}

export interface AttackResult {
  readonly kinds: readonly KindResult[];
}

/**
 * Attackers come back after this time, and send more at this interval. It is not the rate of their bytes that is tried.
 */
const AGAIN_MS = 2_000;
const GO_ON_MS = 200;
/** What an attacker keeps to send at most, if the node does not read it. */
const UNSENT_BYTES_MAX = 1 << 20;

/** Sends `attacking` once every attacker has connected. On `stop` it ends them and sends the `result`. */
export async function runAttackers(spec: AttackSpec): Promise<void> {
  const stopped = told('stop');
  const deck = ATTACK_KINDS.flatMap((kind) => new Array<AttackKind>(kind.weight ?? 1).fill(kind));
  const crews = new Map(ATTACK_KINDS.map((kind) => [kind, new Crew(spec, kind)]));
  const first: Promise<void>[] = [];
  for (let i = 0; i < spec.connections; i++) {
    const kind = deck[i % deck.length];
    const address = spec.addresses[Math.floor(i / deck.length) % spec.addresses.length] ?? spec.host;
    const crew = kind && crews.get(kind);
    if (crew !== undefined) first.push(crew.attack(address));
  }
  await Promise.all(first);
  await tell({ type: 'attacking' });
  await stopped;
  const kinds = [...crews.values()].map((crew) => crew.end());
  await tell({ type: 'result', kinds });
}

/** The attackers of one kind. */
class Crew {
  readonly #spec: AttackSpec;
  readonly #kind: AttackKind;
  readonly #sockets = new Set<Socket>();
  readonly #timer: NodeJS.Timeout;
  #opened = 0;
  #closed = 0;
  #over = false;

  constructor(spec: AttackSpec, kind: AttackKind) {
    this.#spec = spec;
    this.#kind = kind;
    this.#timer = setInterval(() => this.#goOn(), GO_ON_MS);
  }

  /** Resolves when the first connection was opened or refused. */
  attack(localAddress: string): Promise<void> {
    return new Promise((resolve) => {
      const { host, ports } = this.#spec;
      const { port, begin } = this.#kind;
      const socket = connect({ host, port: ports[port], localAddress });
      this.#sockets.add(socket);
      socket.resume();
      socket.on('error', () => {});
      socket.on('connect', () => {
        this.#opened++;
        if (begin.length > 0) socket.write(begin);
        resolve();
      });
      socket.on('close', () => {
        resolve();
        this.#sockets.delete(socket);
        if (this.#over) return;
        this.#closed++;
        setTimeout(() => {
          if (!this.#over) void this.attack(localAddress);
        }, AGAIN_MS);
      });
    });
  }

  #goOn(): void {
    const { goOn } = this.#kind;
    if (goOn === undefined) return;
    for (const socket of this.#sockets) if (socket.writableLength < UNSENT_BYTES_MAX) socket.write(goOn);
  }

  end(): KindResult {
    this.#over = true;
    clearInterval(this.#timer);
    for (const socket of this.#sockets) socket.destroy();
    const { name, port } = this.#kind;
    return { kind: `${port}: ${name}`, opened: this.#opened, closed: this.#closed };
  }
}
