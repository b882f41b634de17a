/**
 * What is being written: it stays while something else is shown, and after a reload if it may be stored.
 *
 * All tabs share one place in `localStorage` for the draft of a conversation. A text has an entry of this tab instead, which
 * no other tab writes, if another tab's draft has that place, if it was taken from an entry, and while it is being posted.
 * An entry has the draft ID under which its text is posted: the client says of each one whether it is a message.
 */
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
  /** The kind and ID of the conversation. */
  readonly conversation: string;
  readonly text: Signal<string>;
  readonly files: Signal<readonly AttachedFile[]>;
  /** What this tab read from the shared place, or stored there, last. */
  shared: string;
  /** Names the entry of this tab that has the text; absent if the shared place has it. */
  draftId: string | undefined;
  /** Entries whose text is part of this one, which there was no space to store yet. */
  readonly taken: Set<string>;
  /** Entries of this tab that are being posted. */
  readonly posting: Set<string>;
  /** Texts that are being posted, and for whose entries there was no space: they stay stored before the text. */
  readonly withoutEntry: string[];
}

/** Before the kind and ID of a conversation: the place that tabs share. */
const sharedPrefix = 'posthouse.draft.';

/** Before the kind and ID of a conversation, and a draft ID. */
const entryPrefix = 'posthouse.posting.';

/** The same, of a version whose drafts had no ID at the client. */
const oldEntryPrefix = 'posthouse.sending.';

/** By the kind and ID of the conversation. */
const drafts = new Map<string, Draft>();

const sharedKey = ({ conversation }: Draft) => sharedPrefix + conversation;
const entryKey = ({ conversation }: Draft, draftId: string) =>
  `${entryPrefix}${conversation}.${draftId}`;

export function draftOf(conversation: string): Draft {
  const found = drafts.get(conversation);
  if (found !== undefined) return found;
  const shared = localStorage.getItem(sharedPrefix + conversation) ?? '';
  const draft: Draft = {
    conversation,
    text: signal(shared),
    files: signal([]),
    shared,
    draftId: undefined,
    taken: new Set(),
    posting: new Set(),
    withoutEntry: [],
  };
  drafts.set(conversation, draft);
  return draft;
}

/** Changes the text of a draft, and stores it. Returns whether a reload leaves it. */
export function write(draft: Draft, text: string): boolean {
  draft.text.value = text;
  return store(draft);
}

/** Stores what is being written, where no other tab replaces it. */
function store(draft: Draft): boolean {
  const text = linesOf(...draft.withoutEntry, draft.text.value);
  const shared = localStorage.getItem(sharedKey(draft)) ?? '';
  const isOfAnother = shared !== '' && shared !== draft.shared;
  if (isOfAnother && text !== '') draft.draftId ??= newDraftId();
  const { draftId } = draft;
  if (draftId !== undefined && !keepText(entryKey(draft, draftId), text)) return false;
  if (!isOfAnother) {
    const rest = draftId === undefined ? text : '';
    if (!keepText(sharedKey(draft), rest)) return false;
    draft.shared = rest;
  }
  if (text === '') draft.draftId = undefined;
  for (const key of draft.taken) localStorage.removeItem(key);
  draft.taken.clear();
  return true;
}

/** A text that is being posted. One of its three functions is called once. */
export interface PostedDraft {
  readonly draftId: string;
  /** It is a message. */
  end(): void;
  /** It is none, and never will be: it is in the draft again, before what was written meanwhile. */
  putBack(): void;
  /** It may be a message: its entry is taken later. Without an entry, it is in the draft again. */
  leave(): void;
}

/**
 * Empties a draft whose text becomes a message, after storing that text in an entry: at every moment, it is stored.
 * Without space for both, it stays stored with the draft.
 */
export function beginPosting(draft: Draft): PostedDraft {
  const text = draft.text.value.trim();
  const draftId = draft.draftId ?? newDraftId();
  const entry = entryKey(draft, draftId);
  const hasEntry = keepText(entry, text);
  const entries = [entry, ...draft.taken];
  draft.posting.add(entry);
  draft.taken.clear();
  draft.draftId = undefined;
  draft.text.value = '';
  if (hasEntry) {
    for (const key of entries.splice(1)) localStorage.removeItem(key);
    store(draft);
  } else {
    draft.withoutEntry.push(text);
  }
  const finish = () => {
    draft.posting.delete(entry);
    if (!hasEntry) draft.withoutEntry.splice(draft.withoutEntry.indexOf(text), 1);
  };
  const putBack = () => {
    finish();
    for (const key of entries) draft.taken.add(key);
    write(draft, linesOf(text, draft.text.value));
  };
  return {
    draftId,
    end() {
      finish();
      for (const key of entries) localStorage.removeItem(key);
      if (!hasEntry) store(draft);
    },
    putBack,
    leave: () => (hasEntry ? finish() : putBack()),
  };
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
  return [...drafts.values()].some((draft) => {
    const { text, files, draftId, posting } = draft;
    const key = draftId === undefined ? sharedKey(draft) : entryKey(draft, draftId);
    const isKept = text.value === '' || text.value === localStorage.getItem(key);
    return !isKept || files.value.length > 0 || posting.size > 0;
  });
}

/** A text that may not have been stored as a message. */
export interface UnsentText {
  /** Its name in `localStorage`. */
  readonly key: string;
  readonly draftId: string;
  /** The tab that was posting it. */
  readonly tab: string;
  /** Milliseconds, if the client may not know its draft ID: when it was sent. */
  readonly sentAt?: number;
}

/** Lists the texts that other tabs write or post, and those that this one left, in the order of time. */
export function unsentOf(draft: Draft): readonly UnsentText[] {
  return [oldEntryPrefix, entryPrefix].flatMap((kind) => {
    const prefix = `${kind}${draft.conversation}.`;
    const own = draft.draftId === undefined ? undefined : entryKey(draft, draft.draftId);
    const keys = Object.keys(localStorage).filter(
      (key) =>
        key.startsWith(prefix) && key !== own && !draft.posting.has(key) && !draft.taken.has(key),
    );
    return keys.sort().map((key) => {
      const draftId = key.slice(prefix.length);
      const tab = draftId.split('.').at(-1) ?? '';
      const isOld = kind === oldEntryPrefix;
      return { key, draftId, tab, ...(isOld && { sentAt: Number.parseFloat(draftId) }) };
    });
  });
}

/**
 * Puts a text that is no message into the draft, which has an entry of this tab from then on: other tabs may write
 * theirs at the same moment. Without space for that, the text stays where it is until the draft is stored or posted.
 */
export function take(draft: Draft, { key, tab }: UnsentText): void {
  const unsent = localStorage.getItem(key) ?? '';
  if (unsent === '') return;
  const written = draft.text.value;
  const isOwn = tab === tabId;
  // The tab may have ended before it removed its draft from the shared place.
  const isThere = !isOwn && written.trim() === unsent.trim();
  const both = isOwn ? [unsent, written] : [written, unsent];
  draft.taken.add(key);
  draft.draftId ??= newDraftId();
  write(draft, isThere ? written : linesOf(...both));
}

/** Calls a function when another tab stores a text of a conversation in an entry. */
export function onEntry({ conversation }: Draft, changed: () => void, signal: AbortSignal): void {
  const stored = ({ key, newValue }: StorageEvent) => {
    const isEntry = [oldEntryPrefix, entryPrefix].some((prefix) =>
      key?.startsWith(`${prefix}${conversation}.`),
    );
    if (isEntry && newValue !== null) changed();
  };
  addEventListener('storage', stored, { signal });
}

const linesOf = (...texts: readonly string[]) => texts.filter(Boolean).join('\n');

let madeIds = 0;

/** In the order of time; ends with the tab. */
function newDraftId(): string {
  madeIds += 1;
  const time = (performance.timeOrigin + performance.now()).toFixed(3);
  return `${time}.${String(madeIds).padStart(6, '0')}.${tabId}`;
}

// Another tab posts the draft that is shown here, too: else it could be sent from here once more.
addEventListener('storage', ({ key, newValue }) => {
  if (newValue === null || newValue === '') return;
  for (const draft of drafts.values()) {
    const isOfDraft = key?.startsWith(`${entryPrefix}${draft.conversation}.`);
    const isShown = draft.draftId === undefined && draft.text.value.trim() === newValue;
    if (isOfDraft && isShown) draft.text.value = '';
  }
});
