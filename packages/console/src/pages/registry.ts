/** The pages, in the order of the navigation. */
import type { ComponentType } from 'preact';
import type { PageProps } from './page-props.ts';

export interface PageEntry {
  /** Behind `/console/`. */
  readonly path: string;
  readonly title: string;
  /** The lines of its icon, on a field of 16 by 16. */
  readonly icon: string;
  load(): Promise<ComponentType<PageProps>>;
}

export const PAGES: readonly PageEntry[] = [
  {
    path: '',
    title: 'Overview',
    icon: 'M2 9l6-6 6 6M4 8v6h8V8',
    load: async () => (await import('./overview/overview-page.tsx')).OverviewPage,
  },
  {
    path: 'locks',
    title: 'Locks',
    icon: 'M5 7V5a3 3 0 0 1 6 0v2M3.5 7h9v6.5h-9z',
    load: async () => (await import('./locks/locks-page.tsx')).LocksPage,
  },
  {
    path: 'sessions',
    title: 'Sessions',
    icon: 'M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM3 14c0-3 2-4.5 5-4.5s5 1.5 5 4.5',
    load: async () => (await import('./sessions/sessions-page.tsx')).SessionsPage,
  },
  {
    path: 'keys',
    title: 'Keys',
    icon: 'M6 2.5H2.5v3M2.5 4h3M4 4v8h3M4 8h3M9 3h4.5M9 8h4.5M9 12h4.5',
    load: async () => (await import('./keys/keys-page.tsx')).KeysPage,
  },
  {
    path: 'ranges',
    title: 'Ranges',
    icon: 'M1.5 6h13v4h-13zM5 6v4M8 6v4M12 6v4',
    load: async () => (await import('./ranges/ranges-page.tsx')).RangesPage,
  },
  {
    path: 'heat',
    title: 'Key heat',
    icon: 'M2 2.5h12v11H2zM2 6h12M2 10h12M6 2.5v11M10 2.5v11M6 6h4v4H6z',
    load: async () => (await import('./heat/heat-page.tsx')).HeatPage,
  },
  {
    path: 'nodes',
    title: 'Nodes',
    icon: 'M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01',
    load: async () => (await import('./nodes/nodes-page.tsx')).NodesPage,
  },
  {
    path: 'scheduling',
    title: 'Scheduling',
    icon: 'M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11zM8 5v3l2 1.5',
    load: async () => (await import('./scheduling/scheduling-page.tsx')).SchedulingPage,
  },
  {
    path: 'settings',
    title: 'Settings',
    icon: 'M2 4.5h7M12 4.5h2M2 11.5h2M7 11.5h7M10.5 3v3M5.5 10v3',
    load: async () => (await import('./settings/settings-page.tsx')).SettingsPage,
  },
  {
    path: 'users',
    title: 'Users and roles',
    icon: 'M6 7.5a2.3 2.3 0 1 0 0-4.6 2.3 2.3 0 0 0 0 4.6zM1.8 13.5c0-2.6 1.7-4 4.2-4s4.2 1.4 4.2 4M10.5 3.2a2.2 2.2 0 0 1 0 4.2M12 9.8c1.4.5 2.2 1.8 2.2 3.7',
    load: async () => (await import('./users/users-page.tsx')).UsersPage,
  },
  {
    path: 'audit',
    title: 'Audit log',
    icon: 'M4 2.5h8v11H4zM6 5.5h4M6 8h4M6 10.5h2.5',
    load: async () => (await import('./audit/audit-page.tsx')).AuditPage,
  },
];
