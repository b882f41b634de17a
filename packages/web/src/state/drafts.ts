/** What is being written: it stays while something else is shown, and after a reload if it may be stored. */
import type { ContentReference } from '@posthouse/protocol';
import { type Signal, signal } from '@preact/signals';
import { isLocked } from './stores.ts';
import { tabId } from './tabs.ts';

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
  /** What this tab read or stored last. */
  stored: string;
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
  const stored = localStorage.getItem(key) ?? '';
  const draft: Draft = { text: signal(stored), files: signal([]), stored, posting: 0 };
  drafts.set(key, draft);
  return draft;
}

/** Changes the text of a draft, and stores it. Returns whether a reload leaves it. */
export function write(key: string, text: string): boolean {
  const draft = draftOf(key);
  draft.text.value = text;
  // What another tab wrote and has not sent is not removed with what this one sent.
  const isOfAnother = (localStorage.getItem(key) ?? '') !== draft.stored;
  if (text === '' && isOfAnother && !isLocked()) return true;
  const isStored = keepText(key, text);
  if (isStored) draft.stored = text;
  return isStored;
}

/**
 * Empties a draft whose text becomes a message, after storing that text under another name: at every moment, one of the
 * two is stored. Without space for both, the draft stays stored.
 *
 * @param sending name for the text
 * @returns ends this when the message is stored
 */
export function beginSending(key: string, sending: string): () => void {
  const { text } = draftOf(key);
  if (keepText(sending, text.value.trim())) {
    write(key, '');
    return () => localStorage.removeItem(sending);
  }
  text.value = '';
  return () => write(key, text.value);
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

/** A text that may not have been stored as a message. */
export interface UnsentText {
  /** Its name in `localStorage`. */
  readonly key: string;
  /** The time and the tab, which name it for the client. */
  readonly draftId: string;
}

/** Lists the texts that other tabs were storing as messages, by tab and in the order of sending. */
export function unsentOf(conversation: string): ReadonlyMap<string, readonly UnsentText[]> {
  const prefix = `${sendingPrefix}${conversation}.`;
  const keys = Object.keys(localStorage).filter((key) => key.startsWith(prefix));
  const unsent = keys.sort().map((key) => ({ key, draftId: key.slice(prefix.length) }));
  const tabOf = ({ draftId }: UnsentText) => draftId.split('.').at(-1) ?? '';
  return Map.groupBy(
    unsent.filter((text) => tabOf(text) !== tabId),
    tabOf,
  );
}

// Another tab sends the draft that is shown here, too: else it could be sent from here once more.
addEventListener('storage', ({ key, newValue }) => {
  if (newValue === null || !key?.startsWith(sendingPrefix)) return;
  for (const [place, { text }] of drafts) {
    const isOf = key.startsWith(`${sendingPrefix}${place.slice(draftPrefix.length)}.`);
    if (isOf && text.value.trim() === newValue) text.value = '';
  }
});
