import { useState } from 'preact/hooks';
import { commandLine, type Word } from '../logic/shell.ts';

/** The command that does the same, to copy. */
export function Command({
  words,
  label = 'The same on the command line',
}: {
  readonly words: readonly Word[];
  readonly label?: string;
}) {
  const line = commandLine(words);
  return (
    <div class="command">
      <span class="command-label">{label}</span>
      <code class="command-line">{line}</code>
      <Copy text={line} label="Copy the command" />
    </div>
  );
}

const SHOWN_MS = 1_500;

export function Copy({ text, label }: { readonly text: string; readonly label: string }) {
  const [state, setState] = useState<'idle' | 'copied' | 'failed'>('idle');
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text);
      setState('copied');
    } catch {
      // Without TLS, browsers refuse access to the clipboard beyond localhost.
      setState(copyBySelection(text) ? 'copied' : 'failed');
    }
    setTimeout(() => setState('idle'), SHOWN_MS);
  };
  return (
    <button type="button" class="button button-small" aria-label={label} onClick={copy}>
      {state === 'copied' ? 'Copied' : state === 'failed' ? 'Select it' : 'Copy'}
    </button>
  );
}

function copyBySelection(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.className = 'outside';
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  return done;
}
