// The contract of a gRPC server, seen through clients that are not in JavaScript: Python's grpcio, nghttp and h2load.
// Each is used where it is installed (Debian: python3-grpcio, nghttp2-client).
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SERVERS } from '../support/contract-servers.ts';
import type { ContractServer } from '../support/contract-service.ts';
import { message } from '../support/raw-client.ts';

const PYTHON = '/usr/bin/python3';
const SCRIPT = fileURLToPath(new URL('../support/python-client.py', import.meta.url));
const hasGrpcio = spawnSync(PYTHON, ['-c', 'import grpc']).status === 0;
const hasNghttp = ['nghttp', 'h2load'].every((name) => spawnSync(name, ['--version']).status === 0);
const missing = [...(hasGrpcio ? [] : ['python3-grpcio']), ...(hasNghttp ? [] : ['nghttp2-client'])];
if (missing.length > 0) console.warn(`not installed, so its tests are skipped: ${missing.join(', ')}`);

const folder = mkdtempSync(join(tmpdir(), 'grpc-contract-'));
afterAll(() => rmSync(folder, { recursive: true }));

interface Run {
  readonly code: number | null;
  readonly out: string;
}

function run(command: string, args: readonly string[]): Promise<Run> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args);
    let out = '';
    child.stdout.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
    child.stderr.on('data', (chunk: Buffer) => {
      out += chunk.toString();
    });
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, out }));
  });
}

describe.each(SERVERS)('$name', ({ start }) => {
  let server: ContractServer;

  beforeEach(async () => {
    server = await start();
  });
  afterEach(async () => {
    await server.stop();
  });

  test.runIf(hasGrpcio)('serves grpcio of Python', async () => {
    const { code, out } = await run(PYTHON, [SCRIPT, String(server.port)]);
    const lines = out.split('\n').filter((line) => line.startsWith('{'));
    const results = lines.map((line) => JSON.parse(line) as { readonly name: string; readonly problem: string | null });
    expect(results.filter(({ problem }) => problem !== null)).toEqual([]);
    expect({ code, enough: results.length > 10 }).toEqual({ code: 0, enough: true });
  });

  test.runIf(hasNghttp)('serves nghttp, which shows a whole answer', async () => {
    const body = join(folder, 'request');
    writeFileSync(body, message('from nghttp'));
    const url = `http://127.0.0.1:${server.port}/test.Contract/Echo`;
    const { out } = await run('nghttp', [
      '-nv',
      '-d',
      body,
      '-H',
      'content-type: application/grpc',
      '-H',
      'te: trailers',
      url,
    ]);
    expect(out).toMatch(/:status: 200/);
    expect(out).toMatch(/grpc-status: 0/);
    expect(out).toMatch(/recv DATA frame <length=16,/);
    expect(out).not.toMatch(/recv RST_STREAM|error_code=(?!NO_ERROR)/);
  });

  test.runIf(hasNghttp).each([
    { connections: 1, streams: 64 },
    { connections: 4, streams: 64 },
    { connections: 3, streams: 1 },
  ])('serves h2load with $connections connections of $streams streams', async ({ connections, streams }) => {
    const body = join(folder, 'request');
    writeFileSync(body, message('from h2load'));
    const url = `http://127.0.0.1:${server.port}/test.Contract/Echo`;
    const options = ['-n', '3000', '-c', String(connections), '-m', String(streams), '-t', '1', '-d', body];
    const { out } = await run('h2load', [
      ...options,
      '-H',
      'content-type: application/grpc',
      '-H',
      'te: trailers',
      url,
    ]);
    expect(out).toMatch(/3000 total, 3000 started, 3000 done, 3000 succeeded, 0 failed, 0 errored, 0 timeout/);
    expect(out).toMatch(/3000 2xx/);
  });
});
