/** A real Chromium that looks at the console, as an operator does. */
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Locator, type Page } from 'playwright-core';
import { eventually } from '../eventually.ts';

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** The path of the browser. `CHROMIUM` of the environment comes first. */
const CHROMIUM: string | undefined = [process.env.CHROMIUM ?? '', ...PLACES].find((path) => existsSync(path));

export const missingChromium: string | undefined =
  CHROMIUM === undefined ? 'chromium is not installed: apt-get install chromium' : undefined;

/** A limit that detects hangs. */
const PATIENCE_MS = 60_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** `REWRITE=1` takes the pictures of the documentation anew. */
const PICTURES = fileURLToPath(new URL('../../../docs/images', import.meta.url));

export function startBrowser(): Promise<Browser> {
  return chromium.launch({ ...(CHROMIUM === undefined ? {} : { executablePath: CHROMIUM }), args: ['--no-sandbox'] });
}

interface Look {
  readonly width?: number;
  readonly colours?: 'light' | 'dark';
}

/** One tab. What should never happen in it is collected in `faults`. */
export class Tab {
  readonly page: Page;
  readonly #faults: string[] = [];
  readonly #base: string;

  private constructor(page: Page, base: string) {
    this.page = page;
    this.#base = base;
    page.setDefaultTimeout(PATIENCE_MS);
    page.on('pageerror', (error) => this.#faults.push(`error in the page: ${error.message}`));
    page.on('console', (message) => {
      if (/Content Security Policy/i.test(message.text())) this.#faults.push(message.text());
    });
    page.on('dialog', (dialog) => this.#faults.push(`markup of somebody ran: ${dialog.message()}`));
    page.on('request', (request) => {
      if (!request.url().startsWith(base) && !request.url().startsWith('blob:'))
        this.#faults.push(`asked ${request.url()}`);
    });
  }

  /** `http`: `host:port` of a node. */
  static async open(browser: Browser, http: string, { width = 1_440, colours = 'light' }: Look = {}): Promise<Tab> {
    const viewport = { width, height: 900 };
    const context = await browser.newContext({ viewport, colorScheme: colours, acceptDownloads: true });
    return new Tab(await context.newPage(), `http://${http}`);
  }

  /** Errors, requests to other hosts, and what the policy of the page has blocked. */
  get faults(): readonly string[] {
    return this.#faults;
  }

  /** After a test that has caused them. */
  forgetFaults(): void {
    this.#faults.length = 0;
  }

  async go(address: string): Promise<void> {
    await this.page.goto(`${this.#base}/console/${address}`);
    await this.page.locator('h1').first().waitFor();
  }

  /** Waits until the page of this title is shown. */
  async title(name: string): Promise<void> {
    await this.page.getByRole('heading', { level: 1, name }).waitFor();
  }

  /** Waits until the page shows a text. */
  async sees(text: string | RegExp): Promise<void> {
    await this.page.getByText(text).first().waitFor();
  }

  button(name: string): Locator {
    return this.page.getByRole('button', { name, exact: true });
  }

  /** Takes an action in its dialog. Returns the command that the dialog showed, and waits for what it says then. */
  async act(button: Locator, values: Readonly<Record<string, string>>, says: string | RegExp): Promise<string> {
    await button.click();
    const dialog = this.page.locator('dialog[open]');
    await dialog.waitFor();
    for (const [label, value] of Object.entries(values)) {
      const field = dialog.getByLabel(label);
      if ((await field.evaluate((element) => element.tagName)) === 'SELECT') await field.selectOption(value);
      else await field.fill(value);
    }
    const command = await dialog.locator('.command-line').textContent();
    await dialog.locator('button[type=submit]').click();
    const told = this.page.locator('.toast', { hasText: says }).first();
    const refused = dialog.locator('.note-bad');
    await told.or(refused).first().waitFor();
    if (await refused.isVisible()) throw new Error(`the action was refused: ${await refused.textContent()}`);
    await dialog.waitFor({ state: 'detached' });
    return command ?? '';
  }

  /** What axe-core finds against WCAG 2.2 AA, a line each. */
  async accessibility(): Promise<readonly string[]> {
    await this.page.evaluate(AXE);
    const { violations } = await this.page.evaluate<Findings>(
      `axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa'], resultTypes: ['violations'] })`,
    );
    return violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html, failureSummary }) => `${html} ${failureSummary}`).join(' | ')}`,
    );
  }

  /** Waits until nothing is being read for the first time. */
  async loaded(): Promise<void> {
    const loading = this.page.locator('.loading');
    await eventually('everything is read', async () => (await loading.count()) === 0);
  }

  /** Whether the page is wider than its window, so that it has to be scrolled sideways. */
  tooWide(): Promise<boolean> {
    return this.page.evaluate(`document.documentElement.scrollWidth > window.innerWidth`);
  }

  async picture(name: string): Promise<void> {
    if (process.env.REWRITE !== '1') return;
    const path = join(PICTURES, `${name}.png`);
    mkdirSync(dirname(path), { recursive: true });
    await this.page.screenshot({ path });
  }

  close(): Promise<void> {
    return this.page.context().close();
  }
}

interface Findings {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
  }[];
}
