import { parseArgs } from 'node:util';
import { type KillReport, runKills } from './kill.ts';

/** `pnpm chaos:kill --kills 20 --seed 7`: kills nodes under load, checks, and prints figures. Gives the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({
    args: [...args],
    options: { kills: { type: 'string', default: '20' }, seed: { type: 'string' }, json: { type: 'boolean' } },
  });
  const kills = Number(values.kills);
  const seed = Number(values.seed ?? Date.now() % 1_000_000);
  if (!Number.isSafeInteger(kills) || kills < 1 || !Number.isSafeInteger(seed)) {
    console.error('chaos:kill: --kills and --seed are whole numbers');
    return 2;
  }
  console.log(`killing nodes ${kills} times, seed ${seed}`);
  try {
    const { report } = await runKills({ kills, seed, say: (line) => console.log(`  ${line}`) });
    console.log(values.json ? JSON.stringify(report, null, 2) : summary(report));
    return 0;
  } catch (error) {
    console.error(error);
    return 1;
  }
}

function summary(report: KillReport): string {
  const { kills, outagesMs: outages } = report;
  const moments = new Map<string, number>();
  for (const { moment } of kills) moments.set(moment, (moments.get(moment) ?? 0) + 1);
  return [
    `${kills.length} kills in ${Math.round(report.durationMs / 1000)} s, ${kills.filter(({ leader }) => leader).length} of the leader`,
    `at ${[...moments].map(([moment, count]) => `${moment} ${count}`).join(', ')}; ` +
      `${kills.reduce((sum, { inFlight }) => sum + inFlight, 0)} requests in flight at the nodes killed`,
    `${report.operations} operations: ${report.acknowledged} answered, ${report.unknown} of unknown outcome; ` +
      `refused: ${JSON.stringify(report.failed)}`,
    `locks acquired ${report.lockTurns} times`,
    `after a leader's kill, writes went on within ${outages.median} ms (median), ${outages.longest} ms (longest)`,
    `faults: ${report.faults.length === 0 ? 'none' : report.faults.join('\n')}`,
  ].join('\n');
}
