/** Dark or light: as the system has it, unless the switch says otherwise. The choice is kept in this browser. */
import { Store } from '../logic/store.ts';

export type Theme = 'system' | 'light' | 'dark';

const STORED = 'remora-theme';
const isDarkSystem = matchMedia('(prefers-color-scheme: dark)');

export const theme = new Store<Theme>(stored());
/** What is shown: charts follow it. */
export const isDark = new Store(false);

export function startTheme(): void {
  apply();
  isDarkSystem.addEventListener('change', apply);
}

export function nextTheme(): void {
  const order: readonly Theme[] = ['system', 'light', 'dark'];
  theme.set(order[(order.indexOf(theme.get()) + 1) % order.length] ?? 'system');
  try {
    localStorage.setItem(STORED, theme.get());
  } catch {
    // Storage is off: the choice lasts as long as the page.
  }
  apply();
}

function apply(): void {
  const chosen = theme.get();
  const dark = chosen === 'system' ? isDarkSystem.matches : chosen === 'dark';
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  isDark.set(dark);
}

function stored(): Theme {
  try {
    const value = localStorage.getItem(STORED);
    return value === 'light' || value === 'dark' ? value : 'system';
  } catch {
    return 'system';
  }
}
