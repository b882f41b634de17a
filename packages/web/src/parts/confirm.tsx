import type { ComponentChildren } from 'preact';
import { Action } from './controls.tsx';

/** What cannot be taken back: its button appears with the explanation. */
export function Confirm({
  label,
  explanation,
  work,
  children,
}: {
  readonly label: string;
  readonly explanation: string;
  readonly work: () => Promise<unknown>;
  readonly children?: ComponentChildren;
}) {
  return (
    <details class="confirm">
      <summary>{label}</summary>
      <p>{explanation}</p>
      {children}
      <Action work={work}>{label}</Action>
    </details>
  );
}
