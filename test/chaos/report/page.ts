/** The report of a run as one self-contained page: it includes data, styles, scripts and the chart library. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { FAULTS } from '../faults/index.ts';
import type { FigureData, Outage } from '../judges/figures.ts';
import type { ChaosResult } from '../run.ts';
import type { Befallen } from '../schedule.ts';

const STYLE = `
body { font: 15px/1.45 system-ui, sans-serif; color: #1c2833; margin: 0 auto; max-width: 1120px; padding: 24px; }
h1 { font-size: 24px; margin: 0 0 4px; } h2 { font-size: 17px; margin: 32px 0 8px; }
.verdict { display: inline-block; padding: 3px 12px; border-radius: 12px; color: #fff; font-weight: 600; }
.held { background: #1e8449; } .broken { background: #c0392b; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 20px 0; }
.tile { background: #f4f6f7; border-radius: 8px; padding: 10px 14px; } .tile b { display: block; font-size: 22px; }
table { border-collapse: collapse; width: 100%; font-size: 13px; } th { text-align: left; color: #566573; }
th, td { padding: 3px 10px 3px 0; border-bottom: 1px solid #e5e8e8; vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: 32px; } @media (max-width: 800px) { .columns { display: block; } }
.node { color: #c0392b; } .network { color: #2471a3; } .client { color: #b7950b; } .ranges { color: #1e8449; }
#told { font-size: 13px; min-height: 1.5em; color: #566573; } pre { white-space: pre-wrap; background: #fdf2f0; padding: 12px; }
.u-title { font-size: 14px; font-weight: 600; }`;

/** `assets`: the folder of this file's source, which contains the page's script. */
export function pageOf(result: ChaosResult, assets: string): string {
  const { seed, nodes, loadMs, faults, findings, judged } = result;
  const held = findings.length === 0 && judged !== undefined;
  const data = { seconds: judged?.figures.seconds ?? [], faults: faults.map(bandOf) };
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Chaos, seed ${seed}</title>
<style>${library('uPlot.min.css')}${STYLE}</style></head>
<body>
<h1>Chaos on real processes</h1>
<p>Seed ${seed}, ${nodes} nodes, ${clock(loadMs)} under load.
<span class="verdict ${held ? 'held' : 'broken'}">${held ? 'every promise held' : `${findings.length} promises broken or undecided`}</span></p>
${judged === undefined ? '' : tiles(judged.figures, result)}
${findings.length === 0 ? '' : `<h2>Broken or undecided</h2><pre>${findings.map(({ property, detail }) => escaped(`${property}: ${detail}`)).join('\n\n')}</pre>`}
<h2>Over time</h2>
<p>Faults are marked: <span class="node">■ nodes and disks</span> <span class="network">■ network</span>
<span class="client">■ clients and operators</span> <span class="ranges">■ ranges</span></p>
<div id="latency"></div><div id="outcomes"></div><div id="told">&nbsp;</div>
<div class="columns">
<div><h2>Faults by kind</h2>${kinds(result)}${changes(result)}</div>
<div>${judged === undefined ? '' : `<h2>Operations</h2>${operations(judged.figures)}<h2>Longest times without a write</h2>${outages(judged.figures.outages, faults)}`}</div>
</div>
<h2>All faults</h2>${all(faults)}
<script type="application/json" id="data">${JSON.stringify(data).replaceAll('<', '\\u003c')}</script>
<script>${library('uPlot.iife.min.js')}</script>
<script>${readFileSync(join(assets, 'charts.js'), 'utf8')}</script>
</body></html>
`;
}

function library(file: string): string {
  return readFileSync(createRequire(import.meta.url).resolve(`uplot/dist/${file}`), 'utf8');
}

function bandOf({ kind, what, fromMs, toMs }: Befallen) {
  return { kind, what, category: categoryOf(kind), fromS: fromMs / 1_000, toS: toMs / 1_000 };
}

function categoryOf(kind: string): string {
  return FAULTS.find((fault) => fault.kind === kind)?.category ?? 'node';
}

function tiles(
  { operations: count, byOutcome, outages: [longest] }: FigureData,
  { loadMs, faults, judged }: ChaosResult,
) {
  const tile = (figure: string, what: string): string => `<div class="tile"><b>${figure}</b>${what}</div>`;
  return `<div class="tiles">${[
    tile(count.toLocaleString('en'), 'operations'),
    tile(String(Math.round((count * 1_000) / Math.max(1, loadMs))), 'per second'),
    tile(byOutcome.unknown.toLocaleString('en'), 'of unknown outcome'),
    tile(byOutcome.refused.toLocaleString('en'), 'refused'),
    tile(String(faults.length), 'faults'),
    tile(`${((longest?.ms ?? 0) / 1_000).toFixed(1)} s`, 'longest without a write'),
    tile(String(judged?.rounds ?? 0), 'rounds judged'),
  ].join('')}</div>`;
}

function kinds({ faults, missing, unavailable }: ChaosResult): string {
  const rows = FAULTS.flatMap(({ kind, category }) => {
    const those = faults.filter((fault) => fault.kind === kind);
    if (those.length === 0) return [];
    const seconds = those.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0) / 1_000;
    return [[mark(category, kind), numberCell(those.length), numberCell(`${seconds.toFixed(1)} s`)]];
  });
  const notes = [...(missing.length === 0 ? [] : [`Did not happen: ${missing.join(', ')}`]), ...unavailable];
  return `${table(['kind', '#times', '#together'], rows)}${notes.map((note) => `<p>${escaped(note)}</p>`).join('')}`;
}

function changes({ changed, judged }: ChaosResult): string {
  const { done, failed, kills } = changed;
  const rows = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts).map(([name, count]) => [cell(name), numberCell(count)]);
  const overlaps = (judged?.overlaps ?? []).map(({ change, subject, met, through }) => {
    return [cell(change), cell(subject), numberCell(met), numberCell(through)];
  });
  return [
    `<h2>Changes of ranges</h2>${table(['change', '#done'], rows(done))}`,
    `<h3>What was under way meanwhile</h3>${table(['change', 'what', '#at some moment', '#from before to behind it'], overlaps)}`,
    ...(Object.keys(failed).length === 0 ? [] : [`<h3>Not done</h3>${table(['why', '#times'], rows(failed))}`]),
    ...(Object.keys(kills).length === 0 ? [] : [`<h2>Gateways killed</h2>${table(['moment', '#times'], rows(kills))}`]),
  ].join('');
}

function operations({ byWorkload, byCode }: FigureData): string {
  const rows = (counts: Readonly<Record<string, number>>) =>
    Object.entries(counts).map(([name, count]) => [cell(name), numberCell(count.toLocaleString('en'))]);
  return `${table(['workload', '#operations'], rows(byWorkload))}<h2>Errors</h2>${table(['error', '#times'], rows(byCode))}`;
}

function outages(all: readonly Outage[], faults: readonly Befallen[]): string {
  const rows = all.slice(0, 12).map(({ fromMs, ms }) => {
    const during = faults.filter((fault) => fault.fromMs < fromMs + ms && fault.toMs > fromMs);
    return [
      numberCell(clock(fromMs)),
      numberCell(`${(ms / 1_000).toFixed(1)} s`),
      cell(during.map(({ kind }) => kind).join(', ')),
    ];
  });
  return table(['#from', '#time', 'during'], rows);
}

function all(faults: readonly Befallen[]): string {
  const rows = faults.map(({ kind, what, fromMs, toMs }) => [
    numberCell(clock(fromMs)),
    numberCell(`${((toMs - fromMs) / 1_000).toFixed(1)} s`),
    mark(categoryOf(kind), kind),
    cell(what),
  ]);
  return table(['#at', '#took', 'kind', 'what happened'], rows);
}

/** A heading with a `#` marks a column of numbers. */
function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const heads = headings.map((heading) =>
    heading.startsWith('#') ? `<th class="number">${heading.slice(1)}</th>` : `<th>${heading}</th>`,
  );
  return `<table><tr>${heads.join('')}</tr>${rows.map((row) => `<tr>${row.join('')}</tr>`).join('')}</table>`;
}

function cell(text: string): string {
  return `<td>${escaped(text)}</td>`;
}

function mark(category: string, text: string): string {
  return `<td><span class="${category}">■</span> ${escaped(text)}</td>`;
}

function numberCell(text: string | number): string {
  return `<td class="number">${text}</td>`;
}

function clock(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
