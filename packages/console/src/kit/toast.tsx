import { useStore } from '../app/hooks.ts';
import { Store } from '../logic/store.ts';
import { Text } from './text.tsx';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: 'ok' | 'warn';
}

const SHOWN_MS = 7_000;
const TOASTS_MAX = 4;

const toasts = new Store<readonly Toast[]>([]);
let lastId = 0;

/** Says what an action has done, for a while, also to screen readers. */
export function announce(text: string, tone: Toast['tone']): void {
  const toast = { id: ++lastId, text, tone };
  toasts.set([...toasts.get(), toast].slice(-TOASTS_MAX));
  setTimeout(() => dismiss(toast.id), SHOWN_MS);
}

function dismiss(id: number): void {
  toasts.set(toasts.get().filter((toast) => toast.id !== id));
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {useStore(toasts).map(({ id, text, tone }) => (
        <div key={id} class={`toast toast-${tone}`}>
          <Text value={text} max={400} />
          <button type="button" class="button button-bare" aria-label="Dismiss" onClick={() => dismiss(id)}>
            ✕
          </button>
        </div>
      ))}
    </div>
  );
}
