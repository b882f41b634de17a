/** Files that messages carry: sealed when they are sent, checked when they are fetched. */
import { access, readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { type ContentReference, parseMediaType } from '@posthouse/protocol';
import { NodeTransport } from '../connect/node-transport.ts';
import { ClientError, isClientError } from '../errors.ts';
import type { AccountSession } from './client-session.ts';
import { UsageError } from './exit.ts';
import { failureOf } from './failure.ts';
import { writeNew } from './new-file.ts';
import { readText } from './settings.ts';

/** Media types by the ending of a file's name; all others are bytes. */
const typesByEnding: Readonly<Record<string, string>> = {
  ...{ '.avif': 'image/avif', '.gif': 'image/gif', '.jpg': 'image/jpeg', '.jpeg': 'image/jpeg' },
  ...{ '.png': 'image/png', '.webp': 'image/webp', '.svg': 'image/svg+xml' },
  ...{ '.mp3': 'audio/mpeg', '.ogg': 'audio/ogg', '.wav': 'audio/wav', '.flac': 'audio/flac' },
  ...{ '.mp4': 'video/mp4', '.webm': 'video/webm', '.pdf': 'application/pdf' },
  ...{ '.txt': 'text/plain', '.md': 'text/markdown', '.json': 'application/json' },
  ...{ '.zip': 'application/zip' },
};

const unknownType = 'application/octet-stream';

/**
 * Encrypts files and uploads them to the home relay.
 * @throws UsageError for a file that cannot be read; ClientError
 */
export async function sealFiles(
  { account, signal }: AccountSession,
  paths: readonly string[],
): Promise<ContentReference[]> {
  const sealed: ContentReference[] = [];
  for (const path of paths) {
    const content = await readFile(path).catch((error: Error) => {
      throw new UsageError(`--file: ${error.message}`);
    });
    const contentType = typesByEnding[extname(path).toLowerCase()] ?? unknownType;
    const sealing = account.attachments.seal(content, { contentType, signal });
    sealed.push(await sealing.catch(withoutBlobs));
  }
  return sealed;
}

/** Says what a person can do; the SDK's own message is for apps with other hosts. */
function withoutBlobs(error: unknown): never {
  if (!isClientError(error, 'no_relay')) throw error;
  throw new ClientError(
    'no_relay',
    'the home relay stores no files: ask its operator to turn that on, or send the text alone',
  );
}

/**
 * Downloads and checks attachments, writes each to a new file and prints the paths. A failing
 * attachment does not delay the others.
 *
 * @param to.name beginning of the files' names, followed by the attachment's number and an ending
 * @throws UsageError, ClientError: the first failure, after all attachments were tried
 */
export async function fetchFiles(
  session: AccountSession,
  references: readonly ContentReference[],
  to: { readonly folder: string; readonly name: string },
): Promise<void> {
  const { account, out, signal } = session;
  await requireFolder(to.folder);
  using transport = transportToHosts(session);
  const files: string[] = [];
  const failures: { readonly attachment: number; readonly error: unknown }[] = [];
  for (const [index, reference] of references.entries()) {
    const attachment = index + 1;
    const path = join(to.folder, `${to.name}-${attachment}${endingOf(reference)}`);
    try {
      await requireNoFile(path);
      const content = await account.attachments.download(reference, { transport, signal });
      await writeNew(path, content, '--to');
      files.push(path);
    } catch (error) {
      signal.throwIfAborted();
      failures.push({ attachment, error });
    }
  }
  const failed = failures.map(({ attachment, error }) => {
    const { code, message } = failureOf(error);
    return { attachment, code, message };
  });
  out.result({ files, ...(failed.length > 0 && { failed }) }, () => files);
  for (const { attachment, message } of failed.slice(1)) {
    out.note(`attachment ${attachment}: ${message}`);
  }
  const [first] = failures;
  if (first !== undefined) throw first.error;
}

async function requireFolder(folder: string): Promise<void> {
  const found = await stat(folder).catch((error: Error) => error);
  if (found instanceof Error) throw new UsageError(`--to: ${found.message}`);
  if (!found.isDirectory()) throw new UsageError(`--to: ${folder} is not a folder`);
}

/** Before the download, which may be large; the write replaces no file in any case. */
async function requireNoFile(path: string): Promise<void> {
  const exists = await access(path).then(
    () => true,
    () => false,
  );
  if (exists) throw new UsageError(`--to: ${path} exists: remove it, or choose another folder`);
}

/** Files are at relays, which may have a private authority, or at any other host. */
function transportToHosts({ settings }: AccountSession): NodeTransport {
  if (settings.ca === undefined) return new NodeTransport();
  return new NodeTransport({ ca: [readText(settings.ca), ...rootCertificates].join('\n') });
}

/** The ending for a known type; the name of a file is none of the sender's choice. */
function endingOf({ content_type }: ContentReference): string {
  const essence = parseMediaType(content_type)?.essence;
  const [ending] = Object.entries(typesByEnding).find(([, type]) => type === essence) ?? ['.bin'];
  return ending;
}
