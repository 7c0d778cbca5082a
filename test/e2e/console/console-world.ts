/** What the tests of the console share: a real cluster, a browser with one tab, and the command line. */
import type { Browser } from 'playwright-core';
import { jsonHere, runHere } from '../command-line.ts';
import { Cluster, type ClusterOptions } from '../harness.ts';
import { startBrowser, Tab } from './browser.ts';

/** Markup, an escape sequence, and a character that reorders its neighbours. */
export const HOSTILE = '<img src=x onerror=alert(1)>\u001b[31m\u202egnp.';
/** How the console shows it. */
export const HOSTILE_SHOWN = '<img src=x onerror=alert(1)>\\e[31m\\u{202e}gnp.';

type Json = Readonly<Record<string, unknown>>;

export class ConsoleWorld {
  readonly cluster: Cluster;
  readonly browser: Browser;
  /** A tab that node 1 serves. */
  readonly tab: Tab;
  /** The environment of the commands. */
  env: Readonly<Record<string, string>> = {};

  private constructor(cluster: Cluster, browser: Browser, tab: Tab) {
    this.cluster = cluster;
    this.browser = browser;
    this.tab = tab;
  }

  static async start(options: ClusterOptions = {}): Promise<ConsoleWorld> {
    const [cluster, browser] = await Promise.all([Cluster.start(options), startBrowser()]);
    return new ConsoleWorld(cluster, browser, await Tab.open(browser, cluster.node(1).http));
  }

  async stop(): Promise<void> {
    await this.browser.close();
    await this.cluster.stop();
  }

  /** The output of a command, which has to succeed. */
  async cli(...args: readonly string[]): Promise<string> {
    const { code, out, err } = await runHere(this.cluster.endpoints, args, { env: this.env });
    if (code !== 0) throw new Error(`exit code ${code}: ${err}`);
    return out;
  }

  json<T = Json>(...args: readonly string[]): Promise<T> {
    return jsonHere(this.cluster.endpoints, args) as Promise<T>;
  }

  async get<T>(path: string): Promise<T> {
    return (await (await fetch(`http://${this.cluster.node(1).http}${path}`)).json()) as T;
  }

  async post(path: string, body: object): Promise<Json> {
    const answer = await fetch(`http://${this.cluster.node(1).http}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return (await answer.json()) as Json;
  }

  /** Acquires a lock, as somebody on the host web-7. */
  acquire(name: string, more: object = {}): Promise<Json> {
    return this.post(`/v1/locks/default/${encodeURIComponent(name)}/acquire`, {
      ...{ ttl: '10m', token: crypto.randomUUID(), attributes: { host: 'web-7', pid: '4711' } },
      ...more,
    });
  }

  /** Puts keys and takes locks one after the other, until the result is called. */
  load(): () => Promise<void> {
    let isOn = true;
    const work = async (): Promise<void> => {
      for (let i = 0; isOn; i++) {
        await this.cli('kv', 'put', `load/${i % 50}`, String(i));
        const { session } = await this.acquire(`load/${i % 5}`);
        await fetch(`http://${this.cluster.node(1).http}/v1/sessions/${String(session)}`, { method: 'DELETE' });
      }
    };
    const done = work();
    return () => {
      isOn = false;
      return done;
    };
  }
}
