import { attackMain } from './attack/attack-main.ts';
import { type AttackSpec, runAttackers } from './attack/attackers.ts';
import { growthMain } from './growth-main.ts';
import { type HoldersSpec, runHolders } from './holders.ts';
import { LOADS, type LoadName } from './load-process.ts';
import { type MixedLoadSpec, runMixedLoad } from './mixed-load.ts';
import { nodesMain } from './nodes/nodes-main.ts';
import { type OpenLoadSpec, runOpenLoad } from './nodes/open-load.ts';
import { overloadMain } from './overload-main.ts';
import { type RawLoadSpec, runRawLoad } from './raw-load.ts';
import { UsageError } from './report.ts';
import { soakMain } from './soak-main.ts';

/** Returns the exit code. */
export async function main([program = '', ...args]: readonly string[]): Promise<number> {
  if (isLoad(program)) return runLoad(program, args[0] ?? '');
  try {
    if (program === 'overload') return await overloadMain(args);
    if (program === 'soak') return await soakMain(args);
    if (program === 'growth') return await growthMain(args);
    if (program === 'attack') return await attackMain(args);
    if (program === 'nodes') return await nodesMain(args);
    throw new UsageError(`there is "soak", "overload", "growth", "nodes" and "attack", and no "${program}"`);
  } catch (error) {
    if (!isUsageError(error)) throw error;
    console.error(`${error.message} (--help says more)`);
    return 2;
  }
}

async function runLoad(name: LoadName, spec: string): Promise<number> {
  // The process that started the load is gone: nobody else would end it.
  process.once('disconnect', () => process.exit(1));
  switch (name) {
    case 'load:raw':
      await runRawLoad(JSON.parse(spec) as RawLoadSpec);
      break;
    case 'load:mixed':
      return runMixedLoad(JSON.parse(spec) as MixedLoadSpec);
    case 'load:open':
      return runOpenLoad(JSON.parse(spec) as OpenLoadSpec);
    case 'load:attack':
      await runAttackers(JSON.parse(spec) as AttackSpec);
      break;
    case 'load:holders':
      await runHolders(JSON.parse(spec) as HoldersSpec);
      break;
  }
  return 0;
}

function isLoad(name: string): name is LoadName {
  return LOADS.some((load) => load === name);
}

/** Our own usage errors, and those of `parseArgs`. */
function isUsageError(error: unknown): error is Error {
  if (error instanceof UsageError) return true;
  return error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS');
}
