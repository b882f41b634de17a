/** Small parts that several screens have. */
import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
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
}) {
  const id = useId();
  const { value, onValue, type = 'text', autoComplete = 'off', required = false } = input;
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <input
        {...({ id, type, value, required } as { type: 'text' })}
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

/** A text to hand on: copied, or shared where the device can. */
export function Handout({ value, title }: { readonly value: string; readonly title: string }) {
  const [isCopied, setCopied] = useState(false);
  const canShare = typeof navigator.share === 'function';
  return (
    <div class="handout">
      <textarea readonly rows={4} aria-label={title} value={value} />
      <div class="row">
        <Action
          work={async () => {
            await navigator.clipboard.writeText(value);
            setCopied(true);
          }}
        >
          {isCopied ? text.copied : text.copy}
        </Action>
        {canShare && (
          <Action plain work={() => navigator.share({ title, url: value }).catch(() => undefined)}>
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
