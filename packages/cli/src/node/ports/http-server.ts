// H1. Everything is bounded: connections in total and by address, the time that a header and a request may take to
//     arrive, bodies (this file reads none; handlers bound theirs).
// H2. /health reports whether the process works, /ready whether it can serve clients now. Both answer 503 if not, so
//     that load balancers and supervisors need not read the body.
// H3. Each listener has its own connection limits: a probe of the health listener is answered, however many clients of
//     the API are slow. On that listener, the quietest connection makes room for a new one.
// H4. Every request passes `requestRefusal` before anything else, whatever its path.
// H5. Answers that clients do not read are bounded, in total and by address (output-budget.ts).
// H6. Node parses requests strictly, whatever options it was started with: two lengths, a length beside
//     `Transfer-Encoding`, or a lone CR or LF would let a proxy and this server disagree where a request ends.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from 'node:net';
import {
  type Address,
  type Logger,
  loopSection,
  nodeClock,
  OUTPUT_LIMITS,
  OutputBudget,
  type SecurePort,
  type ServiceError,
  suggest,
} from '@remora/base';
import { errorAnswer, requestRefusal } from '@remora/gateway';
import { CommandError } from '../../exit-codes.ts';
import { boundConnections, boundOutput, type ConnectionLimits } from './http-connections.ts';
import { openHttp } from './secure-http.ts';

/** Addresses count by IPv4 address, or by the first 64 bits of an IPv6 address, because one customer has that many. */
export interface HttpLimits extends ConnectionLimits {
  /** How long the header of a request may take to arrive, from its first byte or from the connection's first moment. */
  readonly headersTimeoutMs: number;
  /** The same for header and body together. */
  readonly requestTimeoutMs: number;
}

/** One address can use all the calls that a node accepts (800), and leaves connections for others. */
export const API_LIMITS: HttpLimits = {
  connectionsMax: 1_000,
  connectionsPerAddressMax: 800,
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 10_000,
};
/** For probes and Prometheus, from a few addresses. */
export const HEALTH_LIMITS: HttpLimits = {
  connectionsMax: 100,
  connectionsPerAddressMax: 50,
  whenFull: 'closeQuietest',
  headersTimeoutMs: 5_000,
  requestTimeoutMs: 5_000,
};
/** Of the line and the header of a request, as Node has it by default. */
const HEADER_BYTES_MAX = 16 << 10;
/** The time limits are enforced this often; Node's own interval is 30 s. */
const TIMEOUT_CHECK_MS = 2_000;
/** A silent connection is probed, because the caller of a waiting call may be gone. */
const KEEP_ALIVE_MS = 10_000;

/** The state of one aspect of the node, with reasons if it is not well. */
export interface Report {
  readonly ok: boolean;
  /** Empty when `ok`. */
  readonly reasons: readonly string[];
  /** More to show: a role, a leader, a revision. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Serves some paths: the JSON interface, the console. */
export interface HttpHandler {
  /**
   * Each begins with a slash; a path that also ends with one stands for everything below it: `/v1/`. `/` is only
   * itself.
   */
  readonly paths: readonly string[];
  /**
   * Its answers to GET are the same for everybody and hold nothing of the cluster, so links of other sites may lead
   * there, as those between the consoles of two gateways do. Default: false.
   */
  readonly isPublic?: boolean;
  handle(request: IncomingMessage, response: ServerResponse): void | Promise<void>;
}

export interface HttpServerOptions extends HttpServices {
  readonly listen: Address;
  /** The flag for its listening address. */
  readonly flag: string;
  /** TLS at this port; plain text without it. */
  readonly secure?: SecurePort | undefined;
}

/** The answers of a server, and the callers that it accepts. */
export interface HttpServices {
  readonly limits: HttpLimits;
  /** Names, besides IP addresses and localhost, that clients may use (`Host`), in lower case. */
  readonly names: ReadonlySet<string>;
  readonly logger: Logger;
  health(): Report;
  ready(): Report;
  metrics(): Promise<{ readonly contentType: string; readonly body: string }>;
  readonly handlers?: readonly HttpHandler[];
  /** Shared by servers whose answers are bounded together (H5); by default, a server has its own. */
  readonly output?: OutputBudget;
}

export interface RunningHttpServer {
  /** The port that was bound, also if port 0 was requested. */
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * Listens for HTTP.
 * @throws {CommandError} `portTaken`, naming the port and its flag; `usage` for an address that is not one of this
 * machine.
 */
export async function startHttpServer(options: HttpServerOptions): Promise<RunningHttpServer> {
  if (options.secure !== undefined) return startSecureServer(options, options.secure);
  const server = httpServer(options);
  await listen(server, options.listen, options.flag);
  const { port } = server.address() as AddressInfo;
  return { port, stop: () => stop(server) };
}

/** A server whose connections begin with TLS, or with plain text if the port allows both. */
async function startSecureServer(options: HttpServerOptions, secure: SecurePort): Promise<RunningHttpServer> {
  const { headersTimeoutMs: timeoutMs } = options.limits;
  const connections = serveHttpConnections(options);
  const beginning = new Set<Socket>();
  const server = createTcpServer();
  boundConnections(server, options.limits); // before the connections that it closes are read
  server.on('connection', (socket) => {
    if (socket.destroyed) return;
    beginning.add(socket);
    socket.once('close', () => beginning.delete(socket));
    openHttp(socket, secure, {
      timeoutMs,
      take(secured) {
        beginning.delete(socket);
        connections.take(secured);
      },
    });
  });
  await listen(server, options.listen, options.flag);
  return {
    port: (server.address() as AddressInfo).port,
    async stop() {
      server.close();
      for (const socket of beginning) socket.destroy();
      await connections.stop();
    },
  };
}

/** Serves HTTP to connections that another port has accepted. */
export interface HttpConnections {
  /** Takes a connection from its first byte on. */
  take(socket: Socket): void;
  stop(): Promise<void>;
}

export function serveHttpConnections(services: HttpServices): HttpConnections {
  const server = httpServer(services);
  // From this event on, Node enforces the time limits of a server (H1), although this one does not listen itself.
  server.emit('listening');
  let stopping = false;
  return {
    take(socket) {
      if (stopping) return void socket.destroy();
      server.emit('connection', socket);
      socket.resume();
    },
    stop() {
      stopping = true;
      return stop(server);
    },
  };
}

function httpServer(services: HttpServices): Server {
  const { limits } = services;
  const server = createServer({
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    ...{ insecureHTTPParser: false, maxHeaderSize: HEADER_BYTES_MAX }, // H6
    // A missing header gets an explanatory answer (H4).
    requireHostHeader: false,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  });
  boundConnections(server, limits);
  boundOutput(server, services.output ?? new OutputBudget(OUTPUT_LIMITS, nodeClock(), services.logger));
  server.on('request', (request, response) => {
    loopSection('http', () => serve(services, request, response)).catch((error: unknown) => {
      services.logger.error({ error, url: request.url }, 'HTTP request failed');
      if (response.headersSent) response.destroy();
      else sendJson(response, 500, { error: 'internal error; see the log of the node' });
    });
  });
  return server;
}

/** Binds a server; the error names the flag to change. */
export function listen(server: TcpServer, { host, port }: Address, flag: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => reject(listenError(cause, { host, port }, flag)));
    server.listen({ host, port }, resolve);
  });
}

/** Converts a bind error into one that names the flag. */
export function listenError(cause: NodeJS.ErrnoException, { host, port }: Address, flag: string): CommandError {
  if (cause.code === 'EADDRINUSE') {
    return new CommandError('portTaken', `port ${port} on ${host} is taken; choose another with ${flag}`, { cause });
  }
  if (cause.code === 'EACCES') {
    return new CommandError('usage', `port ${port} needs privileges; choose one above 1023 with ${flag}`, { cause });
  }
  return new CommandError('usage', `cannot listen on ${host}:${port}: ${cause.message} (${flag})`, { cause });
}

/** What every server of HTTP answers itself. */
export const OWN_PATHS = ['/health', '/ready', '/metrics'];

async function serve(options: HttpServices, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { headers, headersDistinct, url: target = '' } = request;
  const site = headers['sec-fetch-site'];
  const path = target.split('?', 1)[0] ?? '/';
  const handler = options.handlers?.find(({ paths }) => paths.some((served) => isServed(path, served)));
  const isOpen = handler?.isPublic === true && (request.method === 'GET' || request.method === 'HEAD');
  const from = isOpen ? undefined : site?.toString();
  const head = { target, hosts: headersDistinct.host ?? [], origin: headers.origin, site: from };
  const refusal = requestRefusal(head, options.names);
  if (refusal !== undefined) return sendRefusal(refusal, response); // H4
  if (handler !== undefined) return handler.handle(request, response);
  if (!OWN_PATHS.includes(path)) return sendNotFound(options, path, response);
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    response.setHeader('allow', 'GET, HEAD');
    return sendJson(response, 405, { error: `${path} answers GET only` });
  }
  if (path === '/metrics') {
    const { contentType, body } = await options.metrics();
    return send(response, 200, contentType, body);
  }
  const report = path === '/health' ? options.health() : options.ready();
  // The form of etcd's /health, which its tools expect, with further fields.
  const etcd = path === '/health' ? { health: String(report.ok) } : { ready: report.ok };
  sendJson(response, report.ok ? 200 : 503, { ...etcd, reasons: report.reasons, ...report.details });
}

function isServed(path: string, served: string): boolean {
  return served.endsWith('/') && served !== '/' ? `${path}/`.startsWith(served) : path === served;
}

function sendRefusal(refusal: ServiceError, response: ServerResponse): void {
  const { status, headers, body } = errorAnswer(refusal);
  for (const [name, value] of Object.entries(headers ?? {})) response.setHeader(name, value);
  sendJson(response, status, body);
}

function sendNotFound(options: HttpServices, path: string, response: ServerResponse): void {
  const paths = [...OWN_PATHS, ...(options.handlers ?? []).flatMap(({ paths }) => paths)];
  const meant = suggest(path, paths);
  const hint = meant === undefined ? `the paths are ${paths.join(', ')}` : `did you mean ${meant}?`;
  sendJson(response, 404, { error: `nothing at ${path.slice(0, 200)}; ${hint}` });
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  send(response, status, 'application/json; charset=utf-8', `${JSON.stringify(body)}\n`);
}

function send(response: ServerResponse, status: number, contentType: string, body: string): void {
  response.writeHead(status, {
    'content-type': contentType,
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  });
  response.end(body);
}

/** Refuses new requests, lets running ones finish and closes idle connections; after a second, the rest too. */
function stop(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => server.closeAllConnections(), 1000);
    server.close(() => {
      clearTimeout(force);
      resolve();
    });
    server.closeIdleConnections();
  });
}
