import { execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { NodeProcess } from './node-process.ts';

const DOCS = fileURLToPath(new URL('../../docs/how-to/locks/lock-over-http.md', import.meta.url));

export interface HttpAnswer {
  readonly status: number;
  readonly body: { readonly version: number; readonly session: string; readonly [field: string]: unknown };
}

/** A node's answer about a lock of the namespace `default`. */
export async function askLock(node: NodeProcess, name: string, call: string, body: object = {}): Promise<HttpAnswer> {
  const response = await fetch(`http://${node.http}/v1/locks/default/${encodeURIComponent(name)}/${call}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as HttpAnswer['body'] };
}

/** Reads a node's stream about a lock until it contains a given part. */
export async function toldOf(node: NodeProcess, name: string): Promise<{ until(part: string): Promise<void> }> {
  const { body } = await fetch(`http://${node.http}/v1/events/default/${encodeURIComponent(name)}`);
  if (body === null) throw new Error('there is no stream');
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    async until(part) {
      while (!text.includes(part)) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`the stream has ended without ${part}: ${text}`);
        text += value;
      }
      await reader.cancel();
    },
  };
}

export interface ScriptRun {
  /** The output so far. */
  out(): string;
  readonly ended: Promise<{ readonly code: number | null; readonly err: string }>;
  /** Signals only the script itself, and nothing that it has started. */
  terminate(): void;
  /** Whether it, or anything that it has started, still runs. */
  isLeft(): boolean;
}

/** Runs the script from the documentation for a command under a lock. */
export function runDocumentedScript(node: NodeProcess, name: string, command: readonly string[]): ScriptRun {
  const script = /```sh file=with-lock\n(#!\/bin\/sh\n[\s\S]*?)```/.exec(readFileSync(DOCS, 'utf8'))?.[1];
  if (script === undefined) throw new Error('docs/how-to/locks/lock-over-http.md has no script');
  const env = { PATH: process.env.PATH, REMORA_HTTP: `http://${node.http}` };
  const child = spawn('sh', ['-c', script, 'with-lock', encodeURIComponent(name), ...command], {
    ...{ env, stdio: ['ignore', 'pipe', 'pipe'], detached: true }, // In a separate process group.
  });
  let out = '';
  let err = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    out += chunk.toString();
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    err += chunk.toString();
  });
  return {
    out: () => out,
    ended: new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve({ code, err }));
    }),
    terminate: () => child.kill(),
    isLeft: () => isGroupLeft(child.pid),
  };
}

/** A process that has ended does not count, even if it was not waited for yet. */
function isGroupLeft(leader: number | undefined): boolean {
  const all = execFileSync('ps', ['-A', '-o', 'pgid=,stat='], { encoding: 'utf8' });
  return all.split('\n').some((line) => {
    const [group, state] = line.trim().split(/\s+/);
    return Number(group) === leader && state?.startsWith('Z') === false;
  });
}
