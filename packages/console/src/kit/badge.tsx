import type { ComponentChildren } from 'preact';

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'plain';

export function Badge({ tone = 'plain', children }: { readonly tone?: Tone; readonly children: ComponentChildren }) {
  return <span class={`badge badge-${tone}`}>{children}</span>;
}

const TONES: Readonly<Record<string, Tone>> = {
  critical: 'bad',
  warning: 'warn',
  info: 'info',
  up: 'ok',
  serving: 'ok',
  suspect: 'warn',
  down: 'bad',
  removed: 'bad',
  draining: 'info',
  maintenance: 'info',
  decommissioning: 'info',
  success: 'ok',
  created: 'info',
  started: 'info',
  failed: 'bad',
  timedOut: 'bad',
  cancelled: 'warn',
  replaced: 'warn',
  exclusive: 'plain',
};

/** A state of the cluster's own vocabulary, in its colour. */
export function State({ name }: { readonly name: string }) {
  return <Badge tone={Object.hasOwn(TONES, name) ? (TONES[name] ?? 'plain') : 'plain'}>{name}</Badge>;
}
