/** What is being written: it stays while something else is shown, and after a reload if it may be stored. */
import type { ContentReference } from '@posthouse/protocol';
import { type Signal, signal } from '@preact/signals';
import { isLocked } from './stores.ts';

/** A file that goes with the next message. */
export interface AttachedFile {
  readonly id: number;
  readonly file: File;
  /** URL of a picture that is safe to show. */
  readonly preview?: string;
  /** What is sent; absent until the file is stored. */
  readonly reference?: ContentReference;
  /** The part of it that was sent, from 0 to 1; absent if that is not known. */
  readonly sent?: number | undefined;
  /** Why it was not stored; empty if nothing is wrong. */
  readonly fault: string;
  readonly stop: AbortController;
}

/** What is being written in one conversation. */
interface Draft {
  readonly text: Signal<string>;
  readonly files: Signal<readonly AttachedFile[]>;
  /** How many messages are being stored. */
  posting: number;
}

/** Before the kind and ID of a conversation. */
export const draftPrefix = 'posthouse.draft.';

/** By the name under which the text is stored. */
const drafts = new Map<string, Draft>();

export function draftOf(key: string): Draft {
  const found = drafts.get(key);
  if (found !== undefined) return found;
  const text = signal(localStorage.getItem(key) ?? '');
  const draft: Draft = { text, files: signal([]), posting: 0 };
  drafts.set(key, draft);
  return draft;
}

/** Changes the text of a draft, and stores it. Returns whether a reload leaves it. */
export function write(key: string, text: string): boolean {
  draftOf(key).text.value = text;
  return keepText(key, text);
}

/**
 * Stores a text, or removes it if it is empty. A locked device stores none that can be read.
 *
 * @returns whether it is stored: there may be no space
 */
export function keepText(key: string, text: string): boolean {
  try {
    if (text === '' || isLocked()) localStorage.removeItem(key);
    else localStorage.setItem(key, text);
    return text === '' || !isLocked();
  } catch {
    return false;
  }
}

/** Whether something is being written that a reload does not leave. */
export function hasUnkept(): boolean {
  return [...drafts].some(
    ([key, { text, files, posting }]) =>
      text.value !== (localStorage.getItem(key) ?? '') || files.value.length > 0 || posting > 0,
  );
}

/** Before the kind and ID of a conversation, a time and a tab: a text that is being stored as a message. */
export const sendingPrefix = 'posthouse.sending.';

// Another tab sends the draft that is shown here, too: else it could be sent from here once more.
addEventListener('storage', ({ key, newValue }) => {
  if (newValue === null || !key?.startsWith(sendingPrefix)) return;
  for (const [place, { text }] of drafts) {
    const isOf = key.startsWith(`${sendingPrefix}${place.slice(draftPrefix.length)}.`);
    if (isOf && text.value.trim() === newValue) text.value = '';
  }
});
