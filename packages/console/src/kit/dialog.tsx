import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

interface DialogProps {
  readonly title: string;
  readonly isWide?: boolean;
  close(): void;
  readonly children: ComponentChildren;
}

/** A modal dialog. The browser keeps the focus inside, closes it with Escape, and returns the focus afterwards. */
export function Dialog({ title, isWide = false, close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
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
