import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type ServerOptions as TlsOptions } from 'node:https';
import type { AddressInfo } from 'node:net';

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly authorization: string | undefined;
  /** Wall time of its arrival. */
  readonly atMs: number;
}

/** An answer; `lost`: the connection is cut instead; `none`: nothing happens. */
export type Reaction = { readonly status: number; readonly body: object } | 'lost' | 'none';

/** A gateway that does as the test says, and remembers what it was asked. */
export class ScriptedGateway {
  readonly calls: Call[] = [];
  readonly #server: Server;
  readonly #scheme: string;
  #port = 0;

  private constructor(react: (call: Call) => Reaction | Promise<Reaction>, tls?: TlsOptions) {
    const listener: RequestListener = (request, response) => void this.#answer(request, response, react);
    this.#scheme = tls === undefined ? 'http' : 'https';
    this.#server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  }

  static async start(react: (call: Call) => Reaction | Promise<Reaction>, tls?: TlsOptions): Promise<ScriptedGateway> {
    const gateway = new ScriptedGateway(react, tls);
    await gateway.#listen();
    return gateway;
  }

  get address(): string {
    return `${this.#scheme}://127.0.0.1:${this.#port}`;
  }

  called(path: string): readonly Call[] {
    return this.calls.filter((call) => call.path.includes(path));
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  async #answer(
    request: IncomingMessage,
    response: ServerResponse,
    react: (call: Call) => Reaction | Promise<Reaction>,
  ): Promise<void> {
    const atMs = Date.now();
    let text = '';
    for await (const chunk of request) text += chunk;
    const { method = '', url = '', headers } = request;
    const body = text === '' ? {} : JSON.parse(text);
    const call: Call = { method, path: url, body, authorization: headers.authorization, atMs };
    this.calls.push(call);
    const reaction = await react(call);
    if (reaction === 'none') return;
    if (reaction === 'lost') request.socket.destroy();
    else response.writeHead(reaction.status, { 'content-type': 'application/json' }).end(JSON.stringify(reaction.body));
  }
}

export function refusal(status: number, code: string): Reaction {
  return { status, body: { error: { code, message: 'as the test says', retry: 'no' } } };
}
