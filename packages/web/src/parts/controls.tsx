/** Small parts that several screens have. */
import type { ComponentChildren } from 'preact';
import { useId, useRef, useState } from 'preact/hooks';
import { text } from '../text/index.ts';

/** A labelled field. */
export function Field({
  label,
  help,
  ...input
}: {
  readonly label: string;
  readonly help?: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly type?: 'text' | 'password' | 'search';
  readonly autoComplete?: string;
  readonly required?: boolean;
  readonly disabled?: boolean;
}) {
  const id = useId();
  const { value, onValue, type = 'text', autoComplete = 'off' } = input;
  const { required = false, disabled = false } = input;
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <input
        {...({ id, type, value, required, disabled } as { type: 'text' })}
        autocomplete={autoComplete}
        aria-describedby={help === undefined ? undefined : `${id}-help`}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
      {help !== undefined && <small id={`${id}-help`}>{help}</small>}
    </p>
  );
}

/** A button that is busy until its work has ended. */
export function Action({
  work,
  children,
  plain = false,
}: {
  readonly work: () => Promise<unknown>;
  readonly children: ComponentChildren;
  readonly plain?: boolean;
}) {
  const [isBusy, setBusy] = useState(false);
  const act = async () => {
    setBusy(true);
    try {
      await work();
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" class={plain ? 'plain' : ''} disabled={isBusy} onClick={() => void act()}>
      {children}
    </button>
  );
}

/** A form that is busy until its work has ended: a second click or Enter meanwhile does nothing. */
export function Form({
  work,
  label,
  canSubmit = true,
  children,
  ...rest
}: {
  readonly work: () => Promise<unknown>;
  /** Of its button. */
  readonly label: string;
  readonly canSubmit?: boolean;
  readonly class?: string;
  readonly children: ComponentChildren;
}) {
  const [isBusy, setBusy] = useState(false);
  // At once, before the button is shown as disabled.
  const isRunning = useRef(false);
  const submit = async () => {
    if (isRunning.current) return;
    isRunning.current = true;
    setBusy(true);
    try {
      await work();
    } finally {
      isRunning.current = false;
      setBusy(false);
    }
  };
  return (
    <form
      {...rest}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {children}
      <button type="submit" disabled={isBusy || !canSubmit}>
        {label}
      </button>
    </form>
  );
}

/** A text to hand on: copied, or shared where the device can. */
export function Handout({ value, title }: { readonly value: string; readonly title: string }) {
  const [isCopied, setCopied] = useState(false);
  const field = useRef<HTMLTextAreaElement>(null);
  const canShare = typeof navigator.share === 'function';
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(value);
      setCopied(true);
    } catch {
      // The browser refused it: the person copies what is selected.
      field.current?.select();
    }
  };
  // Anything but a link would be taken for an address below this page, and opening that sends it to the relay.
  const what = URL.canParse(value) ? { title, url: value } : { title, text: value };
  return (
    <div class="handout">
      <textarea ref={field} readonly rows={4} aria-label={title} value={value} />
      <div class="row">
        <Action work={copy}>{isCopied ? text.copied : text.copy}</Action>
        {canShare && (
          <Action plain work={() => navigator.share(what).catch(() => undefined)}>
            {text.share}
          </Action>
        )}
      </div>
    </div>
  );
}

/** A screen with a heading and a way back. */
export function Screen({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="screen" aria-label={title}>
      <header>
        <button type="button" class="back plain" onClick={() => history.back()}>
          {text.back}
        </button>
        <h1 tabIndex={-1}>{title}</h1>
      </header>
      <div class="content">{children}</div>
    </section>
  );
}
