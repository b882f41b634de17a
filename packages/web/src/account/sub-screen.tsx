import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { show } from '../router.ts';
import { text } from '../text/index.ts';
import { faultText } from './faults.ts';

/** A page of the settings. The way back is there on wide screens too: the list does not lead to it. */
export function SubScreen({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="screen" aria-label={title}>
      <header>
        <button type="button" class="plain" onClick={() => show({ screen: 'settings' })}>
          {text.settings}
        </button>
        <h1 tabIndex={-1}>{title}</h1>
      </header>
      <div class="content">{children}</div>
    </section>
  );
}

/** What is being done, and why it failed: one thing at a time. */
export function useWork() {
  const [doing, setDoing] = useState('');
  const [fault, setFault] = useState('');
  const [done, setDone] = useState('');
  /** Runs what a person asked for; returns whether it succeeded. */
  const run = async (
    what: string,
    work: () => Promise<unknown>,
    { say = '', words = faultText }: { say?: string; words?: (error: unknown) => string } = {},
  ): Promise<boolean> => {
    setFault('');
    setDone('');
    setDoing(what);
    try {
      await work();
      setDone(say);
      return true;
    } catch (error) {
      setFault(words(error));
      return false;
    } finally {
      setDoing('');
    }
  };
  const report = (
    <>
      <p role="status">{doing || done}</p>
      {doing !== '' && <progress aria-label={doing} />}
      <p role="alert" class="fault">
        {fault}
      </p>
    </>
  );
  return { isBusy: doing !== '', run, report, setFault };
}

/** A question before what cannot be undone. */
export function Ask({
  label,
  question,
  children,
}: {
  readonly label: string;
  readonly question: string;
  readonly children: ComponentChildren;
}) {
  return (
    <details class="ask">
      <summary>{label}</summary>
      <p>{question}</p>
      {children}
    </details>
  );
}

/** A button for what cannot be undone, after a box that says so. */
export function Sure({
  label,
  sure,
  isBusy,
  work,
}: {
  readonly label: string;
  /** What the person confirms. */
  readonly sure: string;
  readonly isBusy: boolean;
  readonly work: () => Promise<unknown>;
}) {
  const [isSure, setSure] = useState(false);
  return (
    <>
      <p>
        <label>
          <input
            type="checkbox"
            checked={isSure}
            onChange={({ currentTarget }) => setSure(currentTarget.checked)}
          />{' '}
          {sure}
        </label>
      </p>
      <button type="button" class="danger" disabled={!isSure || isBusy} onClick={() => void work()}>
        {label}
      </button>
    </>
  );
}
