import type { ComponentChildren, RefObject } from 'preact';

interface ScrollProps {
  readonly label: string;
  readonly class: string;
  readonly box?: RefObject<HTMLElement | null>;
  scrolled?(box: HTMLElement): void;
  readonly children: ComponentChildren;
}

/** A part that scrolls in itself, also by keyboard. */
export function Scroll({ label, class: name, box, scrolled, children }: ScrollProps) {
  return (
    <section
      {...(box === undefined ? {} : { ref: box })}
      class={name}
      aria-label={label}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, keyboards cannot scroll.
      tabIndex={0}
      onScroll={(event) => scrolled?.(event.currentTarget)}
    >
      {children}
    </section>
  );
}
