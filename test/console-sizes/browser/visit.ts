/** Opens one page of the console in a new browser context, as somebody who comes from elsewhere, and measures it. */
import { fileURLToPath } from 'node:url';
import type { Browser, CDPSession, Page } from 'playwright-core';

export interface Visit {
  readonly page: string;
  readonly firstPaintMs: number;
  readonly loadedMs: number;
  readonly layoutShift: number;
  /** The longest and the 95th percentile of the frames while scrolling from top to bottom. */
  readonly frameMsMax: number;
  readonly frameMsP95: number;
  /** The longest task while the page was open and changed by itself. */
  readonly taskMsMax: number;
  readonly heapBytes: number;
  readonly elements: number;
}

const PROBE = fileURLToPath(new URL('./probe.mjs', import.meta.url));
const LOADED_MS_MAX = 60_000;
/** Some events of each topic arrive meanwhile. */
const WATCHED_MS = 8_000;
const SCROLL_FRAMES = 240;
const VIEWPORT = { width: 1_440, height: 900 };

interface Reading {
  readonly paintMs: number | undefined;
  readonly loadedMs: number | undefined;
  readonly shift: number;
  readonly longTasks: readonly number[];
}

interface Frames {
  readonly rows: number;
  readonly tookMs: readonly number[];
}

export async function openProbed(
  browser: Browser,
  setUp: (page: Page) => Promise<void> = async () => {},
): Promise<Page> {
  const context = await browser.newContext({ viewport: VIEWPORT });
  const page = await context.newPage();
  page.setDefaultTimeout(LOADED_MS_MAX);
  await page.addInitScript({ path: PROBE });
  await setUp(page);
  return page;
}

export async function visit(browser: Browser, base: string, address: string, name: string): Promise<Visit> {
  const page = await openProbed(browser);
  try {
    await page.goto(`${base}/console/${address}`);
    await loaded(page);
    await page.waitForTimeout(WATCHED_MS);
    const { paintMs = Number.NaN, loadedMs = Number.NaN, shift, longTasks } = await reading(page);
    const { tookMs } = await page.evaluate<Frames>(`PROBE.scroll(${SCROLL_FRAMES})`);
    const { heapBytes, elements } = await memory(page);
    return {
      ...{ page: name, firstPaintMs: paintMs, loadedMs, layoutShift: shift, heapBytes, elements },
      ...{ frameMsMax: Math.max(...tookMs), frameMsP95: quantile(tookMs, 0.95) },
      taskMsMax: Math.max(0, ...longTasks),
    };
  } finally {
    await page.context().close();
  }
}

export async function loaded(page: Page): Promise<void> {
  await page.evaluate('PROBE.loaded');
}

function reading(page: Page): Promise<Reading> {
  return page.evaluate<Reading>('PROBE.read()');
}

export interface Memory {
  /** Of JavaScript, after garbage collection. */
  readonly heapBytes: number;
  readonly elements: number;
}

export async function memory(page: Page): Promise<Memory> {
  const session = await page.context().newCDPSession(page);
  await session.send('HeapProfiler.enable');
  for (let i = 0; i < 3; i++) await session.send('HeapProfiler.collectGarbage');
  const { usedSize } = await session.send('Runtime.getHeapUsage');
  const elements = await page.evaluate<number>('document.querySelectorAll("*").length');
  await detach(session);
  return { heapBytes: usedSize, elements };
}

async function detach(session: CDPSession): Promise<void> {
  await session.detach();
}

function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? Number.NaN;
}
