/** `pnpm console:sizes`: the console over a large cluster, in a real browser. */
import { parseArgs } from 'node:util';
import type { Browser } from 'playwright-core';
import { missingChromium, startBrowser } from '../e2e/console/browser.ts';
import { type Judged, printVerdict, UsageError, wholeNumber } from '../soak/report.ts';
import { type HourReport, liveHour } from './browser/hour.ts';
import { PAGES, placesOf } from './browser/pages.ts';
import { type Visit, visit } from './browser/visit.ts';
import { startCluster } from './cluster-process.ts';
import { hourTable, visitTable } from './tables.ts';

const USAGE = `pnpm console:sizes [page…] [options]

Opens every page of the console in Chromium over a simulated cluster of the size below, whose first node has the real
ports of a gateway. Reports first paint, layout shift, frames while scrolling, and the memory of a tab after an hour of
live data. Building the cluster takes some minutes. All pages unless some are named, as in "overview", "locks".

  --nodes <n>      (default: 200)
  --ranges <n>     (default: 2000)
  --locks <n>      (default: 100000)
  --sessions <n>   (default: 1000)
  --keys <n>       plain keys (default: 20000)
  --rate <n>       requests of clients per second of the cluster's time (default: 100)
  --speed <n>      how often faster than in reality the hour of live data passes (default: 30)
  --no-hour        leave out the hour of live data
  --port <n>       the first of the ports (default: 17480)
  --at <host:port> the HTTP port of a cluster that runs already, instead of a simulated one
  --serve          build the cluster and serve it until Ctrl-C, for people to look at
  --help           print this`;

/** What the issue of the console asks for. */
const PAINT_MS_MAX = 1_000;
const FRAME_MS_MAX = 100;
const TAB_BYTES_MAX = 200e6;
const LIVE_PAGES = ['overview', 'locks', 'ranges', 'nodes', 'scheduling'];

/** Returns the exit code. */
export async function consoleSizes(args: readonly string[], clusterFile: string): Promise<number> {
  const { values, positionals } = parseArgs({ args: [...args], allowPositionals: true, options: OPTIONS });
  if (values.help) return say(USAGE) ?? 0;
  const unknown = positionals.find((name) => PAGES.every((page) => page.name !== name));
  if (unknown !== undefined) {
    throw new UsageError(`there is no page "${unknown}"; the pages are ${PAGES.map(({ name }) => name).join(', ')}`);
  }
  if (missingChromium !== undefined) throw new UsageError(missingChromium);
  const number = (name: 'nodes' | 'ranges' | 'locks' | 'sessions' | 'keys' | 'rate' | 'speed' | 'port'): number =>
    wholeNumber(name, values[name]);
  const sizes = { nodes: number('nodes'), ranges: number('ranges'), locks: number('locks') };
  const more = { sessions: number('sessions'), keys: number('keys') };
  const spec = { sizes: { ...sizes, ...more }, basePort: number('port'), perSecond: number('rate') };
  const cluster =
    values.at === undefined ? await startCluster(clusterFile, spec, say) : { http: values.at, stop: () => {} };
  try {
    if (values.serve) return await untilInterrupted(cluster.http);
    const browser = await startBrowser();
    const wanted = PAGES.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
    const base = `http://${cluster.http}`;
    const places = await placesOf(base);
    const addressed = wanted.map((page) => ({ name: page.name, address: page.address(places) }));
    const visits = await visitAll(browser, base, addressed);
    const live = addressed.filter(({ name }) => LIVE_PAGES.includes(name));
    const hours = values['no-hour'] ? [] : await liveHour({ browser, base, speed: number('speed'), say }, live);
    await browser.close();
    if (hours.length > 0) say(hourTable(hours));
    return printVerdict(judge(visits, hours));
  } finally {
    cluster.stop();
  }
}

const text = (value: string) => ({ type: 'string', default: value }) as const;
const flag = { type: 'boolean', default: false } as const;
const OPTIONS = {
  ...{ nodes: text('200'), ranges: text('2000'), locks: text('100000'), sessions: text('1000'), keys: text('20000') },
  ...{ rate: text('100'), speed: text('30'), port: text('17480'), at: { type: 'string' } as const },
  ...{ 'no-hour': flag, serve: flag, help: flag },
};

async function visitAll(
  browser: Browser,
  base: string,
  pages: readonly { readonly name: string; readonly address: string }[],
): Promise<readonly Visit[]> {
  const visits: Visit[] = [];
  for (const { name, address } of pages) visits.push(await visit(browser, base, address, name));
  say(visitTable(visits));
  return visits;
}

function judge(visits: readonly Visit[], hours: readonly HourReport[]): readonly Judged[] {
  const most = <Row>(rows: readonly Row[], of: (row: Row) => number): number => Math.max(0, ...rows.map(of));
  const paintMs = most(visits, ({ firstPaintMs }) => firstPaintMs);
  const frameMs = most(visits, ({ frameMsMax }) => frameMsMax);
  const tabBytes = most(hours, ({ tabBytes: bytes }) => bytes);
  return [
    { what: 'first paint within a second', found: `${paintMs.toFixed(0)} ms`, holds: paintMs < PAINT_MS_MAX },
    { what: 'no frame of scrolling beyond 100 ms', found: `${frameMs.toFixed(0)} ms`, holds: frameMs <= FRAME_MS_MAX },
    ...(hours.length === 0
      ? []
      : [
          {
            what: 'a tab below 200 MB after an hour of live data',
            found: `${(tabBytes / 1e6).toFixed(0)} MB`,
            holds: tabBytes < TAB_BYTES_MAX,
          },
        ]),
  ];
}

async function untilInterrupted(http: string): Promise<number> {
  say(`the console is at http://${http}/console/ until Ctrl-C`);
  await new Promise((resolve) => process.once('SIGINT', resolve));
  return 0;
}

function say(line: string): undefined {
  console.log(line);
  return undefined;
}
