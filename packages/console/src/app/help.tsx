import { Dialog } from '../kit/dialog.tsx';
import { PAGES } from '../pages/registry.ts';
import { keysOf, type Shortcut } from './shortcuts.ts';

const GENERAL: readonly Shortcut[] = [
  { keys: '/', meaning: 'Search on this page' },
  { keys: '?', meaning: 'Show the keyboard shortcuts' },
  { keys: 'Esc', meaning: 'Close a dialog, leave the search' },
];

export function Help({ close }: { close(): void }) {
  const pages = PAGES.flatMap(({ path, title }) => {
    const keys = keysOf(path);
    return keys === undefined ? [] : [{ keys, meaning: title }];
  });
  return (
    <Dialog title="Keyboard shortcuts" close={close}>
      <dl class="keys">
        {[...GENERAL, ...pages].map(({ keys, meaning }) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
