import type { ComponentChildren } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

interface DialogProps {
  readonly title: string;
  readonly isWide?: boolean;
  close(): void;
  readonly children: ComponentChildren;
}

/** A modal dialog. The browser keeps the focus inside; afterwards, the focus returns to what had it before. */
export function Dialog({ title, isWide = false, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      // The browser returns the focus when a dialog is closed, but this one is taken out of the document.
      setTimeout(() => focusAgain(before), 0);
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={isWide ? 'dialog dialog-wide' : 'dialog'}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <header class="dialog-head">
        <h2 id={id}>{title}</h2>
        <button type="button" class="button button-bare" aria-label="Close" onClick={close}>
          ✕
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** The opener may be gone: an action can remove its own button. */
function focusAgain(before: Element | null): void {
  if (document.querySelector('dialog[open]') !== null) return;
  const isThere = before instanceof HTMLElement && before.isConnected && before !== document.body;
  const next = isThere ? before : document.getElementById('main');
  next?.focus({ preventScroll: true });
}
