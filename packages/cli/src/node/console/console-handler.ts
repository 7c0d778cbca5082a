import type { IncomingMessage, ServerResponse } from 'node:http';
import type { HttpHandler } from '../ports/http-server.ts';
import type { ConsoleFile } from './console-files.ts';

const BASE = '/console/';
const PAGE = 'index.html';

/**
 * The console runs its own files and calls this server, and nothing else: markup that came in with a key or the name of
 * a lock could not load or run anything (docs/decisions/0113-the-console.md).
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ');

const ALWAYS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'accept-encoding',
} as const;

/**
 * Serves the files of the console. Every address below `/console/` that is no file is a page of it, whose address the
 * console reads itself; `/` is the first page.
 */
export function consoleHandler(files: ReadonlyMap<string, ConsoleFile>): HttpHandler {
  return {
    paths: ['/', BASE],
    isPublic: true,
    handle(request, response) {
      const { method, url = '/' } = request;
      if (method !== 'GET' && method !== 'HEAD') {
        response.writeHead(405, { ...ALWAYS, allow: 'GET, HEAD', 'content-type': 'text/plain; charset=utf-8' });
        return void response.end('the console answers GET only\n');
      }
      const path = (url.split('?', 1)[0] ?? '').slice(BASE.length);
      const file = files.get(path) ?? (path.startsWith('assets/') ? undefined : files.get(PAGE));
      if (file !== undefined) return send(file, request, response);
      response.writeHead(404, { ...ALWAYS, 'content-type': 'text/plain; charset=utf-8' });
      response.end('no such file; reload the page: it may be of another release\n');
    },
  };
}

function send(file: ConsoleFile, request: IncomingMessage, response: ServerResponse): void {
  const isGzipped = /\bgzip\b/.test(request.headers['accept-encoding']?.toString() ?? '');
  const body = isGzipped ? file.gzipped : file.body;
  response.writeHead(200, {
    ...ALWAYS,
    'content-type': file.contentType,
    'content-length': body.length,
    'cache-control': file.isImmutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    ...(isGzipped ? { 'content-encoding': 'gzip' } : {}),
  });
  response.end(request.method === 'HEAD' ? undefined : body);
}
