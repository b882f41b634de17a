/** Files on their way to a message: each is encrypted and stored at the relay as soon as it is picked. */
import { previewKind } from '@posthouse/client';
import { isClientError, isRefusal } from '@posthouse/client/web';
import type { Signal } from '@preact/signals';
import type { App } from '../state/app.ts';
import type { AttachedFile } from '../state/drafts.ts';
import { sizeText, t } from './text.ts';

/** What the client seals at most, and the bytes by which sealing makes content longer. */
const clientLimit = 67_108_864;
const sealBytes = 16;

/** Bytes of a file at most; 0 if the home relay stores none. What another relay takes shows when it is tried. */
export async function fileLimit(app: App): Promise<number> {
  const { relayId, attachmentBytes = clientLimit } = app.config;
  if ((await app.account.home.relayId()) !== relayId) return clientLimit;
  return Math.max(0, Math.min(clientLimit, attachmentBytes - sealBytes));
}

let lastId = 0;

/** Adds files to those of a conversation, and stores them, one after the other. */
export async function attachFiles(
  app: App,
  files: Signal<readonly AttachedFile[]>,
  picked: readonly File[],
): Promise<void> {
  // At once: Enter sends nothing before each of them is stored.
  const added = picked.map((file): AttachedFile => {
    lastId += 1;
    const { kind } = previewKind(file.type);
    return {
      ...{ id: lastId, file, stop: new AbortController(), fault: '' },
      ...(kind === 'image' && { preview: URL.createObjectURL(file) }),
    };
  });
  files.value = [...files.value, ...added];
  const limit = await fileLimit(app).catch(() => clientLimit);
  for (const { id, file } of added) change(files, id, { fault: faultOf(file, limit) });
  for (const { id, file } of added) {
    if (faultOf(file, limit) === '') await storeFile(app, files, id);
  }
}

function faultOf({ size }: File, limit: number): string {
  if (limit === 0) return t.noStore;
  if (size === 0) return t.empty;
  return size > limit ? t.tooLarge(sizeText(limit)) : '';
}

/** Encrypts and stores a file; what goes wrong is said of the file. */
export async function storeFile(
  app: App,
  files: Signal<readonly AttachedFile[]>,
  id: number,
): Promise<void> {
  const found = files.value.find((each) => each.id === id);
  // Removed while an earlier one was stored.
  if (found === undefined || found.stop.signal.aborted) return;
  change(files, id, { fault: '', sent: undefined });
  try {
    const content = new Uint8Array(await found.file.arrayBuffer());
    const reference = await app.account.attachments.seal(content, {
      contentType: mediaTypeOf(found.file),
      signal: found.stop.signal,
      progress: ({ sent, of }) => change(files, id, { sent: sent / of }),
    });
    const isThere = files.value.some((each) => each.reference?.hash === reference.hash);
    change(files, id, isThere ? { fault: t.same } : { reference });
  } catch (error) {
    if (!found.stop.signal.aborted) change(files, id, { fault: storeFault(error) });
  }
}

function change(
  files: Signal<readonly AttachedFile[]>,
  id: number,
  by: Partial<Pick<AttachedFile, 'fault' | 'reference' | 'sent'>>,
): void {
  files.value = files.value.map((each) => (each.id === id ? { ...each, ...by } : each));
}

/** Ends what is being done for a file, and forgets it. */
export function removeFile(files: Signal<readonly AttachedFile[]>, id: number): void {
  const found = files.value.find((each) => each.id === id);
  found?.stop.abort();
  if (found?.preview !== undefined) URL.revokeObjectURL(found.preview);
  files.value = files.value.filter((each) => each.id !== id);
}

/** The type that the browser knows, without parameters; recipients preview by it. */
function mediaTypeOf({ type }: File): string {
  return /^[a-z]+\/[a-z0-9][a-z0-9.+-]*$/.test(type) ? type : 'application/octet-stream';
}

function storeFault(error: unknown): string {
  if (error instanceof DOMException) return t.unreadable;
  if (isClientError(error, 'no_relay')) return t.noStore;
  if (isRefusal(error, 'rate_limited')) return t.tooMuch;
  if (isClientError(error, 'invalid_input')) return t.tooLargeThere;
  return navigator.onLine ? t.notStored : t.offline;
}
