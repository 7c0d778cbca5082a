/**
 * What a tab keeps after an hour of live data: its heap before, and after as many events and questions as an hour has.
 */
import { readFileSync } from 'node:fs';
import type { Browser, Page } from 'playwright-core';
import { LiveProxy, perHour, record } from './live-proxy.ts';
import { loaded, memory, openProbed } from './visit.ts';

export interface HourReport {
  readonly page: string;
  readonly events: number;
  readonly heapBefore: number;
  readonly heapAfter: number;
  /** The memory that the tab's process has for itself. */
  readonly tabBytes: number;
}

export interface HourOptions {
  readonly browser: Browser;
  readonly base: string;
  readonly speed: number;
  readonly say: (text: string) => void;
}

const HOUR_MS = 3_600_000;
const RECORDED_MS = 40_000;
/** Shorter timers are about drawing, and stay. */
const TIMER_MS_MIN = 900;

/** Each page in a tab of its own. */
export async function liveHour(
  { browser, base, speed, say }: HourOptions,
  pages: readonly { readonly address: string; readonly name: string }[],
): Promise<readonly HourReport[]> {
  const events = await record(base, RECORDED_MS);
  const rates = [...perHour(events, RECORDED_MS)].map(([topic, count]) => `${topic} ${count}`).join(', ');
  say(`events of an hour: ${rates}`);
  const reports: HourReport[] = [];
  for (const { address, name } of pages) {
    const proxy = new LiveProxy(base, events, RECORDED_MS, speed);
    const from = await proxy.start();
    const page = await openProbed(browser, (opened) => hurry(opened, speed));
    try {
      await page.goto(`${from}/console/${address}`);
      await loaded(page);
      const before = await memory(page);
      await page.waitForTimeout(HOUR_MS / speed);
      const after = await memory(page);
      reports.push({
        ...{ page: name, events: proxy.sent, heapBefore: before.heapBytes, heapAfter: after.heapBytes },
        tabBytes: await privateBytes(browser),
      });
      say(`${name}: ${proxy.sent} events`);
    } finally {
      await page.context().close();
      proxy.stop();
    }
  }
  return reports;
}

/** What the page does every few seconds, it does more often. */
async function hurry(page: Page, speed: number): Promise<void> {
  await page.addInitScript(`
    for (const name of ['setTimeout', 'setInterval']) {
      const real = globalThis[name];
      globalThis[name] = (fn, ms = 0, ...rest) => real(fn, ms < ${TIMER_MS_MIN} ? ms : ms / ${speed}, ...rest);
    }
  `);
}

/** Of the largest process that draws pages: the only one that has drawn one for long. */
async function privateBytes(browser: Browser): Promise<number> {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  const sizes = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => privateOf(id));
  return Math.max(0, ...sizes);
}

function privateOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const kib = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0);
  return (kib('Private_Clean') + kib('Private_Dirty')) * 1_024;
}
