/** Small parts that several views have. */
import { visibleName, visibleText } from '@posthouse/client/visible-text';
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { notice, question } from './notice.ts';

/** Characters of a text that are shown at once. */
const mostShown = 240;

/** A name or another short text of somebody else. */
export function Name({ text }: { readonly text: string }) {
  return <bdi>{visibleName(text)}</bdi>;
}

/** An ID. */
export function Id({ text }: { readonly text: string }) {
  return <bdi class="id">{visibleName(text)}</bdi>;
}

/** A longer text of somebody else; what is very long opens on demand. */
export function Long({ text }: { readonly text: string }) {
  if (text === '') return <span class="soft">none</span>;
  const whole = (
    <span class="long" dir="auto">
      {visibleText(text)}
    </span>
  );
  if (text.length <= mostShown) return whole;
  return (
    <details>
      <summary>
        <bdi>{visibleName(text.slice(0, 80).toWellFormed())}</bdi>… ({count(text.length)}{' '}
        characters)
      </summary>
      {whole}
    </details>
  );
}

const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });

/** A time in this browser's zone. @param seconds Unix seconds */
export function timeOf(seconds: number): string {
  return format.format(new Date(seconds * 1_000));
}

/** A time. */
export function When({ at }: { readonly at: number | null | undefined }) {
  if (at === null || at === undefined) return <span class="soft">–</span>;
  const iso = new Date(at * 1_000).toISOString();
  return (
    <time dateTime={iso} title={iso}>
      {timeOf(at)}
    </time>
  );
}

/** A number with its thousands apart. */
export function count(value: number): string {
  return value.toLocaleString('en-US');
}

/** Bytes as people read them. */
export function size(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let [value, unit] = [bytes, 0];
  for (; value >= 1_000 && unit < units.length - 1; unit += 1) value /= 1_000;
  return `${unit === 0 ? count(value) : value.toPrecision(3)} ${units[unit]}`;
}

interface Column<Item> {
  readonly title: string;
  readonly cell: (item: Item) => ComponentChildren;
  readonly isNumber?: boolean;
}

/** A table whose rows are cards on a narrow screen. Its first column names the row. */
export function Table<Item>({
  caption,
  items,
  keyOf,
  columns,
  none,
}: {
  readonly caption: string;
  readonly items: readonly Item[];
  /** What tells one row from the others. */
  readonly keyOf: (item: Item) => string;
  readonly columns: readonly Column<Item>[];
  /** What is said if there are no rows. */
  readonly none: string;
}) {
  if (items.length === 0) return <p class="soft">{none}</p>;
  return (
    <table>
      <caption>{caption}</caption>
      <thead>
        <tr>
          {columns.map(({ title, isNumber }) => (
            <th key={title} scope="col" class={isNumber ? 'number' : ''}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {items.map((item) => (
          <tr key={keyOf(item)}>
            {columns.map(({ title, cell, isNumber }, at) =>
              at === 0 ? (
                <th key={title} scope="row" data-title={title}>
                  <div>{cell(item)}</div>
                </th>
              ) : (
                <td key={title} data-title={title} class={isNumber ? 'number' : ''}>
                  <div>{cell(item)}</div>
                </td>
              ),
            )}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What is known of one thing. */
export function Facts({ of }: { readonly of: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {of.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

/** A labelled field. */
export function Field({
  label,
  help,
  onValue,
  ...input
}: {
  readonly label: string;
  readonly help?: string;
  readonly value: string;
  readonly onValue: (value: string) => void;
  readonly type?: 'text' | 'password' | 'number' | 'datetime-local';
  readonly required?: boolean;
  readonly min?: number;
  readonly max?: number;
}) {
  const id = useId();
  const { type = 'text' } = input;
  return (
    <p class="field">
      <label for={id}>{label}</label>
      <input
        {...({ ...input, type, id } as { type: 'text' })}
        autocomplete="off"
        spellcheck={false}
        aria-describedby={help === undefined ? undefined : `${id}-help`}
        onInput={({ currentTarget }) => onValue(currentTarget.value)}
      />
      {help !== undefined && <small id={`${id}-help`}>{help}</small>}
    </p>
  );
}

/**
 * A button that is busy until its work has ended. `about` says of which row it is. The second click of
 * a double click does nothing: another row may be there by then.
 */
export function Button({
  work,
  children,
  about,
  kind = 'plain',
}: {
  readonly work: () => unknown;
  readonly children: string;
  readonly about?: string;
  readonly kind?: 'plain' | 'main' | 'danger';
}) {
  const [isBusy, setBusy] = useState(false);
  const act = async ({ detail }: MouseEvent) => {
    if (isBusy || detail > 1) return;
    setBusy(true);
    try {
      await work();
    } finally {
      setBusy(false);
    }
  };
  return (
    <button
      type="button"
      class={kind}
      // One that is disabled would lose the focus.
      aria-disabled={isBusy}
      aria-label={about === undefined ? undefined : `${children}: ${about}`}
      onClick={(event) => void act(event)}
    >
      {children}
    </button>
  );
}

/** The heading of a view or of what was opened in it; it takes the focus when it appears. */
export function Heading({
  children,
  level = 1,
}: {
  readonly children: ComponentChildren;
  readonly level?: 1 | 2;
}) {
  const ref = useRef<HTMLHeadingElement>(null);
  useEffect(() => ref.current?.focus(), []);
  const attributes = { ref, tabIndex: -1 };
  return level === 1 ? <h1 {...attributes}>{children}</h1> : <h2 {...attributes}>{children}</h2>;
}

/** What came of the last action, read aloud when it appears. It has the focus if a row with it is gone. */
export function Notice() {
  const said = notice.value;
  const text = said === undefined ? '' : visibleText(said.text);
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (said !== undefined && document.activeElement === document.body) ref.current?.focus();
  }, [said]);
  return (
    <div class="notices" tabIndex={-1} ref={ref}>
      <p role="status">{said?.isFault === false && text}</p>
      <p role="alert">{said?.isFault === true && text}</p>
    </div>
  );
}

/** The question that is open. */
export function Question() {
  const asked = question.value;
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    if (asked !== undefined) ref.current?.showModal();
  }, [asked]);
  if (asked === undefined) return null;
  return (
    <dialog ref={ref} aria-labelledby={id} onClose={() => asked.answer(false)}>
      <h2 id={id}>{asked.title}</h2>
      {asked.lines.map((line, index) => (
        <p key={index} dir="auto">
          {visibleText(line)}
        </p>
      ))}
      <div class="row">
        <button type="button" class="plain" onClick={() => asked.answer(false)}>
          Cancel
        </button>
        <button type="button" class="danger" onClick={() => asked.answer(true)}>
          {asked.yes}
        </button>
      </div>
    </dialog>
  );
}
