import { go } from './router.ts';

export interface Shortcut {
  readonly keys: string;
  readonly meaning: string;
}

/** The second key after `g`, and the page. */
const PAGES: Readonly<Record<string, string>> = {
  o: '',
  l: 'locks',
  s: 'sessions',
  k: 'keys',
  r: 'ranges',
  h: 'heat',
  n: 'nodes',
  c: 'scheduling',
  t: 'settings',
  u: 'users',
  a: 'audit',
};

/** After `g`, the next key is awaited so long. */
const SEQUENCE_MS = 1_500;

export function keysOf(page: string): string | undefined {
  const found = Object.entries(PAGES).find(([, to]) => to === page);
  return found === undefined ? undefined : `g ${found[0]}`;
}

/** Listens to the keyboard. Keys typed into fields, and those with Ctrl, Alt or Meta, belong to the browser. */
export function startShortcuts(showHelp: () => void): void {
  let goAt = Number.NEGATIVE_INFINITY;
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector('dialog[open]') !== null) return;
    const page = PAGES[event.key];
    if (event.timeStamp - goAt < SEQUENCE_MS && page !== undefined) {
      goAt = Number.NEGATIVE_INFINITY;
      event.preventDefault();
      go(page);
      return focusPage();
    }
    goAt = event.key === 'g' ? event.timeStamp : Number.NEGATIVE_INFINITY;
    if (event.key === '/') focusSearch(event);
    if (event.key === '?') showHelp();
  });
}

/** A page that was opened by keys is read from its beginning. */
function focusPage(): void {
  document.getElementById('main')?.focus({ preventScroll: true });
}

function focusSearch(event: KeyboardEvent): void {
  const field = document.querySelector<HTMLInputElement>('input[data-search]');
  if (field === null) return;
  event.preventDefault();
  field.focus();
  field.select();
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]');
}
