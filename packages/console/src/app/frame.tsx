import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { access, logOut } from '../api/access.ts';
import { messageOf } from '../api/errors.ts';
import { Text } from '../kit/text.tsx';
import { announce, Toasts } from '../kit/toast.tsx';
import { addressOf } from '../logic/location.ts';
import { PAGES } from '../pages/registry.ts';
import { useGateways } from './gateways-hook.ts';
import { useStore } from './hooks.ts';
import { Lost } from './lost.tsx';
import { place } from './router.ts';
import { keysOf } from './shortcuts.ts';
import { nextTheme, theme } from './theme.ts';

interface FrameProps {
  showHelp(): void;
  readonly children: ComponentChildren;
}

/** Navigation beside the page; on a narrow screen it is behind a button. */
export function Frame({ showHelp, children }: FrameProps) {
  const [isOpen, setOpen] = useState(false);
  const { page } = useStore(place);
  useEffect(() => setOpen(false), [page]);
  useGateways();
  return (
    <div class="frame">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <header class="top">
        <button
          type="button"
          class="button button-bare menu"
          aria-expanded={isOpen}
          aria-controls="navigation"
          onClick={() => setOpen(!isOpen)}
        >
          ☰<span class="outside">Navigation</span>
        </button>
        <a class="brand" href={addressOf('')}>
          <Logo /> Remora
        </a>
        <span class="top-space" />
        <ThemeSwitch />
        <button
          type="button"
          class="button button-bare"
          aria-label="Keyboard shortcuts"
          title="Keyboard shortcuts (?)"
          onClick={showHelp}
        >
          ?
        </button>
        <User />
      </header>
      <nav id="navigation" class={isOpen ? 'side side-open' : 'side'} aria-label="Pages">
        {PAGES.map(({ path, title, icon }) => (
          <a
            key={path}
            href={addressOf(path)}
            aria-current={page === path ? 'page' : undefined}
            title={keysOf(path) ?? ''}
          >
            <Icon path={icon} />
            {title}
          </a>
        ))}
      </nav>
      <main id="main" tabIndex={-1}>
        <Lost />
        {children}
      </main>
      <Toasts />
    </div>
  );
}

function Logo() {
  return (
    <svg viewBox="0 0 32 32" width="20" height="20" aria-hidden="true">
      <path class="logo-bow" d="M10 15v-3a6 6 0 0 1 12 0v3" />
      <rect class="logo-body" x="7" y="14.5" width="18" height="12" rx="3" />
    </svg>
  );
}

function Icon({ path }: { readonly path: string }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={path} />
    </svg>
  );
}

const NEXT_THEME = { system: 'light', light: 'dark', dark: 'as the system' } as const;

function ThemeSwitch() {
  const chosen = useStore(theme);
  return (
    <button
      type="button"
      class="button button-bare"
      title={`Colours: ${chosen}. Switch to ${NEXT_THEME[chosen]}.`}
      aria-label={`Colours: ${chosen}. Switch to ${NEXT_THEME[chosen]}.`}
      onClick={nextTheme}
    >
      <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <path d="M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z" />
        <path
          class="icon-fill"
          d={
            chosen === 'system'
              ? 'M8 2v12a6 6 0 0 0 0-12z'
              : chosen === 'dark'
                ? 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2z'
                : ''
          }
        />
      </svg>
    </button>
  );
}

function User() {
  const present = useStore(access);
  if (present.state !== 'in' || !present.who.authentication) return null;
  const leave = (): void => {
    logOut().catch((error: unknown) => announce(messageOf(error), 'warn'));
  };
  return (
    <span class="user">
      <Text value={present.who.user ?? ''} max={40} />
      <button type="button" class="button button-small" onClick={leave}>
        Log out
      </button>
    </span>
  );
}
