// What the examples share: a story is told twice, first how an older design fails on the system that it is used with,
// then how Remora holds. Every claim is checked on the spot; the process exits with 1 when one does not hold.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { startRemora } from './remora.mjs';

/**
 * Tells a story, and exits with 0 when all of its claims held.
 *
 * `older.system` has a `name` and says whether it is `installed`; `older.run(stage)` shows the failure. `ours(stage,
 * cluster)` does the same work with Remora: on a cluster of its own, or on the one that `--endpoints` names, unless the
 * story has to kill nodes (`killsNodes`).
 */
export async function tell({ title, older, ours, killsNodes = false }) {
  const { values } = parseArgs({ options: { endpoints: { type: 'string' }, 'only-remora': { type: 'boolean' } } });
  const endpoints = killsNodes ? undefined : values.endpoints;
  console.log(`${title}\n${'='.repeat(title.length)}`);
  const { system } = older;
  const skipped = values['only-remora']
    ? 'only Remora is shown, as --only-remora asks for'
    : system.installed
      ? undefined
      : `${system.name} is not installed (on Debian: apt-get install ${system.package}): only Remora is shown`;
  const failed = [];
  if (skipped === undefined) failed.push(...(await onStage(system.name, older.run)));
  else console.log(`\n(${skipped})`);
  const withCluster = async (stage) => ours(stage, await startRemora(stage, endpoints));
  failed.push(...(await onStage('Remora', withCluster)));
  if (failed.length > 0) console.log(`\nNot as told:\n${failed.map((claim) => `  ${claim}`).join('\n')}`);
  // Clients of servers that were killed may still wish to reconnect.
  process.exit(failed.length === 0 ? 0 : 1);
}

/** Runs one half of a story; gives the claims that did not hold. Whatever happens, what was started is ended. */
async function onStage(name, run) {
  console.log(`\n${name}`);
  const stage = new Stage(await mkdtemp(join(tmpdir(), 'remora-example-')));
  try {
    await run(stage);
  } catch (error) {
    stage.claim(`the story comes to its end: ${error?.stack ?? error}`, false);
  } finally {
    await stage.close();
  }
  return stage.failed;
}

/** Where half a story is told: it prints, and keeps what has to be ended. */
class Stage {
  dir;
  failed = [];
  #cleanups = [];

  constructor(dir) {
    this.dir = dir;
  }

  say(text) {
    console.log(`  ${text}`);
  }

  claim(text, holds) {
    console.log(`  ${holds ? '✔' : '✘'} ${text}`);
    if (!holds) this.failed.push(text);
  }

  /** Calls `cleanup` at the end; what was kept last ends first. */
  atEnd(cleanup) {
    this.#cleanups.push(cleanup);
  }

  async close() {
    for (const cleanup of this.#cleanups.reverse()) await Promise.race([cleanup(), sleep(5_000)]).catch(() => {});
    await rm(this.dir, { recursive: true, force: true });
  }
}

/** A name that no other run of the example uses, whatever cluster it runs on. */
export function unique(name) {
  return `examples/${name}/${process.pid}-${Date.now()}`;
}
