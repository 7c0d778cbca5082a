import { readFileSync } from 'node:fs';
import type { ConnectionOptions } from 'node:tls';
import { nodeClock, nodeRandom, randomGuid, type ServiceError } from '@remora/base';
import {
  type Command,
  type CommandResult,
  dialPipe,
  type Method,
  type PipeReply,
  pipeCommand,
  pipeQuery,
  ReconnectingChannel,
} from '@remora/protocol';
import { pause } from '../../e2e/eventually.ts';
import type { Access } from '../users/access.ts';
import { done, type Outcome, UNKNOWN } from './kv-client.ts';

/** How long a request id may be used. Later commands are refused. */
const DEADLINE_MS = 4_000;
const ATTEMPT_MS = 1_500;
const LATE_MS = 3_000;

/**
 * A client that repeats itself. It sends each put several times under one request id, through several gateways, both
 * concurrently and again after the answer. The put must be applied only once, and with only one outcome.
 */
export class RepeatingWriter {
  readonly name: string;
  readonly #gateways: readonly ReconnectingChannel[];
  readonly #prefix = `${randomGuid(nodeRandom())}.`;
  readonly #random = nodeRandom();
  #next = 1;

  /** `access`: for gateways with TLS. */
  constructor(name: string, endpoints: readonly string[], access: Access | undefined) {
    this.name = name;
    const ports = {
      clock: nodeClock(),
      random: this.#random,
      connect: ({ address }: { readonly address: string }) =>
        dialPipe(address, { clock: nodeClock(), tls: tlsOf(access) }),
      options: { connectTimeoutMs: 500, backoffMaxMs: 200 },
    };
    this.#gateways = endpoints.map((endpoint) => new ReconnectingChannel(ports, 0, () => endpoint));
  }

  async put(key: string, value: string): Promise<Outcome> {
    const timeMs = await this.#rangeTimeMs();
    if (timeMs === undefined) return { type: 'failed', why: 'no gateway knows the time' };
    const command: Command = {
      type: 'kv',
      op: {
        type: 'put',
        key: Buffer.from(key),
        value: Buffer.from(value),
        lease: 0n,
        prevKv: true,
        ignoreValue: false,
        ignoreLease: false,
      },
    };
    const request = {
      command,
      requestId: this.#prefix + String(this.#next++),
      timeoutMs: ATTEMPT_MS,
      deadlineMs: timeMs + DEADLINE_MS,
    };
    const [first, second, third] = this.#rotated();
    const send = (gateway: typeof first) =>
      gateway === undefined ? Promise.resolve(undefined) : this.#call(gateway, pipeCommand, request);
    const both = await Promise.all([send(first), pause(this.#next % 7).then(() => send(second))]);
    // Now and then the last copy comes so late that a new leader gets it, or one that was restarted.
    if (this.#next % 4 === 0) await pause(this.#random.int(LATE_MS));
    const answers = [...both, await send(third), await send(first)].filter((answer) => answer !== undefined);
    return outcomeOf(answers);
  }

  close(): void {
    for (const channel of this.#gateways) channel.close();
  }

  async #rangeTimeMs(): Promise<number | undefined> {
    for (const gateway of this.#rotated()) {
      const request = { query: { type: 'status' }, timeoutMs: ATTEMPT_MS } as const;
      const answer = await this.#call(gateway, pipeQuery, request);
      if (answer.reply?.rangeTimeMs !== undefined) return answer.reply.rangeTimeMs;
    }
    return undefined;
  }

  #rotated() {
    const by = this.#next % this.#gateways.length;
    return [...this.#gateways.slice(by), ...this.#gateways.slice(0, by)];
  }

  #call<Request, Reply>(
    channel: ReconnectingChannel,
    method: Method<Request, Reply>,
    request: Request,
  ): Promise<Answer<Reply>> {
    return new Promise((resolve) => {
      channel.call(method, request, { timeoutMs: ATTEMPT_MS + 250 }, (error, reply) => {
        resolve({ error, reply });
      });
    });
  }
}

/** As the files are now. */
function tlsOf(access: Access | undefined): ConnectionOptions | undefined {
  if (access === undefined) return undefined;
  const { caFile, certFile, keyFile } = access;
  return { ca: readFileSync(caFile), cert: readFileSync(certFile), key: readFileSync(keyFile) };
}

interface Answer<Reply> {
  readonly error: ServiceError | undefined;
  readonly reply: Reply | undefined;
}

/** One answer is enough. A range that remembers the id but not the answer reports that the request was applied. */
function outcomeOf(answers: readonly Answer<PipeReply<CommandResult>>[]): Outcome {
  const applied = ({ error, reply }: (typeof answers)[number]) => reply !== undefined || error?.code === 'RESULT_LOST';
  if (answers.some(applied)) return done();
  if (answers.some(({ error }) => error?.code === 'UNKNOWN_OUTCOME')) return UNKNOWN;
  return { type: 'failed', why: answers.map(({ error }) => error?.code ?? 'no answer').join(', ') };
}
