import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { visibleText } from '../logic/visible-text.ts';

interface PageProps {
  readonly title: string;
  /** What the page shows beside its title: the name of one lock. */
  readonly subject?: ComponentChildren;
  /** For the title of the tab. */
  readonly subjectText?: string;
  readonly trail?: readonly { readonly text: string; readonly href: string }[];
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}

export function Page({ title, subject, subjectText, trail = [], actions, children }: PageProps) {
  const tab = subjectText === undefined ? title : `${visibleText(subjectText).slice(0, 80)} · ${title}`;
  useEffect(() => {
    document.title = `${tab} · Remora`;
  }, [tab]);
  return (
    <>
      <header class="page-head">
        <div class="page-title">
          {trail.length > 0 && (
            <nav aria-label="Path" class="trail">
              {trail.map(({ text, href }) => (
                <a key={href} href={href}>
                  {text}
                </a>
              ))}
            </nav>
          )}
          <h1>{subject ?? title}</h1>
        </div>
        {actions !== undefined && <div class="page-actions">{actions}</div>}
      </header>
      {children}
    </>
  );
}

interface CardProps {
  readonly title?: string;
  readonly aside?: ComponentChildren;
  readonly isFlush?: boolean;
  readonly children: ComponentChildren;
}

/** A part of a page. `isFlush`: its content, a table, reaches its edges. */
export function Card({ title, aside, isFlush = false, children }: CardProps) {
  return (
    <section class={isFlush ? 'card card-flush' : 'card'}>
      {title !== undefined && (
        <header class="card-head">
          <h2>{title}</h2>
          {aside !== undefined && <div class="card-aside">{aside}</div>}
        </header>
      )}
      {children}
    </section>
  );
}

interface FactsProps {
  readonly facts: readonly (readonly [string, ComponentChildren])[];
}

/** Names and values, one below the other. */
export function Facts({ facts }: FactsProps) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
