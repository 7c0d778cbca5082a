/** Generated: pages of docs/reference, files of deploy and examples. `REWRITE=1`, or `npm run docs`, writes them. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createProgram } from '../../src/program.ts';
import { alertRulesFile } from './deploy/alert-rules.ts';
import { dashboardFile } from './deploy/dashboard.ts';
import { ROOT } from './pages.ts';
import { cliPage } from './reference/cli-page.ts';
import { goTypes, pythonTypes } from './reference/client-types.ts';
import { conditionsPage } from './reference/conditions-page.ts';
import { errorsPage } from './reference/errors-page.ts';
import { httpPage } from './reference/http-page.ts';
import { limitsPage } from './reference/limits-page.ts';
import { metricsPage } from './reference/metrics-page.ts';
import { nodeOptionsPage, settingsPage } from './reference/option-pages.ts';

const FOLDER = join(ROOT, 'docs/reference');
const NOTE = '<!-- Generated from the code by `npm run docs`. Change the code, not this page. -->';

const PAGES: Readonly<Record<string, () => string | Promise<string>>> = {
  'cli.md': async () =>
    cliPage(await createProgram({ shell: silentShell(), loadStartNode: () => Promise.reject(new Error('unused')) })),
  'node-options.md': nodeOptionsPage,
  'settings.md': settingsPage,
  'http.md': () => httpPage(openApi()),
  'metrics.md': metricsPage,
  'errors.md': errorsPage,
  'conditions.md': conditionsPage,
  'limits.md': limitsPage,
};

test.each(Object.keys(PAGES))('docs/reference/%s is what the code says (npm run docs writes it)', async (name) => {
  const file = join(FOLDER, name);
  const [title, ...rest] = ((await PAGES[name]?.()) ?? '').split('\n');
  const written = [title, '', NOTE, ...rest].join('\n');
  if (process.env.REWRITE === '1') writeFileSync(file, written);
  expect(readFileSync(file, 'utf8')).toBe(written);
});

test.each([
  { path: 'deploy/prometheus/remora-alerts.yml', made: alertRulesFile },
  { path: 'deploy/grafana/remora.json', made: dashboardFile },
  { path: 'examples/python/remora/api.py', made: () => pythonTypes(openApi()) },
  { path: 'examples/go/remora/api.go', made: () => goTypes(openApi()) },
])('$path is what the code says (npm run docs writes it)', ({ path, made }) => {
  const file = join(ROOT, path);
  if (process.env.REWRITE === '1') writeFileSync(file, made());
  expect(readFileSync(file, 'utf8')).toBe(made());
});

function openApi() {
  return JSON.parse(readFileSync(join(FOLDER, 'openapi.json'), 'utf8'));
}

function silentShell() {
  return {
    env: {},
    terminal: false,
    shown: false,
    out() {},
    err() {},
    raw() {},
    ask: () => Promise.resolve(undefined),
    askSecret: () => Promise.resolve(undefined),
    input: () => Promise.resolve(''),
  };
}
